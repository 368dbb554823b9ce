"""References beyond the budget wait for their turn, and messages wait for them."""

import pytest

from reliable_channel.sds import CoreLimits, HistoryEntry, Outcome, SdsProtocol
from reliable_channel.sds.events import (
    MessageLost,
    MessageMissing,
    MessageReceived,
    ReferencesDropped,
)
from reliable_channel.sds.options import RepairOptions
from reliable_channel.sds.references.causal_history import (
    CHECKED,
    FOLLOW_INTERVAL_MS,
    FOLLOWED_AT_ONCE,
    FOLLOWED_BURST,
    FOLLOWED_PER_S,
)

from .world import NOW_MS, SECOND, delivered, events, forge, only, participant, taken

QUEUED = 50
LATER_MS = NOW_MS + FOLLOW_INTERVAL_MS
ALL_KEPT = RepairOptions(buffer_size=10_000)


def names(count: int, prefix: str = "u") -> list[str]:
    return [f"{prefix}{n:04}" for n in range(count)]


def carried(core: SdsProtocol) -> list[tuple[str, str, list[str]]]:
    """What was said to be missing since the last look: by which message of whom, and what."""
    return [
        (event.carrier_id, event.referrer_id, [entry.message_id for entry in event.missing])
        for event in events(core, MessageMissing)
    ]


def arrive(core: SdsProtocol, message_ids: list[str], now_ms: int = NOW_MS) -> None:
    for message_id in message_ids:
        core.receive(forge(message_id, sender="alice", content=message_id.encode()), now_ms)


def spend(core: SdsProtocol, sender: str = "spender", now_ms: int = NOW_MS) -> list[str]:
    """Use up the budget for references; return what they refer to."""
    spent = names(FOLLOWED_BURST, "s")
    for start in range(0, FOLLOWED_BURST, CHECKED):
        after = spent[start : start + CHECKED]
        core.receive(forge(f"spends {start}", sender=sender, after=after), now_ms)
    core.events.clear()
    return spent


def searched(core: SdsProtocol) -> set[str]:
    return {missing.entry.message_id for missing in core.missing()}


def test_the_newest_are_looked_for_at_once_and_the_older_ones_in_their_turn() -> None:
    bob, ids = participant("bob", repair=ALL_KEPT), names(CHECKED + QUEUED)
    assert bob.receive(forge("m", after=ids), NOW_MS).outcome is Outcome.PARKED
    assert carried(bob) == [("m", "mallory", ids[QUEUED:])]
    assert bob.progress().missing == len(ids) + 1
    assert bob.agenda.next_ms == LATER_MS
    bob.on_deadline(LATER_MS)
    assert carried(bob) == [("m", "mallory", ids[:QUEUED])]
    assert searched(bob) == set(ids)
    assert bob.repair_requests.planned().keys() == set(ids)
    deadline_ms = bob.agenda.next_ms
    assert deadline_ms is not None and deadline_ms > LATER_MS
    bob.on_deadline(LATER_MS + bob.options.timeout_for_lost_messages_ms)
    assert sorted(event.message_id for event in events(bob, MessageLost)) == ids


@pytest.mark.parametrize("turn", [False, True])
def test_a_message_waits_for_all_that_it_refers_to_and_for_each_once(*, turn: bool) -> None:
    """Not for itself, nor for an id that is none, nor twice for one that it names twice."""
    bob, ids = participant("bob"), names(CHECKED + QUEUED)
    after = ["", "m", ids[-1], *ids]
    bob.receive(forge("m", after=after), NOW_MS)
    if turn:
        bob.on_deadline(LATER_MS)
    arrive(bob, ids[:-1])
    assert b"content" not in delivered(bob)
    arrive(bob, ids[-1:])
    assert delivered(bob)[-1] == b"content"
    assert bob.progress().missing == 0


def test_the_same_holds_for_what_is_looked_for_at_once() -> None:
    bob = participant("bob")
    bob.receive(forge("m", after=["", "m", "u", "u", "v"]), NOW_MS)
    assert carried(bob) == [("m", "mallory", ["u", "v"])]
    arrive(bob, ["u", "v"])
    assert delivered(bob) == [b"u", b"v", b"content"]


