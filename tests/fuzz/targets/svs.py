"""State Vector Sync: vectors, packets, and a channel whose digest they are."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Final

from reliable_channel import ChannelOptions, MessageReceived
from reliable_channel.sds.archive import NO_ARCHIVE
from reliable_channel.sds.changes import NO_RECORDER
from reliable_channel.sync_core import Outcome, SyncSetting
from reliable_channel_svs import Name, SignatureRefused, StateVector, TlvError
from reliable_channel_svs.channel import SvsCore
from reliable_channel_svs.ndn.lp import unwrap
from reliable_channel_svs.packet import decode_data, decode_interest
from reliable_channel_svs.signing import DigestTrust

from ..target import Target, joined, records
from ..vectors import document

NOW_MS: Final = 1_736_266_473_000


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
    setting = SyncSetting(
        "general", name, ChannelOptions(), NOW_MS, Random(name).random, NO_RECORDER, NO_ARCHIVE
    )
    return SvsCore(setting)


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
        delivered += (e.message_id for e in core.events() if isinstance(e, MessageReceived))
        assert len(list(core.outgoing())) <= 300  # a window of questions, and some
    assert len(set(delivered)) == len(delivered) <= arrived
    honest.send(b"honest", NOW_MS)
    [message, *_] = [outgoing.data for outgoing in honest.outgoing()]
    assert core.receive(message, now_ms).outcome in (Outcome.DELIVERED, Outcome.DUPLICATE)
    assert core.next_deadline_ms() is not None


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
    said = [outgoing.data for outgoing in bob.outgoing()]
    yield joined(said)
    yield joined(reversed(said))


TARGETS: Final = (
    Target("svs_vector", _vector, _wires("decode", "wire")),
    Target("svs_packet", _packet, _packets),
    Target("svs_channel", _channel, _conversations),
)
