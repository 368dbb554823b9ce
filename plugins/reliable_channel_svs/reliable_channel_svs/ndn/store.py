"""Own publications: made into Data packets once, and kept for those who ask."""

from collections import OrderedDict

from ..name import SEGMENT, Name, number_component
from ..naming import Naming
from ..packet import Interest, make_data
from ..protocol import Publication
from ..signing import Signer
from .options import NodeOptions


class PublicationStore:
    """Data packets of own publications, the newest `store_bytes` of them."""

    def __init__(self, node: Name, naming: Naming, signer: Signer, options: NodeOptions) -> None:
        self._node, self._naming, self._signer, self._options = node, naming, signer, options
        self._packets: dict[Name, bytes] = {}
        self._publications: OrderedDict[Publication, list[Name]] = OrderedDict()
        self._size_bytes = 0

    @property
    def content_limit_bytes(self) -> int:
        """How long a publication may be."""
        segments = self._options.segments if self._naming.scheme == "svs-alo" else 1
        return segments * self._options.segment_bytes

    def add(self, publication: Publication, content: bytes) -> list[Publication]:
        """Keep a publication; return those that had to go for it."""
        name = self._naming.publication(self._node, publication.bootstrap_time, publication.seq)
        if self._naming.scheme == "spec":
            packets = {name: self._sign(name, content)}
        else:
            packets = self._segments(name, content)
        self._packets |= packets
        self._publications[publication] = list(packets)
        self._size_bytes += sum(map(len, packets.values()))
        evicted = []
        while self._size_bytes > self._options.store_bytes and len(self._publications) > 1:
            oldest, names = self._publications.popitem(last=False)
            self._size_bytes -= sum(len(self._packets.pop(name)) for name in names)
            evicted.append(oldest)
        return evicted

    def answer(self, interest: Interest) -> bytes | None:
        """The Data that an Interest asks for."""
        packet = self._packets.get(interest.name)
        if packet is None and interest.can_be_prefix:
            return self._packets.get(interest.name.append(number_component(SEGMENT, 0)))
        return packet

    def _segments(self, name: Name, content: bytes) -> dict[Name, bytes]:
        size = self._options.segment_bytes
        pieces = [content[at : at + size] for at in range(0, len(content), size)] or [b""]
        last = number_component(SEGMENT, len(pieces) - 1)
        packets = {}
        for number, piece in enumerate(pieces):
            segment = name.append(number_component(SEGMENT, number))
            packets[segment] = self._sign(segment, piece, last)
        return packets

    def _sign(self, name: Name, content: bytes, final_block: bytes | None = None) -> bytes:
        return make_data(
            name,
            content,
            self._signer,
            freshness_ms=self._options.freshness_ms,
            final_block=final_block,
        )
