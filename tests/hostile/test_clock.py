"""Attack: Lamport timestamps far ahead, or further ahead step by step."""

from dataclasses import replace

import pytest

from reliable_channel.sds import Outcome
from reliable_channel.sds.events import MessageRejected, RejectionReason
from reliable_channel.sds.options import DAY_MS
from tests.sds.world import (
    MINUTE,
    NOW_MS,
    SECOND,
    Weather,
    World,
    delivered,
    events,
    forge,
    give,
    only,
    participant,
    send,
)

HIGHEST = 2**64 - 1


@pytest.mark.parametrize("lamport", [NOW_MS + DAY_MS + 1, 2**63, HIGHEST])
@pytest.mark.parametrize("content", [b"poison", None], ids=["content", "sync"])
def test_a_timestamp_far_ahead_is_refused_and_moves_nobody(
    lamport: int, content: bytes | None
) -> None:
    bob, alice = participant("bob"), participant("alice")
    before = bob.clock.value
    refused = bob.receive(forge("m", lamport=lamport, content=content, after=["u"]), NOW_MS)
    assert refused.reason is RejectionReason.LAMPORT_TOO_FAR_AHEAD
    assert only(events(bob, MessageRejected)).sender_id == "mallory"
    assert (bob.clock.value, bob.missing()) == (before, [])
    give(bob, send(alice, b"honest"))
    assert delivered(bob) == [b"honest"]


def test_creeping_ahead_ends_at_the_limit() -> None:
    """Each message is an hour ahead of the clock that the one before it left behind."""
    bob, alice = participant("bob"), participant("alice")
    for n in range(1_000):
        bob.receive(forge(f"m{n}", lamport=bob.clock.value + 60 * MINUTE), NOW_MS)
    assert bob.clock.value <= NOW_MS + DAY_MS
    assert len(bob.log) == 24
    assert bob.statistics().counters.rejected == 1_000 - 24
    honest = send(alice, b"honest", NOW_MS + SECOND)
    give(bob, honest, now_ms=NOW_MS + SECOND)
    assert b"honest" in delivered(bob)


def test_with_clocks_pushed_to_the_edge_honest_messages_still_arrive() -> None:
    """Whoever's clock runs ahead now sends what others refuse, until their time has come nearer."""
    world = World(["alice", "bob", "carol"], seed=3, weather=Weather(latency_ms=(1, 50)))
    for n in range(60):
        for driver in world.drivers.values():
            driver.receive(forge(f"edge {n}", lamport=world.now_ms + DAY_MS))
        for _ in range(5):
            world["alice"].send(b"honest %d" % len(world["alice"].sent))
        world.run(SECOND)
    refused = [e for d in world.drivers.values() for e in d.seen(MessageRejected)]
    assert {e.reason for e in refused} == {RejectionReason.LAMPORT_TOO_FAR_AHEAD}
    world.run(10 * MINUTE)
    honest = {b"honest %d" % n for n in range(300)}
    for driver in world.drivers.values():
        assert {entry.content for entry in driver.core.log} >= honest
    assert len({driver.core.log.digest() for driver in world.drivers.values()}) == 1


def test_a_timestamp_of_zero_lands_at_the_start_and_disturbs_nobody() -> None:
    bob = participant("bob", limits=replace(participant().options.limits, log_entries=5))
    for n in range(8):
        bob.receive(forge(f"h{n}", lamport=NOW_MS + n, sender="alice"), NOW_MS)
    for n in range(100):
        assert bob.receive(forge(f"m{n}", lamport=0), NOW_MS).outcome is Outcome.REJECTED
    assert [entry.message_id for entry in bob.log] == [f"h{n}" for n in range(3, 8)]
