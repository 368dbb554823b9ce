"""Attack: messages that refer to hundreds of messages that never were.

Each is cheap to make. Receivers may not spend a hundred times as much on it as on an honest one,
nor keep a row and an event for each reference; and honest references must be followed all the same.
"""

from collections.abc import Iterable

import pytest

from reliable_channel.sds import CoreLimits, HistoryEntry, Outcome, SdsProtocol
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.events import MessageLost, MessageReceived, ReferencesDropped, SdsEvent
from reliable_channel.sds.options import RepairOptions
from reliable_channel.sds.references.causal_history import (
    CHECKED,
    FOLLOW_INTERVAL_MS,
    FOLLOWED_AT_ONCE,
    FOLLOWED_BURST,
    FOLLOWED_PER_S,
    ReferenceBudget,
)
from reliable_channel.sds.references.queued import UNSEEN
from tests.sds.world import taken

from ..sds.world import (
    NOW_MS,
    SECOND,
    beyond_limits,
    delivered,
    events,
    forge,
    participant,
)
from .cost import calls

REFERENCES = 900
FLOOD_MS = 100
"""Between two messages of 98 kB, at 1 MB a second."""
SPENT = 10
"""After so many messages there is no budget left."""


def hostile(n: int, references: int = REFERENCES, *, sender: str | None = None) -> bytes:
    after = [HistoryEntry(f"u{n}-{i}", bytes(32), "x") for i in range(references)]
    return forge(f"f{n}", sender=sender or f"sybil {n}", after=after)


def flooded(core: SdsProtocol, count: int, start: int = 0) -> list[SdsEvent]:
    """Give a participant so many hostile messages at 1 MB a second; return what it emitted."""
    told: list[SdsEvent] = []
    for n in range(start, start + count):
        now_ms = NOW_MS + n * FLOOD_MS
        run_until(core, now_ms)
        core.receive(hostile(n), now_ms)
        told += taken(core.events)
        core.outgoing.clear()
    return told


def run_until(core: SdsProtocol, now_ms: int) -> None:
    while (due_ms := core.agenda.next_ms) is not None and due_ms <= now_ms:
        core.on_deadline(due_ms)


def honest(n: int, after: Iterable[str], now_ms: int = NOW_MS) -> bytes:
    history = [HistoryEntry(i, None, "alice") for i in after]
    return forge(f"h{n}", sender="alice", lamport=now_ms, after=history, content=b"h%d" % n)


# -- cost -


@pytest.mark.usefixtures("states_unchecked")
def test_nine_hundred_unknown_references_cost_some_calls_and_not_some_each() -> None:
    bob = participant("bob")
    flooded(bob, 60)
    data, now_ms = hostile(60), NOW_MS + 60 * FLOOD_MS

    def receive() -> None:
        bob.receive(data, now_ms)

    assert calls(receive) < 1.5 * REFERENCES  # a hundred each before


@pytest.mark.usefixtures("states_unchecked")
def test_what_a_message_costs_does_not_grow_with_what_is_missing() -> None:
    """A full table must make room for each message: no walk through it."""
    bob = participant("bob", limits=CoreLimits(missing_entries=50_000))

    def cost(start: int) -> int:
        return calls(lambda: flooded(bob, 10, start))

    flooded(bob, 20)
    early = cost(20)
    flooded(bob, 60, 30)
    assert bob.statistics().missing > 48_000
    assert cost(90) <= 1.5 * early


def test_an_honest_message_costs_no_more_in_a_flood() -> None:
    def cost(bob: SdsProtocol, now_ms: int) -> int:
        data = honest(1, ["h0"], now_ms)
        bob.receive(honest(0, [], now_ms), now_ms)
        return calls(lambda: bob.receive(data, now_ms))

    quiet, loud = participant("bob"), participant("bob")
    flooded(loud, 60)
    assert cost(loud, NOW_MS + 6 * SECOND) <= 2 * cost(quiet, NOW_MS)


