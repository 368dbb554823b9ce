"""The whole core: what arrives may be anything, and what was promised holds all the same."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from random import Random
from typing import Final

from reliable_channel.sds import (
    NIM,
    SPEC,
    CoreLimits,
    HistoryEntry,
    Message,
    Outcome,
    RepairOptions,
    SdsOptions,
    SdsProtocol,
    WireProfile,
)
from reliable_channel.sds.bloom import BloomParameters
from reliable_channel.sds.dialects.codec import MAX_MESSAGE_BYTES
from reliable_channel.sds.events import MessageReceived, RejectionReason
from reliable_channel_signing import Ed25519Signer, SigningKey
from tests.sds.world import taken

from ..target import Target, joined, records
from ..vectors import nim_messages, spec_messages

CHANNEL: Final = "general"
NOW_MS: Final = 1_700_000_000_000
STEP_MS: Final = 20_000
LIMITS: Final = CoreLimits(
    log_entries=8,
    outgoing_messages=4,
    incoming_messages=4,
    incoming_bytes=2_000,
    missing_entries=6,
    participants=4,
)
OPTIONS: Final = SdsOptions(
    bloom=BloomParameters(capacity=20, error_rate=0.01),
    causal_history_size=5,
    timeout_for_lost_messages_ms=60_000,
    limits=LIMITS,
    repair=RepairOptions(buffer_size=6, cache_bytes=2_000),
)
SIGNER: Final = Ed25519Signer(SigningKey(bytes([7] * 32)))


def _core(sender_id: str, profile: WireProfile = SPEC, *, signs: bool = False) -> SdsProtocol:
    return SdsProtocol(
        CHANNEL,
        sender_id,
        now_ms=NOW_MS,
        random=Random(1).random,
        profile=profile,
        options=OPTIONS,
        signing=SIGNER if signs else None,
        require_signatures=signs,
    )


def _core_takes(data: bytes) -> None:
    """Whatever comes: no exception, nothing twice, every buffer within its limit, and what goes out
    in proportion to what came in; an honest message sent alongside still arrives."""
    core = _core("victim")
    core.send(b"own", NOW_MS)
    now_ms, delivered, went_out, arrived = NOW_MS, [], 0, 0
    honest = Message("honest", "honest message", CHANNEL, NOW_MS, content=b"honest")
    for message in chain(records(data), [SPEC.codec.encode(honest)]):
        now_ms += STEP_MS
        arrived += 1
        outcome = core.receive(message, now_ms).outcome
        core.on_deadline(now_ms)
        went_out += _sizes(core)
        delivered += _delivered(core)
        _within_limits(core)
    assert outcome is Outcome.DELIVERED or "honest message" in data.decode("latin-1")
    for _ in range(8):
        now_ms += OPTIONS.timeout_for_lost_messages_ms
        core.on_deadline(now_ms)
        went_out += _sizes(core)
        delivered += _delivered(core)
    assert not core.incoming_buffer.parked, "something waits for ever"
    assert len(set(delivered)) == len(delivered), "something was delivered twice"
    assert went_out <= (arrived + 8) * 6, "it sends much more than it receives"


def _sizes(core: SdsProtocol) -> int:
    sizes = [len(outgoing.data) for outgoing in taken(core.outgoing)]
    assert max(sizes, default=0) <= MAX_MESSAGE_BYTES
    return len(sizes)


def _delivered(core: SdsProtocol) -> list[str]:
    return [event.message_id for event in taken(core.events) if isinstance(event, MessageReceived)]


def _within_limits(core: SdsProtocol) -> None:
    statistics = core.statistics()
    assert statistics.log_length <= LIMITS.log_entries
    assert statistics.incoming <= LIMITS.incoming_messages
    assert core.incoming_buffer.size_bytes <= LIMITS.incoming_bytes or statistics.incoming == 1
    assert statistics.missing <= LIMITS.missing_entries
    assert statistics.participants <= LIMITS.participants
    assert statistics.repair_requests <= OPTIONS.repair.buffer_size
    assert statistics.repair_responses <= OPTIONS.repair.buffer_size
    assert statistics.repair_cache_bytes <= OPTIONS.repair.cache_bytes


def _signed_only(data: bytes) -> None:
    """Where signatures are demanded, only what was signed is taken, byte for byte."""
    core = _core("victim", signs=True)
    before = _trace(core)
    arrival = core.receive(data, NOW_MS)
    if arrival.outcome is Outcome.REJECTED:
        assert _trace(core) == before or arrival.reason is RejectionReason.LAMPORT_TOO_FAR_AHEAD
        return
    assert data in _ever_signed(), "nobody signed this"


def _trace(core: SdsProtocol) -> object:
    statistics = core.statistics()
    return replace(statistics, counters=replace(statistics.counters, rejected=0))


def _conversation(profile: WireProfile, *, signs: bool = False) -> list[bytes]:
    """Content that refers to content, a sync message, and a repair request."""
    core = _core(SIGNER.sender_id if signs else "alice", profile, signs=signs)
    for number in range(3):
        core.dispatched(core.send(b"message %d" % number, NOW_MS + number), NOW_MS, bytes(32))
    if profile.has_ephemeral:
        core.send_ephemeral(b"typing", NOW_MS)
    later_ms = NOW_MS + 10 * STEP_MS
    if not signs:
        unknown = [HistoryEntry("unknown", bytes(32), "bob")]
        refers = Message("bob", "refers", CHANNEL, NOW_MS + 5_000, unknown, content=b"x")
        core.receive(profile.codec.encode(refers), NOW_MS)
        core.on_deadline(later_ms)
    core.send_sync(later_ms)
    return [outgoing.data for outgoing in taken(core.outgoing)]


def _conversations() -> Iterator[bytes]:
    for profile in (SPEC, NIM):
        messages = _conversation(profile)
        yield joined(messages)
        yield joined(messages[::-1])
        yield joined(messages[2:])
    yield joined([*list(spec_messages())[:6], *list(nim_messages())[:6]])


def _signed() -> Iterator[bytes]:
    for profile in (SPEC, NIM):
        yield from _conversation(profile, signs=True)


@cache
def _ever_signed() -> frozenset[bytes]:
    return frozenset(_signed())


TARGETS: Final = (
    Target("sds_core", _core_takes, _conversations),
    Target("sds_signed", _signed_only, _signed),
)
