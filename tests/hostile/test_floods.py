"""Attack: floods of messages that wait for what does not exist."""

from collections.abc import Callable

import pytest

from reliable_channel.sds import CoreLimits, HistoryEntry, Outcome, RepairOptions, SdsProtocol
from reliable_channel.sds.events import (
    MessageLost,
    MessageReceived,
    MessageRejected,
    ReferencesDropped,
    RejectionReason,
    RepairRequested,
)
from tests.sds.world import (
    MINUTE,
    NOW_MS,
    SECOND,
    beyond_limits,
    decode,
    events,
    forge,
    give,
    participant,
    send,
    sync,
    taken,
)

from .cost import calls, kept_bytes

LIMITS = CoreLimits(incoming_messages=50, incoming_bytes=500_000, missing_entries=100)
Flood = Callable[[int], bytes]


def many_unknown(n: int) -> bytes:
    return forge(f"f{n}", after=[f"u{n}-{i}" for i in range(20)])


def one_unknown(n: int) -> bytes:
    return forge(f"f{n}", after=["u"])


def large(n: int) -> bytes:
    return forge(f"f{n}", content=bytes(100_000), after=["u"])


def the_message_that_is_missed(n: int) -> bytes:
    """Named before anybody honest does, so that it would go with the flooder's own references."""
    return forge(f"f{n}", after=["h0", *(f"u{n}-{i}" for i in range(20))])


FLOODS = [many_unknown, one_unknown, large, the_message_that_is_missed]


def honest_chain(length: int) -> list[bytes]:
    return [
        forge(f"h{n}", sender="alice", lamport=NOW_MS + n, after=[f"h{i}" for i in range(n)])
        for n in range(length)
    ]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_pushes_out_nobody_but_the_flooder(flood: Flood) -> None:
    """Alice's messages wait for one that comes late; none of them is refused or given up."""
    bob = participant("bob", limits=LIMITS)
    first, *rest = honest_chain(6)
    bob.receive(flood(0), NOW_MS)
    for message in rest:
        assert bob.receive(message, NOW_MS).outcome is Outcome.PARKED
    for n in range(1, 500):
        bob.receive(flood(n), NOW_MS)
        assert beyond_limits(bob) == []
        assert bob.incoming_buffer.size_bytes <= LIMITS.incoming_bytes
    bob.receive(first, NOW_MS)
    told = taken(bob.events)
    received = [e for e in told if isinstance(e, MessageReceived) and e.sender_id == "alice"]
    assert [e.message_id for e in received] == [f"h{n}" for n in range(6)]
    assert not any(e.missing for e in received)
    evicted = {e.sender_id for e in told if isinstance(e, MessageRejected)}
    dropped = {e.sender_id for e in told if isinstance(e, ReferencesDropped)}
    assert evicted | dropped == {"mallory"}
    assert not any(isinstance(e, MessageLost) for e in told)
    reasons = {e.reason for e in told if isinstance(e, MessageRejected)}
    assert reasons <= {RejectionReason.INCOMING_BUFFER_FULL}


def test_a_crowd_of_flooders_leaves_an_equal_share() -> None:
    bob = participant("bob", limits=LIMITS)
    first, *rest = honest_chain(5)
    for message in rest:
        bob.receive(message, NOW_MS)
    for n in range(1_000):
        bob.receive(forge(f"f{n}", sender=f"mallory {n % 9}", after=[f"u{n}"]), NOW_MS)
    bob.receive(first, NOW_MS)
    received = [e for e in events(bob, MessageReceived) if e.sender_id == "alice"]
    assert [e.message_id for e in received] == [f"h{n}" for n in range(5)]


def soonest(core: SdsProtocol, count: int) -> list[str]:
    """Ids made to be asked for before all others, as whoever knows the formula can."""
    made = sorted(
        (f"u{n}" for n in range(4_000)),
        key=lambda i: core.profile.repair_timers.t_req("bob", i, 0, core.options.repair),
    )
    return made[:count]


