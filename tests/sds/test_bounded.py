"""Floods: every buffer stays within its limit, and honest messages arrive all the same."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from reliable_channel.sds import CoreLimits, HistoryEntry, Outcome, RepairOptions, SdsProtocol
from reliable_channel.sds.dialects import CodecError
from reliable_channel.sds.events import MessageReceived, OutgoingKind

from .world import (
    CODEC,
    MINUTE,
    NOW_MS,
    SECOND,
    World,
    beyond_limits,
    delivered,
    events,
    forge,
    give,
    participant,
    promises_broken,
    send,
    sync,
    taken,
)

LIMITS = CoreLimits(
    log_entries=200,
    outgoing_messages=10,
    incoming_messages=20,
    missing_entries=30,
    participants=15,
)
REPAIR = RepairOptions(buffer_size=25, cache_bytes=50_000)
HONEST = "honest"


def unknown_dependencies(n: int) -> bytes:
    return forge(f"f{n}", after=[f"u{n}-{i}" for i in range(10)])


def one_unknown_dependency(n: int) -> bytes:
    """All wait for the same message, so that none brings a new reference."""
    return forge(f"f{n}", after=["u"])


def syncs(n: int) -> bytes:
    return forge(f"s{n % 3}", content=None, after=[f"u{n}-{i}" for i in range(10)])


def senders(n: int) -> bytes:
    return forge(f"f{n}", sender=f"sybil {n}", after=[f"u{n}"])


def repair_requests(n: int) -> bytes:
    asked = [HistoryEntry(f"u{n}-{i}", None, f"x{i}") for i in range(20)]
    return forge(f"r{n}", content=None, requests=[*asked, HistoryEntry(HONEST, None, "alice")])


def cycles(n: int) -> bytes:
    return forge(f"f{n}", after=[f"f{n ^ 1}"])


def chains(n: int) -> bytes:
    return forge(f"f{n}", lamport=NOW_MS + n, after=[f"f{n - 1}" if n else "u"])


def large(n: int) -> bytes:
    return forge(f"f{n}", content=bytes(20_000), after=["u"])


FLOODS = [
    unknown_dependencies,
    one_unknown_dependency,
    syncs,
    senders,
    repair_requests,
    cycles,
    chains,
    large,
]


def flooded() -> SdsProtocol:
    return participant("bob", limits=LIMITS, repair=REPAIR)


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_stays_within_limits_and_honest_messages_arrive(
    flood: Callable[[int], bytes],
) -> None:
    bob = flooded()
    now_ms = NOW_MS
    for n in range(300):
        now_ms += SECOND
        bob.receive(flood(n), now_ms)
        if n % 10 == 0:
            message = forge(f"h{n}", sender="alice", content=b"honest %d" % n)
            assert bob.receive(message, now_ms).outcome is Outcome.DELIVERED
        if (bob.agenda.next_ms or now_ms + 1) <= now_ms:
            bob.on_deadline(now_ms)
        assert beyond_limits(bob) == []
    honest = [content for content in delivered(bob) if content.startswith(b"honest")]
    assert honest == [b"honest %d" % n for n in range(0, 300, 10)]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_honest_messages_that_wait_are_repaired_during_a_flood(
    flood: Callable[[int], bytes],
) -> None:
    """The flood pushes them out of the buffers; then they come again, as retries or repairs do."""
    bob, alice = flooded(), participant("alice")
    first, second = send(alice, b"honest 1"), send(alice, b"honest 2")
    give(bob, second)
    for n in range(100):
        bob.receive(flood(n), NOW_MS)
    give(bob, first, second, first, second)
    contents = [c for c in delivered(bob) if c.startswith(b"honest")]
    assert sorted(contents) == [b"honest 1", b"honest 2"]


def test_a_group_converges_while_somebody_floods_it() -> None:
    world = World(["alice", "bob", "carol"], seed=5, limits=LIMITS, repair=REPAIR)
    for n in range(40):
        world["alice" if n % 2 else "bob"].send(b"%d" % n)
        for driver in world.drivers.values():
            for flood in (unknown_dependencies, syncs, senders):
                driver.receive(flood(n))
            assert beyond_limits(driver.core) == []
        world.run(20 * SECOND)
    world.run(30 * MINUTE)
    for name in ("alice", "bob", "carol"):
        contents = {entry.content for entry in world[name].core.log}
        assert contents >= {b"%d" % n for n in range(40)}
        received = world[name].delivered()
        assert len(received) == len(set(received))


def test_many_requests_for_one_message_make_one_answer() -> None:
    bob, alice = flooded(), participant("alice")
    message = send(alice, b"wanted")
    give(bob, message)
    for n in range(500):
        request = HistoryEntry(message.message_id, None, "alice")
        bob.receive(forge(f"r{n}", sender=f"p{n}", content=None, requests=[request]), NOW_MS)
    bob.on_deadline(NOW_MS + 2 * MINUTE)
    repairs = [o for o in taken(bob.outgoing) if o.kind is OutgoingKind.REPAIR]
    assert [o.message_id for o in repairs] == [message.message_id]


def test_planned_requests_and_answers_stay_within_their_buffers() -> None:
    bob = flooded()
    for i in range(100):
        bob.receive(forge(f"m{i}", sender="alice", content=b"%d" % i), NOW_MS)
    bob.receive(
        forge("r", requests=[HistoryEntry(f"m{i}", None, "alice") for i in range(100)]), NOW_MS
    )
    assert len(bob.repair_responses) == REPAIR.buffer_size
    bob.receive(forge("w", after=[f"u{i}" for i in range(100)]), NOW_MS)
    assert len(bob.repair_requests) == REPAIR.buffer_size


def test_the_retry_timetable_does_not_grow_with_acknowledged_messages() -> None:
    alice = participant("alice")
    for n in range(2_000):
        message = send(alice, b"%d" % n, NOW_MS + n * SECOND)
        ack = forge(f"a{n}", after=[message.message_id])
        alice.receive(ack, NOW_MS + n * SECOND)
        alice.on_deadline(NOW_MS + n * SECOND)
        for _ in taken(alice.outgoing):
            pass
    assert len(alice.outgoing_buffer) == 0
    assert alice.agenda.next_ms is not None
    assert beyond_limits(alice) == []


def test_the_bloom_filter_rolls_and_still_acknowledges_the_newest() -> None:
    bloom = replace(participant().options.bloom, capacity=50)
    alice = participant("alice", bloom=bloom)
    bob = participant("bob", bloom=bloom, causal_history_size=0)
    sent = []
    for n in range(400):
        message = send(alice, b"%d" % n)
        sent.append(message.message_id)
        give(bob, message)
        assert len(bob.bloom_filter) <= 50
    assert bob.bloom_filter.rollovers > 0
    assert len(events(bob, MessageReceived)) == 400
    give(alice, sync(bob))
    held = len(bob.bloom_filter)
    assert held >= 25
    assert not set(sent[-held:]) & set(alice.outgoing_buffer.entries)
    assert len(alice.outgoing_buffer) == pytest.approx(400 - held, abs=3)


def truncated(data: bytes) -> Iterator[bytes]:
    for length in range(0, len(data), 7):
        yield data[:length]


def test_broken_bytes_leave_nothing_behind() -> None:
    bob = flooded()
    for data in truncated(unknown_dependencies(1)):
        try:
            CODEC.decode(data)
        except CodecError:
            assert bob.receive(data, NOW_MS).outcome is Outcome.REJECTED
    assert bob.statistics().missing == bob.statistics().incoming == 0


def test_the_world_notices_a_broken_promise() -> None:
    world = World(["alice", "bob"])
    world["alice"].send(b"hi")
    assert promises_broken(world) != []
    world.run(MINUTE)
    assert promises_broken(world) == []
    bob = world["bob"]
    bob.history.append(bob.seen(MessageReceived)[0])
    assert any("delivered 2 times" in line for line in promises_broken(world))
