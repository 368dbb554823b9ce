"""State Vector Sync: vectors, packets, a channel whose digest they are, and one on NDN."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Final

from reliable_channel import ChannelOptions, MessageReceived
from reliable_channel.engine.sync_core import CoreContext, Outcome
from reliable_channel.sds.changes import NO_RECORDER
from reliable_channel.sds.log.archive import NO_ARCHIVE
from reliable_channel.transport import WakuFraming, WakuSettings
from reliable_channel_svs import Name, SignatureRefused, StateVector, TlvError
from reliable_channel_svs.channel import SvsCore
from reliable_channel_svs.ndn import PublicationReceived
from reliable_channel_svs.ndn.lp import unwrap
from reliable_channel_svs.ndn.parts import Joiner, cut
from reliable_channel_svs.ndn.url import ALLOWED, GroupUrl
from reliable_channel_svs.packet import decode_data, decode_interest
from reliable_channel_svs.signing import DigestTrust
from tests.sds.world import taken

from ..target import Target, joined, records
from ..vectors import document

NOW_MS: Final = 1_736_266_473_000
NODES: Final = (Name.parse("/bob"), Name.parse("/carol"))
PARTS_BYTES: Final = 500
URLS: Final = (
    b"ndn://127.0.0.1:6363/room/one?naming=svs-alo&node_prefix=/site&set_strategy=no",
    b"ndn:///room?forwarder=unix:///run/nfd/nfd.sock&key=a.key&trust=room.keys",
)


def _vector(data: bytes) -> None:
    """What is read is written in canonical form, which reads the same."""
    try:
        vector = StateVector.decode(data)
    except TlvError:
        return
    wire = vector.encode()
    assert StateVector.decode(wire) == vector
    assert StateVector.decode(wire).encode() == wire
    assert len(wire) <= len(data)
    for name in vector:
        assert Name.parse(str(name)) == name


def _packet(data: bytes) -> None:
    """Interests and Data, in a link header or without: read, or refused as they should be."""
    with suppress(TlvError):
        data = unwrap(data).packet
    with suppress(TlvError):
        interest = decode_interest(data)
        again = decode_interest(interest.encode())
        assert (again.name, again.parameters) == (interest.name, interest.parameters)
    with suppress(TlvError, SignatureRefused):
        packet = decode_data(data)
        packet.check(DigestTrust())
        assert packet.content in data


def _core(name: str) -> SvsCore:
    context = CoreContext(
        "general", name, ChannelOptions(), NOW_MS, Random(name).random, NO_RECORDER, NO_ARCHIVE
    )
    return SvsCore(context)


def _channel(data: bytes) -> None:
    """Nothing is delivered twice, what goes out is in proportion, and an honest message arrives."""
    core, honest = _core("alice"), _core("bob")
    core.send(b"own", NOW_MS)
    delivered: list[str] = []
    now_ms, arrived = NOW_MS, 0
    for message in records(data):
        arrived += 1
        now_ms += 700
        core.receive(message, now_ms)
        core.on_deadline(now_ms)
        delivered += (e.message_id for e in taken(core.events) if isinstance(e, MessageReceived))
        assert len(taken(core.outgoing)) <= 300  # a window of questions, and some
    assert len(set(delivered)) == len(delivered) <= arrived
    honest.send(b"honest", NOW_MS)
    [message, *_] = [outgoing.data for outgoing in taken(honest.outgoing)]
    assert core.receive(message, now_ms).outcome in (Outcome.DELIVERED, Outcome.DUPLICATE)
    assert core.agenda.next_ms is not None


def _publications(data: bytes) -> None:
    """Parts of two nodes: bounded, and a message after them arrives as it was sent."""
    joiner = Joiner(max_bytes=PARTS_BYTES)
    wrapping = WakuFraming(WakuSettings("/fuzz/1/channel/proto"))
    numbers = Counter[Name]()
    for part in records(data):
        node = NODES[len(part) & 1]
        numbers[node] += 1 + (len(part) % 16 == 15)  # a part may be missing
        body = joiner.take(PublicationReceived(node, 1, numbers[node], part))
        message = None if body is None else wrapping.received(body)
        if message is not None:
            sent = wrapping.envelope(
                message.payload,
                timestamp_ns=message.timestamp_ns,
                ephemeral=False,
                meta=message.meta,
            )
            assert (sent.message_hash, wrapping.body(sent)) == (message.message_hash, body)
        assert joiner.held_bytes <= PARTS_BYTES
    honest = wrapping.body(wrapping.envelope(b"honest" * 20, timestamp_ns=1, ephemeral=False))
    joined_parts = [
        joiner.take(PublicationReceived(NODES[0], 1, numbers[NODES[0]] + number, part))
        for number, part in enumerate(cut(honest, 50), 1)
    ]
    assert joined_parts[-1] == honest


def _parts() -> Iterator[bytes]:
    wrapping = WakuFraming(WakuSettings("/fuzz/1/channel/proto"))
    body = wrapping.body(wrapping.envelope(b"hello", timestamp_ns=1, ephemeral=False, meta=b"m"))
    yield joined(cut(body, 100))
    yield joined(cut(body, 6))


def _url(data: bytes) -> None:
    """A URL says what a node needs, or is refused with what is allowed."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        where = GroupUrl.parse(text)
    except ValueError as error:
        assert ALLOWED in str(error) or "together" in str(error)
        return
    group = where.group("/reliable-channel/1/general/proto")
    for name in (group, where.node("alice")):
        assert Name.parse(str(name)) == name
    assert group.starts_with(where.prefix)
    assert (where.key is None) == (where.trust is None)


def _wires(section: str, field: str) -> Callable[[], Iterator[bytes]]:
    return lambda: (bytes.fromhex(case[field]) for case in document("svs/svs.json")[section])


def _packets() -> Iterator[bytes]:
    yield from _wires("packets", "data")()
    yield from _wires("packets", "interest")()


def _conversations() -> Iterator[bytes]:
    bob = _core("bob")
    for content in (b"one", b"two"):
        bob.send(content, NOW_MS)
    bob.send_ephemeral(b"once", NOW_MS)
    bob.on_deadline(NOW_MS + 60_000)
    said = [outgoing.data for outgoing in taken(bob.outgoing)]
    yield joined(said)
    yield joined(reversed(said))


TARGETS: Final = (
    Target("svs_vector", _vector, _wires("decode", "wire")),
    Target("svs_packet", _packet, _packets),
    Target("svs_channel", _channel, _conversations),
    Target("ndn_publications", _publications, _parts),
    Target("ndn_url", _url, lambda: URLS),
)