def test_rows_and_events_do_not_grow_with_the_references() -> None:
    recorder, count = Recorder(), 107
    bob = SdsProtocol("channel", "bob", now_ms=NOW_MS, random=lambda: 0.5, recorder=recorder)
    told = flooded(bob, count)
    changes = bob.changes()
    dropped = [event for event in told if isinstance(event, ReferencesDropped)]
    assert not any(isinstance(event, MessageLost) for event in told)
    assert len(dropped) <= count
    assert len({event.sender_id for event in dropped}) == len(dropped)
    kept = bob.statistics().missing
    assert sum(event.count for event in dropped) == count * REFERENCES - kept
    assert bob.counters.references_dropped == count * REFERENCES - kept
    assert beyond_limits(bob) == []
    # What is looked for, and asked for, and some rows for each message.
    followed = FOLLOWED_BURST + count * (FOLLOWED_AT_ONCE + FOLLOWED_PER_S * FLOOD_MS // 1000 + 1)
    assert len(changes.rows) + len(changes.entries) <= 2 * followed + 10 * count


# -- honest references in a flood -


def test_an_honest_gap_is_looked_for_and_filled_in_a_flood() -> None:
    bob = participant("bob")
    flooded(bob, 40)
    now_ms = NOW_MS + 40 * FLOOD_MS
    assert bob.receive(honest(1, ["h0"], now_ms), now_ms).outcome is Outcome.PARKED
    assert "h0" in bob.repair_requests.planned()
    told = flooded(bob, 40, 41)
    assert not any(isinstance(e, MessageReceived) and e.message_id == "h1" for e in told)
    bob.receive(honest(0, [], now_ms), now_ms)
    assert delivered(bob)[-2:] == [b"h0", b"h1"]


def test_a_late_joiner_waits_for_all_two_hundred_in_a_flood() -> None:
    """The flood has spent the budget: some are looked for at once, all are waited for, and the
    others have their turn."""
    bob = participant("bob")
    flooded(bob, 20)
    now_ms, ids = NOW_MS + 20 * FLOOD_MS, [f"h{n}" for n in range(200)]
    bob.receive(honest(200, ids, now_ms), now_ms)
    bob.events.clear()
    assert bob.repair_requests.planned().keys() >= set(ids[-FOLLOWED_AT_ONCE:])
    for n in range(200):
        assert b"h200" not in delivered(bob)
        bob.receive(honest(n, ids[:n], now_ms), now_ms)
    assert delivered(bob) == [b"h199", b"h200"]


def test_a_lone_late_joiner_has_all_followed_at_once() -> None:
    bob = participant("bob")
    ids = [f"h{n}" for n in range(CHECKED)]
    bob.receive(honest(CHECKED, ids), NOW_MS)
    assert [each.entry.message_id for each in bob.missing()] == ids
    assert bob.repair_requests.planned().keys() == set(ids)


def test_what_waits_is_followed_in_time_and_by_turns() -> None:
    bob = participant("bob", repair=RepairOptions(buffer_size=10_000))
    for n in range(SPENT):
        bob.receive(hostile(n), NOW_MS)
    followed = len(bob.missing())
    assert followed <= FOLLOWED_BURST + SPENT * FOLLOWED_AT_ONCE
    assert bob.agenda.next_ms == NOW_MS + FOLLOW_INTERVAL_MS
    run_until(bob, NOW_MS + 10 * SECOND)
    assert 0 <= 10 * FOLLOWED_PER_S - (len(bob.missing()) - followed) <= SPENT
    by_sender = {each.referrer_id for each in bob.missing()}
    assert len(by_sender) == SPENT
    run_until(bob, NOW_MS + 200 * SECOND)
    assert len(bob.missing()) == SPENT * REFERENCES


def test_what_a_flooder_names_first_is_not_dropped_with_its_own() -> None:
    """Mallory refers to what alice's message waits for, before alice's message comes."""
    bob = participant("bob", limits=CoreLimits(missing_entries=12_000))
    flooded(bob, SPENT)
    now_ms = NOW_MS + SPENT * FLOOD_MS
    stolen = ["h0", *(f"s{i}" for i in range(REFERENCES - 1))]
    bob.receive(forge("f", sender="mallory", after=stolen), now_ms)
    # More than are followed at once: the first of them waits in mallory's batch.
    bob.receive(honest(1, ["h0", *(f"x{i}" for i in range(FOLLOWED_AT_ONCE))], now_ms), now_ms)
    assert "h0" in bob.incoming_buffer.queued
    told = flooded(bob, 10, SPENT + 1)
    assert any(isinstance(e, ReferencesDropped) and e.sender_id == "mallory" for e in told)
    assert not any(isinstance(e, MessageReceived) and e.message_id == "h1" for e in told)
    assert "h1" in bob.incoming_buffer.parked
    for message_id in ("h0", *(f"x{i}" for i in range(FOLLOWED_AT_ONCE))):
        bob.receive(forge(message_id, sender="alice"), now_ms)
    assert "h1" in [event.message_id for event in events(bob, MessageReceived)]


def test_the_same_references_again_and_again_stay_bounded() -> None:
    bob = participant("bob", limits=CoreLimits(missing_entries=3_000))
    for n in range(60):
        after = [HistoryEntry(f"u{n // 3}-{i}", None, "x") for i in range(REFERENCES)]
        bob.receive(forge(f"f{n}", sender=f"sybil {n}", after=after), NOW_MS + n * FLOOD_MS)
        assert beyond_limits(bob) == []
    run_until(bob, NOW_MS + 1_000 * SECOND)
    assert bob.statistics().missing == 0
    assert bob.incoming_buffer.parked == {}
    assert len(bob.log) == 60


def test_references_to_what_left_the_log_hold_up_nobody_in_a_flood() -> None:
    bob = participant("bob", limits=CoreLimits(log_entries=30))
    old = [f"old{n}" for n in range(60)]
    for n, message_id in enumerate(old):
        bob.receive(forge(message_id, sender="alice", lamport=NOW_MS + n), NOW_MS)
    flooded(bob, SPENT)
    now_ms = NOW_MS + SPENT * FLOOD_MS
    bob.receive(honest(1, old[:20], now_ms), now_ms)
    run_until(bob, now_ms + 60 * SECOND)
    assert b"h1" in delivered(bob)


def test_references_of_sync_messages_wait_for_their_turn_too() -> None:
    bob = participant("bob")
    flooded(bob, SPENT)
    now_ms, ids = NOW_MS + SPENT * FLOOD_MS, [f"h{n}" for n in range(50)]
    history = [HistoryEntry(i, None, "alice") for i in ids]
    bob.receive(forge("s", sender="alice", after=history, content=None), now_ms)
    assert set(ids) <= {*bob.incoming_buffer.missing, *ids[: 50 - FOLLOWED_AT_ONCE]}
    run_until(bob, now_ms + 200 * SECOND)
    assert set(ids) <= {each.entry.message_id for each in bob.missing()}
    assert beyond_limits(bob) == []


def test_a_restart_waits_for_what_was_not_looked_for_yet() -> None:
    def bob() -> SdsProtocol:
        return SdsProtocol(
            "channel",
            "bob",
            now_ms=NOW_MS,
            random=lambda: 0.5,
            recorder=Recorder(),
            options=participant("bob").options,
        )

    before, ids = bob(), [f"h{n}" for n in range(20)]
    flooded(before, SPENT)
    now_ms = NOW_MS + SPENT * FLOOD_MS
    before.receive(honest(20, ids, now_ms), now_ms)
    rows = [row for row in before.changes().rows.items() if row[1] is not None]
    tables = {table.name: [r for (t, _), r in rows if t == table] for (table, _), _ in rows}
    assert "h20" in {row[0] for row in tables[UNSEEN.name] if row is not None}
    after = bob()
    after.restore(tables, [], now_ms)  # type: ignore[arg-type]
    for n in range(20):
        assert b"h20" not in delivered(after)
        after.receive(honest(n, ids[:n], now_ms), now_ms)
    assert delivered(after) == [b"h19", b"h20"]


def test_a_hint_that_is_too_long_is_refused_or_passed_over() -> None:
    long = HistoryEntry("h0", bytes(2_000), "alice")
    bob = participant("bob")
    assert bob.receive(forge("m", after=[long]), NOW_MS).outcome is Outcome.REJECTED
    flooded(bob, SPENT)
    now_ms = NOW_MS + SPENT * FLOOD_MS
    others = [HistoryEntry(f"h{n}", None, "alice") for n in range(1, 10)]
    bob.receive(forge("h10", sender="alice", after=[long, *others], content=b"h10"), now_ms)
    for n in range(1, 10):
        bob.receive(honest(n, [], now_ms), now_ms)
    run_until(bob, now_ms + 100 * SECOND)
    assert "h0" not in bob.incoming_buffer.missing
    assert b"h10" in delivered(bob)


# -- the budget -


def test_a_proven_sender_has_a_budget_of_its_own() -> None:
    budget = ReferenceBudget(limit=10)
    budget.spend("", FOLLOWED_BURST, NOW_MS)
    assert budget.room("", NOW_MS) == 0
    assert budget.room("alice", NOW_MS) == FOLLOWED_BURST
    assert budget.room("", NOW_MS + 2 * SECOND) == 2 * FOLLOWED_PER_S
    assert budget.room("", NOW_MS - SECOND) == 0  # the clock was set back
    assert budget.room("", NOW_MS + 10**9) == FOLLOWED_BURST


def test_budgets_are_kept_for_so_many() -> None:
    budget = ReferenceBudget(limit=10)
    for n in range(100):
        budget.spend(f"sender {n}", FOLLOWED_BURST, NOW_MS)
    assert [budget.room(f"sender {n}", NOW_MS) for n in (0, 90, 99)] == [FOLLOWED_BURST, 0, 0]