def test_later_messages_do_not_put_off_the_turn_of_earlier_ones() -> None:
    bob = participant("bob")
    for n in range(FOLLOW_INTERVAL_MS // 50):
        bob.receive(forge(f"m{n}", after=names(CHECKED + 1, f"u{n} ")), NOW_MS + 50 * n)
        assert bob.agenda.next_ms == LATER_MS


def test_what_arrives_before_its_turn_is_not_looked_for() -> None:
    bob, ids = participant("bob"), names(CHECKED + QUEUED)
    bob.receive(forge("m", after=ids), NOW_MS)
    arrive(bob, ids[:10])
    bob.events.clear()
    bob.on_deadline(LATER_MS)
    assert carried(bob) == [("m", "mallory", ids[10:QUEUED])]


def test_what_waits_already_is_waited_for_by_a_second_message_too() -> None:
    bob, ids = participant("bob"), names(CHECKED + QUEUED)
    bob.receive(forge("m", after=ids, content=b"m"), NOW_MS)
    bob.receive(forge("n", sender="nick", after=ids[:5], content=b"n"), NOW_MS)
    bob.events.clear()
    bob.on_deadline(LATER_MS)
    arrive(bob, ids[:4])
    assert b"n" not in delivered(bob)
    arrive(bob, ids[4:5])
    assert delivered(bob) == [ids[4].encode(), b"n"]
    arrive(bob, ids[5:])
    assert delivered(bob)[-1] == b"m"


def test_of_what_is_delivered_lost_or_looked_for_nothing_waits_for_its_turn() -> None:
    bob, ids = participant("bob"), names(CHECKED + QUEUED)
    arrive(bob, ids[:10])
    lost = participant("bob").options.timeout_for_lost_messages_ms + 1
    bob.receive(forge("n", sender="nick", after=ids[10:20], content=b"n"), NOW_MS - lost)
    bob.on_deadline(NOW_MS)
    bob.receive(forge("o", sender="olga", after=ids[20:30], content=b"o"), NOW_MS)
    bob.events.clear()
    bob.receive(forge("m", after=ids, content=b"m"), NOW_MS)
    bob.on_deadline(LATER_MS)
    told = [message_id for _, _, missing in carried(bob) for message_id in missing]
    assert sorted(told) == ids[30:]
    arrive(bob, ids[20:])
    assert delivered(bob)[-1] == b"m"


def test_a_spent_budget_leaves_some_for_each_message_and_refills() -> None:
    bob = participant("bob", repair=ALL_KEPT)
    spent, ids = spend(bob), names(3 * QUEUED)
    assert searched(bob) == set(spent)
    bob.receive(forge("m", after=ids), NOW_MS)
    assert carried(bob) == [("m", "mallory", ids[-FOLLOWED_AT_ONCE:])]
    now_ms = NOW_MS + SECOND
    bob.on_deadline(now_ms)
    ((_, _, followed),) = carried(bob)
    assert FOLLOWED_PER_S - FOLLOWED_AT_ONCE <= len(followed) <= FOLLOWED_PER_S
    assert followed == ids[-FOLLOWED_AT_ONCE - len(followed) : -FOLLOWED_AT_ONCE]
    assert bob.agenda.next_ms == now_ms + FOLLOW_INTERVAL_MS
    bob.on_deadline(now_ms)  # nothing is left of the budget
    assert carried(bob) == []
    bob.on_deadline(now_ms + 10 * SECOND)
    assert searched(bob) == {*spent, *ids}


def test_messages_have_their_turns() -> None:
    bob = participant("bob")
    spend(bob)
    for name in "mno":
        bob.receive(forge(name, sender=f"of {name}", after=names(900, name)), NOW_MS)
    bob.events.clear()
    turns = []
    for n in range(1, 13):
        bob.on_deadline(NOW_MS + n * SECOND)
        turns += [carrier for carrier, _, _ in carried(bob)]
    assert {turns.count(name) for name in "mno"} == {4}


def test_who_refers_to_the_same_later_counts_from_the_first_reference() -> None:
    """Else a message that waited for its turn would be looked for longer than others."""
    bob = participant("bob")
    spend(bob)
    ids = names(FOLLOWED_AT_ONCE + 1)
    bob.receive(forge("m", after=ids), NOW_MS)
    bob.on_deadline(NOW_MS + 20 * SECOND)
    since = {missing.entry.message_id: missing.since_ms for missing in bob.missing()}
    assert since[ids[0]] == NOW_MS


def test_what_has_no_turn_in_time_is_dropped_and_what_waits_delivered() -> None:
    timeout_ms = 10  # before the budget has room again
    bob = participant("bob", timeout_for_lost_messages_ms=timeout_ms, sweep_in_buf_interval_ms=1)
    spend(bob)
    ids = names(FOLLOWED_AT_ONCE + 3)
    for name, sender in (("m", "mallory"), ("n", "nick")):
        bob.receive(forge(name, sender=sender, after=ids, content=name.encode()), NOW_MS)
    arrive(bob, ids[-FOLLOWED_AT_ONCE:])
    bob.events.clear()
    bob.on_deadline(NOW_MS + timeout_ms)
    assert b"m" not in delivered(bob)
    bob.on_deadline(NOW_MS + timeout_ms + 1)
    told = taken(bob.events)
    dropped = [e for e in told if isinstance(e, ReferencesDropped)]
    assert [(e.sender_id, e.count) for e in dropped] == [("nick", 3)]  # named by both
    assert str(timeout_ms) in dropped[0].reason
    assert bob.counters.references_dropped == 3
    contents = {e.content: e for e in told if isinstance(e, MessageReceived)}
    for content in (b"m", b"n"):
        assert sorted(e.message_id for e in contents[content].missing) == ids[:3]
    assert not {e.message_id for e in told if isinstance(e, MessageLost)} & set(ids)


def test_beyond_the_limit_what_is_not_looked_for_goes_first() -> None:
    limit = CHECKED + QUEUED - 1
    bob = participant("bob", limits=CoreLimits(missing_entries=limit))
    ids = names(CHECKED + QUEUED)
    bob.receive(forge("m", after=ids, content=b"m"), NOW_MS)
    dropped = only(events(bob, ReferencesDropped))
    assert (dropped.sender_id, dropped.count) == ("mallory", QUEUED)
    assert str(limit) in dropped.reason
    assert searched(bob) == set(ids[QUEUED:])
    arrive(bob, ids[QUEUED:])
    received = events(bob, MessageReceived)[-1]
    assert received.content == b"m"
    assert [entry.message_id for entry in received.missing] == ids[:QUEUED]


def test_exactly_at_the_limit_nothing_is_dropped() -> None:
    bob = participant("bob", limits=CoreLimits(missing_entries=CHECKED + QUEUED))
    bob.receive(forge("m", after=names(CHECKED + QUEUED)), NOW_MS)
    assert events(bob, ReferencesDropped) == []
    assert bob.progress().missing == CHECKED + QUEUED + 1


def test_beyond_the_limit_who_has_most_loses_and_what_waits_for_that_alone_is_delivered() -> None:
    bob = participant("bob", limits=CoreLimits(missing_entries=4))
    bob.receive(forge("n", sender="nick", after=["x"], content=b"n"), NOW_MS)
    bob.receive(forge("m", after=["u1"], content=b"m"), NOW_MS)
    bob.receive(forge("o", after=["u2", "u3", "u4"], content=b"o"), NOW_MS)
    told = taken(bob.events)
    assert [e.count for e in told if isinstance(e, ReferencesDropped)] == [1]
    (received,) = (e for e in told if isinstance(e, MessageReceived))
    assert (received.content, received.missing[0].message_id) == (b"m", "u1")
    assert searched(bob) == {"x", "u2", "u3", "u4"}


def test_a_lost_message_is_asked_for_again_by_who_refers_to_it_and_waited_for_by_nobody() -> None:
    bob = participant("bob")
    entry = HistoryEntry("u", b"hint", "alice")
    bob.receive(forge("m", after=[entry], content=b"m"), NOW_MS)
    later_ms = NOW_MS + bob.options.timeout_for_lost_messages_ms + 1
    bob.on_deadline(later_ms)
    bob.repair_requests.remove("u")
    assert delivered(bob) == [b"m"]
    bob.receive(forge("n", lamport=later_ms, after=[entry], content=b"n"), later_ms)
    (received,) = events(bob, MessageReceived)
    assert (received.content, received.missing) == (b"n", (entry,))
    assert "u" in bob.repair_requests.planned()


def test_a_missing_message_that_is_referred_to_again_is_no_news() -> None:
    bob = participant("bob")
    bob.receive(forge("m", after=["u"]), NOW_MS)
    bob.receive(forge("n", sender="nick", after=["u", "v"]), NOW_MS + SECOND)
    assert carried(bob) == [("m", "mallory", ["u"]), ("n", "nick", ["v"])]
    since = {missing.entry.message_id: missing.since_ms for missing in bob.missing()}
    assert since == {"u": NOW_MS, "v": NOW_MS + SECOND}


def test_a_missing_message_counts_as_that_of_the_referrer_with_fewest() -> None:
    """Else a flooder that names first what others miss has it dropped with its own."""
    bob = participant("bob", limits=CoreLimits(missing_entries=4))
    bob.receive(forge("m", after=["u", "v", "w"]), NOW_MS)
    bob.receive(forge("n", sender="nick", after=["u"]), NOW_MS)
    bob.receive(forge("o", after=["x", "y"]), NOW_MS)
    assert searched(bob) == {"u", "w", "x", "y"}


def test_who_decides_about_requests_hears_of_each_reference() -> None:
    bob = participant("bob", repair=RepairOptions(repair_on_demand=True))
    bob.receive(forge("m", after=["u"]), NOW_MS)
    assert [(w.entry.message_id, w.referrer_id) for w in taken(bob.wanted)] == [("u", "mallory")]
    bob.receive(forge("n", sender="nick", after=["u"]), NOW_MS + SECOND)
    wanted = only(taken(bob.wanted))
    assert (wanted.entry.message_id, wanted.referrer_id, wanted.since_ms) == ("u", "nick", NOW_MS)


def test_a_newcomer_presumes_the_newest_and_leaves_the_older_alone() -> None:
    bob, ids = participant("bob"), names(CHECKED + QUEUED)
    bob.join(NOW_MS, presume_ms=10 * SECOND)
    bob.receive(forge("m", after=ids, content=b"m"), NOW_MS)
    assert delivered(bob) == [b"m"]
    assert searched(bob) == set(ids[QUEUED:])
    assert bob.incoming_buffer.queued.size == 0
    later_ms = NOW_MS + 10 * SECOND
    bob.receive(forge("n", lamport=later_ms, after=["u", *ids[-2:]], content=b"n"), later_ms)
    assert carried(bob) == [("n", "mallory", ["u"])]
    arrive(bob, ["u"], later_ms)
    assert delivered(bob) == [b"u", b"n"]


def test_an_endless_hint_that_had_to_wait_is_passed_over_in_its_turn() -> None:
    bob, ids = participant("bob"), names(CHECKED + 2)
    long = HistoryEntry("long", bytes(2_000), "alice")
    bob.receive(forge("m", after=[long, *ids], content=b"m"), NOW_MS)
    bob.events.clear()
    bob.on_deadline(LATER_MS)
    assert carried(bob) == [("m", "mallory", ids[:2])]
    arrive(bob, ids)
    assert delivered(bob)[-1] == b"m"


def test_what_left_the_log_is_passed_over_in_its_turn() -> None:
    bob, ids = participant("bob", limits=CoreLimits(log_entries=1)), names(CHECKED)
    for n, name in enumerate(("left", "newest")):
        bob.receive(forge(name, lamport=NOW_MS + n), NOW_MS)
    bob.receive(forge("m", lamport=NOW_MS + 9, after=["left", *ids], content=b"m"), NOW_MS)
    for n, message_id in enumerate(ids):
        bob.receive(forge(message_id, lamport=NOW_MS + 2 + n), NOW_MS)
    bob.events.clear()
    bob.on_deadline(LATER_MS)
    assert "left" not in searched(bob)
    assert [event.content for event in events(bob, MessageReceived)] == [b"m"]


def test_references_of_a_sync_message_have_their_turns_too() -> None:
    bob, ids = participant("bob"), names(CHECKED + QUEUED)
    bob.receive(forge("s", after=ids, content=None), NOW_MS)
    assert carried(bob) == [("s", "mallory", ids[QUEUED:])]
    bob.on_deadline(LATER_MS)
    assert carried(bob) == [("s", "mallory", ids[:QUEUED])]
    assert bob.progress().missing == len(ids)


def test_references_of_a_sync_message_are_given_up_in_time_too() -> None:
    bob = participant("bob", sync_min_interval_ms=0, repair=RepairOptions(enabled=False))
    bob.receive(forge("s", after=["u"], content=None), NOW_MS)
    lost: list[MessageLost] = []
    while (due_ms := bob.agenda.next_ms) is not None:
        bob.on_deadline(due_ms)
        lost += events(bob, MessageLost)
    assert [event.message_id for event in lost] == ["u"]