def test_requests_for_nothing_do_not_hold_up_honest_ones() -> None:
    """A thousand references to nothing come first and are due first; alice's message is asked for
    with the first that go out after it is due."""
    bob = participant("bob", repair=RepairOptions(buffer_size=200))
    for n, start in enumerate(range(0, 1_000, 100)):
        after = [HistoryEntry(i, None, "x") for i in soonest(bob, 1_000)[start : start + 100]]
        bob.receive(forge(f"f{n}", after=after), NOW_MS)
    bob.receive(forge("h1", sender="alice", after=[HistoryEntry("h0", None, "alice")]), NOW_MS)
    assert len(bob.repair_requests) == 200
    due_ms = bob.repair_requests.planned()["h0"]
    requested = decode(sync(bob, due_ms)).repair_request
    assert len(requested) == bob.options.repair.max_requests_per_message
    assert "h0" in {entry.message_id for entry in requested}
    assert "h0" in events(bob, RepairRequested)[0].message_ids


def test_references_are_charged_for() -> None:
    """A message of some kB that waits for 300 others takes many times its own bytes."""
    limits = CoreLimits(incoming_bytes=2_000_000)
    bob = participant("bob", limits=limits)
    bob.receive(forge("first", after=[f"u{i}" for i in range(300)]), NOW_MS)
    bob.events.clear()

    def flood() -> None:
        for n in range(40):
            bob.receive(forge(f"f{n}", after=[f"u{i}" for i in range(300)]), NOW_MS)
            for _ in taken(bob.events):
                pass

    assert kept_bytes(flood) <= limits.incoming_bytes
    assert bob.incoming_buffer.size_bytes <= limits.incoming_bytes
    assert len(bob.incoming_buffer.parked) < 40


def test_a_message_in_a_flood_costs_the_same_however_long_it_lasts() -> None:
    bob = participant("bob", limits=LIMITS, repair=RepairOptions(buffer_size=50))

    def flood(start: int) -> int:
        def run() -> None:
            for n in range(start, start + 100):
                bob.receive(many_unknown(n), NOW_MS)
                for _ in taken(bob.events):
                    pass

        return calls(run)

    flood(0)
    early = flood(100)
    for n in range(1_000, 1_200):
        bob.receive(many_unknown(n), NOW_MS)
    bob.events.clear()
    assert flood(5_000) <= 1.2 * early


def test_a_flood_in_honest_names_delays_honest_messages() -> None:
    """Nothing proves who sends a message unless senders are signed: this flood is charged to alice.

    What of hers had to make room comes again: asked for, or sent again.
    """
    bob, alice = participant("bob", limits=LIMITS), participant("alice")
    first, second = send(alice, b"honest 1"), send(alice, b"honest 2")
    give(bob, second)
    for n in range(500):
        bob.receive(forge(f"f{n}", sender="alice", after=["u"]), NOW_MS)
    assert second.message_id not in bob.incoming_buffer.parked
    due_ms = NOW_MS + 2 * MINUTE
    assert second.message_id in bob.repair_requests.planned()
    give(bob, first, second, now_ms=due_ms + SECOND)
    contents = [e.content for e in events(bob, MessageReceived)]
    assert [c for c in contents if c.startswith(b"honest")] == [b"honest 1", b"honest 2"]


def test_large_messages_push_old_ones_out_of_the_log_before_memory_is_full() -> None:
    """Not defended: whoever may speak may speak much, and the log forgets its oldest."""
    bob = participant("bob", limits=CoreLimits(log_bytes=1_000_000))
    for n in range(100):
        bob.receive(forge(f"f{n}", content=bytes(100_000), lamport=NOW_MS + n), NOW_MS)
        assert sum(len(entry.content) for entry in bob.log) == bob.log.size_bytes <= 1_000_000
    assert len(bob.log) == 10
    give(bob, send(participant("alice", now_ms=NOW_MS + SECOND), b"honest", NOW_MS + SECOND))
    assert [e.content for e in events(bob, MessageReceived)][-1] == b"honest"
