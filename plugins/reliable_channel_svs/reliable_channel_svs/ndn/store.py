"""Own publications as Data packets, which are kept for members that request them."""

from collections import OrderedDict

from ..name import SEGMENT, Name, component_number, number_component
from ..naming import Naming
from ..packet import BLOB, GONE, MAX_PACKET_BYTES, Interest, make_data
from ..protocol import Publication
from ..signing import Signer
from ..tlv import MAX_NUMBER
from .options import NodeOptions


class PublicationStore:
    """Data packets of the newest own publications, up to `store_bytes` in total."""

    def __init__(
        self,
        node: Name,
        naming: Naming,
        signer: Signer,
        options: NodeOptions,
        bootstrap_time: int,
    ) -> None:
        self._node, self._naming, self._signer, self._options = node, naming, signer, options
        self._newest = bootstrap_time, 0
        self._piece_bytes = min(options.segment_bytes, MAX_PACKET_BYTES - self._beside_bytes())
        self._packets: dict[Name, bytes] = {}
        self._publications: OrderedDict[Publication, list[Name]] = OrderedDict()
        self._size_bytes = 0

    @property
    def content_limit_bytes(self) -> int:
        """Maximum size of a publication's content."""
        segments = self._options.segments if self._naming.scheme == "svs-alo" else 1
        return segments * self._piece_bytes

    def add(self, publication: Publication, content: bytes) -> list[Publication]:
        """Store a publication, and return the publications that were dropped for it."""
        name = self._naming.publication(self._node, publication.bootstrap_time, publication.seq)
        if self._naming.scheme == "spec":
            packets = {name: self._sign(name, content)}
        else:
            packets = self._segments(name, content)
        self._packets |= packets
        self._publications[publication] = list(packets)
        self._newest = publication.bootstrap_time, publication.seq
        self._size_bytes += sum(map(len, packets.values()))
        evicted = []
        while self._size_bytes > self._options.store_bytes and len(self._publications) > 1:
            evicted.append(next(iter(self._publications)))
            self.forget(evicted[-1])
        return evicted

    def forget(self, publication: Publication) -> None:
        """Stop keeping an own publication for other members."""
        names = self._publications.pop(publication, ())
        self._size_bytes -= sum(len(self._packets.pop(name)) for name in names)

    def answer(self, interest: Interest) -> bytes | None:
        """Return the Data packet that answers an Interest, or None."""
        packet = self._packets.get(interest.name)
        if packet is None and interest.can_be_prefix:
            packet = self._packets.get(interest.name.append(number_component(SEGMENT, 0)))
        if packet is None and self._options.tell_gone and self._is_gone(interest.name):
            return self._sign(interest.name, b"", content_type=GONE)
        return packet

    def _is_gone(self, name: Name) -> bool:
        """Return True if a name is that of an own publication that is not there, and will never
        be."""
        *before, last = name.components or (b"\0\0",)
        if component_number(last, SEGMENT) is not None:
            name = Name(tuple(before))
        place = self._naming.parse_publication(name)
        if place is None or place.node != self._node:
            return False
        return (place.bootstrap_time, place.seq) <= self._newest

    def _beside_bytes(self) -> int:
        """What a packet takes besides its content, at most."""
        name = self._naming.publication(self._node, MAX_NUMBER, MAX_NUMBER)
        segment = number_component(SEGMENT, MAX_NUMBER)
        return len(self._sign(name.append(segment), b"", segment)) + 16  # lengths grow

    def _segments(self, name: Name, content: bytes) -> dict[Name, bytes]:
        size = self._piece_bytes
        pieces = [content[at : at + size] for at in range(0, len(content), size)] or [b""]
        last = number_component(SEGMENT, len(pieces) - 1)
        packets = {}
        for number, piece in enumerate(pieces):
            segment = name.append(number_component(SEGMENT, number))
            packets[segment] = self._sign(segment, piece, last)
        return packets

    def _sign(
        self,
        name: Name,
        content: bytes,
        final_block: bytes | None = None,
        content_type: int = BLOB,
    ) -> bytes:
        return make_data(
            name,
            content,
            self._signer,
            freshness_ms=self._options.freshness_ms,
            final_block=final_block,
            content_type=content_type,
        )
