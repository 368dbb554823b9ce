"""Packets of a channel over State Vector Sync, in the format of NDN but without an NDN network.

    Interest /<channel>/v=3                        a state vector, in a Data in its parameters (§2)
    Data     /<sender>/<channel>/t=<boot>/seq=<n>  a message
    Interest /<sender>/<channel>/t=<boot>/seq=<n>  a member that lacks a message asks for it
    Data     /<sender>/<channel>/32=once/…         an ephemeral message

After the state vector, a packet lists the messages that its sender has received. The list carries
acknowledgements, because a vector only names messages that a node knows of. Readers that do not
know the list skip it by its type.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ..errors import TlvError
from ..name import KEYWORD, NAME, VERSION, Name, component_number, split_component, text_component
from ..naming import Naming, PublicationName
from ..packet import DATA, Interest, decode_data, decode_interest, make_data
from ..signing import DigestSigner, DigestTrust
from ..tlv import Reader, decode_integer, encode, encode_integer
from ..vector import STATE_VECTOR, StateVector

RECEIVED: Final = 240
"""Type of the element with a name and a vector of the messages that the sender has received."""
LAMPORT_TIMESTAMP: Final = 242
CONTENT: Final = 244
ONCE: Final = text_component("once", KEYWORD)
OVERHEAD_BYTES: Final = 512
"""Number of bytes of a packet for fields besides the content and the names."""


@dataclass(frozen=True, slots=True)
class Sync:
    """Sync packet, with the encoded state vector and the messages that members have received."""

    vector: bytes
    sender: Name | None
    received: StateVector
    lacking: frozenset[Name] = frozenset()
    """Names of messages that `received` includes although the sender has given them up."""


@dataclass(frozen=True, slots=True)
class Message:
    """Message packet of a channel. An ephemeral message has no place in the state vector."""

    sender: Name
    place: PublicationName | None
    message_id: str
    lamport_timestamp: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """Request packet of a member for a missing message."""

    place: PublicationName


class ChannelWire:
    """Encodes and decodes the packets of one channel."""

    def __init__(self, channel_id: str, random: Callable[[], float]) -> None:
        self.naming = Naming(Name((text_component(channel_id),)))
        self._random = random
        self._signer, self._trust = DigestSigner(), DigestTrust()

    def message_id(self, place: PublicationName) -> str:
        """Return the id of a message. The id is the message's NDN name, which is unique and can be
        requested."""
        return str(self.naming.publication(place.node, place.bootstrap_time, place.seq))

    def place(self, message_id: str) -> PublicationName | None:
        """Return the place of the message with an id, or None for other ids."""
        return self.naming.parse_publication(Name.parse(message_id))

    def message(self, place: PublicationName, lamport_timestamp: int, content: bytes) -> bytes:
        """Return the packet of a message. Every member that sends the message again sends the same
        bytes."""
        name = self.naming.publication(place.node, place.bootstrap_time, place.seq)
        return make_data(name, _body(lamport_timestamp, content), self._signer)

    def ephemeral(self, sender: Name, lamport_timestamp: int, content: bytes) -> tuple[str, bytes]:
        """Return the packet of a message without a place in the vector, and the message's id."""
        once = text_component(self._nonce().hex())
        name = self.naming.publications_of(sender).append(ONCE, once)
        return str(name), make_data(name, _body(lamport_timestamp, content), self._signer)

    def sync(
        self,
        vector: bytes,
        sender: Name,
        received: StateVector,
        lacking: Iterable[PublicationName],
    ) -> bytes:
        names = (
            self.naming.publication(place.node, place.bootstrap_time, place.seq).encode()
            for place in lacking
        )
        has = encode(RECEIVED, sender.encode(), received.encode(), *names)
        data = make_data(self.naming.sync, vector + has, self._signer)
        return Interest(self.naming.sync, self._nonce(), 1_000, parameters=data).encode()

    def request(self, place: PublicationName) -> bytes:
        """Return the Interest that requests a message."""
        name = self.naming.publication(place.node, place.bootstrap_time, place.seq)
        return Interest(name, self._nonce()).encode()

    def read(self, data: bytes) -> Sync | Message | Request | None:
        """Return the decoded packet, or None if the packet belongs to another channel.

        Raises:
            TlvError: the bytes are no packet of any channel.
            SignatureRefused: the packet did not arrive whole.
        """
        if data[:1] == bytes([DATA]):
            return self._read_message(data)
        interest = decode_interest(data)
        if interest.name.starts_with(self.naming.sync):
            return self._read_sync(interest)
        place = self.naming.parse_publication(interest.name)
        return None if place is None else Request(place)

    def _read_message(self, data: bytes) -> Message | None:
        packet = decode_data(data)
        packet.check(self._trust)
        components = packet.name.components
        place = self.naming.parse_publication(packet.name)
        if place is not None:
            sender = place.node
        elif len(components) > 3 and components[-2] == ONCE:
            sender = Name(components[:-3])
            if components[-3:-2] != self.naming.group.components:
                return None
        else:
            return None
        reader = Reader(packet.content)
        lamport_timestamp = decode_integer(reader.take(LAMPORT_TIMESTAMP))
        content = bytes(reader.take(CONTENT))
        reader.end()
        return Message(sender, place, str(packet.name), lamport_timestamp, content)

    def _read_sync(self, interest: Interest) -> Sync:
        packet = decode_data(interest.parameters or b"")
        packet.check(self._trust)
        name = packet.name
        if not name.starts_with(self.naming.group) or (
            component_number(name.components[-1], VERSION) is None
        ):
            raise TlvError(f"{name} is not the name of a state vector of group {self.naming.group}")
        reader = Reader(packet.content, optional=(RECEIVED,))
        vector = encode(STATE_VECTOR, bytes(reader.take(STATE_VECTOR)))
        received = reader.take_if(RECEIVED)
        if received is None:
            return Sync(vector, None, StateVector())
        inner = Reader(received)
        sender = Name.from_value(inner.take(NAME))
        has = StateVector.decode(encode(STATE_VECTOR, bytes(inner.take(STATE_VECTOR))))
        lacking = set()
        while (lacked := inner.take_if(NAME)) is not None:
            lacking.add(Name.from_value(lacked))
        return Sync(vector, sender, has, frozenset(lacking))

    def _nonce(self) -> bytes:
        return int(self._random() * 2**32).to_bytes(4, "big")


def node_name(sender_id: str) -> Name:
    """Return the node name for a sender id, as one name component."""
    return Name((text_component(sender_id),))


def sender_id(node: Name) -> str:
    """Return the sender id for a node name. A name that no sender id can have is returned as its
    text."""
    if len(node) == 1:
        try:
            return split_component(node.components[0])[1].decode()
        except UnicodeDecodeError:
            pass
    return str(node)


def _body(lamport_timestamp: int, content: bytes) -> bytes:
    return encode_integer(LAMPORT_TIMESTAMP, lamport_timestamp) + encode(CONTENT, content)
