"""The parts of SDS-R: formulas, the two buffers, the cache; and the guide's edge cases."""

from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import HistoryEntry, RepairOptions
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.events import (
    OutgoingKind,
    RepairRequested,
    RepairRequestReceived,
    RepairSent,
)
from reliable_channel.sds.repair.buffers import (
    MAX_REST,
    IncomingRepairBuffer,
    OutgoingRepairBuffer,
    RepairTimers,
    in_response_group,
    repair_hash,
    response_groups,
    t_req,
    t_resp,
)
from reliable_channel.sds.repair.cache import REPAIR_CACHE, RepairCache

from ..world import (
    MINUTE,
    NOW_MS,
    SECOND,
    decode,
    events,
    forge,
    give,
    next_ms,
    only,
    participant,
    send,
    sync,
    taken,
)

OPTIONS = RepairOptions()
LATER_MS = NOW_MS + 2 * MINUTE
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def entry(message_id: str, sender_id: str | None = "sender") -> HistoryEntry:
    return HistoryEntry(message_id, b"hint", sender_id)


def outgoing(count: int = 0, **changes: Any) -> OutgoingRepairBuffer:
    made = OutgoingRepairBuffer("me", RepairOptions(**changes))
    for i in range(count):
        made.want(entry(f"m{i}"), 0)
    return made


def incoming(count: int = 0, **changes: Any) -> IncomingRepairBuffer:
    made = IncomingRepairBuffer("me", RepairOptions(**changes))
    for i in range(count):
        made.request(entry(f"m{i}"), 0)
    return made


# -- formulas --------------------------------------------------------------------------------------


@settings(derandomize=True)
@given(NAMES, NAMES, st.integers(0, 2**50))
def test_t_req_lies_between_t_min_and_t_max(name: str, message_id: str, now_ms: int) -> None:
    due_ms = t_req(name, message_id, now_ms, OPTIONS)
    assert now_ms + OPTIONS.t_min_ms <= due_ms < now_ms + OPTIONS.t_max_ms


@settings(derandomize=True)
@given(NAMES, NAMES, NAMES, st.integers(0, 2**50))
def test_t_resp_lies_below_t_max(name: str, sender: str, message_id: str, now_ms: int) -> None:
    due_ms = t_resp(name, sender, message_id, now_ms, OPTIONS)
    assert now_ms <= due_ms < now_ms + OPTIONS.t_max_ms


@settings(derandomize=True)
@given(NAMES, NAMES, st.integers(1, 1_000))
def test_the_original_sender_answers_at_once_and_is_in_its_group(
    name: str, message_id: str, groups: int
) -> None:
    assert t_resp(name, name, message_id, 7, OPTIONS) == 7
    assert in_response_group(name, name, message_id, groups) is bool(name)


def test_participants_differ_in_their_times() -> None:
    names = [f"p{i}" for i in range(200)]
    asked = {t_req(name, "m", 0, OPTIONS) for name in names}
    answered = {t_resp(name, "sender", "m", 0, OPTIONS) for name in names}
    assert len(asked) > 190 and len(answered) > 190


def test_ids_need_not_be_numbers() -> None:
    # Edge case 3: they are hashed to integers.
    name = "Ä/🙂 with spaces"
    assert repair_hash(name) == int.from_bytes(sha256(name.encode()).digest()[:8])
    assert t_resp(name, name, "m", 7, OPTIONS) == 7


@pytest.mark.parametrize("groups", [2, 8, 64])
def test_groups_share_the_answering(groups: int) -> None:
    members = sum(in_response_group(f"p{i}", "sender", "m", groups) for i in range(4_000))
    assert members == pytest.approx(4_000 / groups, rel=0.35)


@pytest.mark.parametrize(
    ("participants", "groups"), [(0, 1), (127, 1), (255, 1), (256, 2), (10_000, 78)]
)
def test_the_number_of_groups(participants: int, groups: int) -> None:
    assert response_groups(participants) == groups


# -- the outgoing request buffer -------------------------------------------------------------------


@pytest.mark.conformance("SDS-REPAIR-1", "SDS-REPAIR-5")
def test_requests_are_handed_out_by_t_req() -> None:
    made = outgoing(50, max_requests_per_message=50)
    planned = made.planned()
    due = [e.message_id for e in made.due(OPTIONS.t_max_ms)]
    assert due == sorted(planned, key=planned.__getitem__)
    assert made.agenda.next_ms == min(planned.values())


@pytest.mark.conformance("SDS-REPAIR-4", "SDS-REPAIR-6")
def test_at_most_three_a_message_and_only_what_is_due() -> None:
    made = outgoing(10)
    assert made.due(OPTIONS.t_min_ms - 1) == []
    assert len(made.due(OPTIONS.t_max_ms)) == 3
    assert [e.message_id for e in made.due(made.agenda.next_ms or 0)] == [
        min(made.planned(), key=made.planned().__getitem__)
    ]


@pytest.mark.conformance("SDS-REPAIR-2")
def test_a_duplicate_reference_does_not_change_t_req() -> None:
    # Edge case 1: set semantics.
    made = outgoing(1)
    planned = made.planned()
    made.want(entry("m0"), 10 * SECOND)
    assert (made.planned(), len(made)) == (planned, 1)


@pytest.mark.conformance("SDS-REPAIR-8")
def test_hint_and_sender_are_kept() -> None:
    assert outgoing(1).due(OPTIONS.t_max_ms) == [entry("m0")]


@pytest.mark.conformance("SDS-REPAIR-3")
def test_a_full_buffer_lets_go_of_the_entry_due_last() -> None:
    made = outgoing(20, buffer_size=20)
    latest = max(made.planned(), key=made.planned().__getitem__)
    made.want(entry("new"), 0)
    assert len(made) == 20
    assert set(made.planned()) == {f"m{i}" for i in range(20)} - {latest} | {"new"}


def test_a_new_entry_that_is_due_last_is_the_one_to_go() -> None:
    made, ids = outgoing(buffer_size=4), sorted((f"m{i}" for i in range(9)), key=_t_req_of)
    for message_id in ids:
        made.want(entry(message_id), 0)
    assert set(made.planned()) == set(ids[:4])


def _t_req_of(message_id: str) -> int:
    return t_req("me", message_id, 0, OPTIONS)


def test_references_to_more_than_fits_leave_the_first_ones_where_they_are() -> None:
    """A sync message every ten seconds refers to all sixteen; before, each of those that found no
    room evicted one that waited, and none was ever due."""
    made = outgoing(buffer_size=4)
    asked = set[str]()
    for now_ms in range(0, 20 * MINUTE, 10 * SECOND):
        for i in range(16):
            if f"m{i}" not in asked:
                made.want(entry(f"m{i}"), now_ms, f"p{i % 8}")
        for due in made.due(now_ms):
            asked.add(due.message_id)
            made.remove(due.message_id)
    assert asked == {f"m{i}" for i in range(16)}


def test_among_equally_heavy_referrers_the_entry_due_last_goes() -> None:
    made = outgoing(buffer_size=4)
    for i in range(16):
        made.want(entry(f"m{i}"), 0, f"p{i}")
    assert set(made.planned()) == set(sorted((f"m{i}" for i in range(16)), key=_t_req_of)[:4])


def test_a_full_buffer_lets_go_of_spent_entries_first() -> None:
    made = outgoing(2, buffer_size=2, max_request_attempts=1)
    made.asked(["m0"], 100)
    made.want(entry("new"), 200)
    assert set(made.planned()) == {"m1", "new"}


def test_an_entry_without_a_sender_is_not_asked_for() -> None:
    # Edge case 4: nobody could tell who may answer.
    made = outgoing()
    made.want(entry("m", None), 0)
    made.want(entry("m", ""), 0)
    assert len(made) == 0
    made.want(entry("m"), 0)
    assert set(made.planned()) == {"m"}


def spend(made: OutgoingRepairBuffer) -> int:
    """Ask for `m0` until no attempt is left; return when that was."""
    now_ms = 0
    while (due_ms := made.agenda.next_ms) is not None:
        now_ms = due_ms
        made.asked(["m0"], now_ms)
    return now_ms


def test_a_request_is_repeated_and_rests_as_long_as_the_message_has_been_wanted() -> None:
    made = outgoing(1, max_request_attempts=3)
    spent_ms = spend(made)
    assert 3 * OPTIONS.t_min_ms <= spent_ms <= 3 * OPTIONS.t_max_ms
    made.want(entry("m0"), 2 * spent_ms - 1)
    assert (made.agenda.next_ms, len(made)) == (None, 1)
    made.want(entry("m0"), 2 * spent_ms)
    assert made.agenda.next_ms == t_req("me", "m0", 2 * spent_ms, OPTIONS)
    assert spend(made) == 3 * spent_ms
    made.want(entry("m0"), 6 * spent_ms - 1)
    assert next_ms(made.agenda) is None
    made.want(entry("m0"), 6 * spent_ms)
    assert made.agenda.next_ms is not None
    while (spent_ms := spend(made)) < 10**8:
        rested_ms = spent_ms + MAX_REST * OPTIONS.t_max_ms
        made.want(entry("m0"), rested_ms)
        assert made.agenda.next_ms == t_req("me", "m0", rested_ms, OPTIONS)


def test_a_clock_set_back_does_not_prolong_the_rest() -> None:
    made = outgoing(1, max_request_attempts=1)
    made.asked(["m0"], 10**9)
    made.want(entry("m0"), 5)
    assert made.agenda.next_ms == t_req("me", "m0", 5, OPTIONS)
    made.asked(["m0"], 9)
    made.want(entry("m0"), 10)
    assert next_ms(made.agenda) is None


def test_a_request_of_somebody_else_puts_ours_off() -> None:
    made = outgoing(1)
    made.requested_by_other("m0", 20 * SECOND)
    assert made.planned() == {"m0": t_req("me", "m0", 20 * SECOND, OPTIONS)}
    made.requested_by_other("unknown", 0)
    for n in range(OPTIONS.max_request_attempts):
        made.requested_by_other("m0", 30 * SECOND, f"p{n}")
    assert made.planned() == {}


def test_one_who_asks_again_and_again_puts_ours_off_once() -> None:
    made = outgoing(1)
    for _ in range(2):
        for n in range(50):
            made.requested_by_other("m0", n * SECOND, "mallory")
        assert made.planned() == {"m0": t_req("me", "m0", 0, OPTIONS)}
        made.asked(["m0"], 0)


@pytest.mark.conformance("SDS-REPAIR-7")
def test_removed_entries_are_gone() -> None:
    made = outgoing(2)
    made.remove("m0")
    made.remove("m0")
    assert (len(made), set(made.planned())) == (1, {"m1"})


def test_an_entry_beyond_t_max_is_planned_anew() -> None:
    # Edge case 2: T_req > now + T_max can only be if the clock was set back.
    made = OutgoingRepairBuffer("me", OPTIONS)
    made.want(entry("far"), 10**9)
    made.want(entry("near"), 0)
    near = made.planned()["near"]
    made.drop_expired(0)
    assert made.planned() == {"near": near, "far": t_req("me", "far", 0, OPTIONS)}


def test_a_formula_beyond_t_max_is_cut_to_it() -> None:
    # Else `drop_expired` would take each new T_req for that of a clock set back, without end.
    timers = RepairTimers(lambda *_: 10**9, t_resp, in_response_group)
    made = OutgoingRepairBuffer("me", OPTIONS, timers)
    made.want(entry("m"), 0)
    made.drop_expired(0)
    assert made.planned() == {"m": OPTIONS.t_max_ms}


def test_t_min_may_equal_t_max() -> None:
    made = outgoing(1, t_min_ms=50, t_max_ms=50)
    assert made.agenda.next_ms == 50
    made.drop_expired(0)
    assert made.agenda.next_ms == 50


# -- the incoming request buffer -------------------------------------------------------------------


@pytest.mark.conformance("SDS-REPAIR-9", "SDS-REPAIR-12")
def test_answers_are_due_by_t_resp() -> None:
    made = incoming(20)
    planned = made.planned()
    first_ms = min(planned.values())
    assert made.agenda.next_ms == first_ms
    assert made.take_due(first_ms - 1) == []
    assert made.take_due(OPTIONS.t_max_ms) == sorted(planned, key=planned.__getitem__)
    assert len(made) == 0


@pytest.mark.conformance("SDS-REPAIR-10")
def test_a_request_is_answered_once() -> None:
    # Edge case 1: set semantics.
    made = incoming(1)
    assert not made.request(entry("m0"), 5)
    assert made.planned() == {"m0": t_resp("me", "sender", "m0", 0, OPTIONS)}


@pytest.mark.conformance("SDS-REPAIR-11")
def test_a_full_buffer_lets_go_of_the_answer_due_last() -> None:
    made = incoming(20, buffer_size=20)
    latest = max(made.planned(), key=made.planned().__getitem__)
    assert made.request(entry("new"), 0)
    assert len(made) == 20
    assert latest not in made.planned() and "new" in made.planned()


def test_a_new_answer_that_is_due_last_is_the_one_to_go() -> None:
    ids = sorted((f"m{i}" for i in range(9)), key=lambda i: t_resp("me", "sender", i, 0, OPTIONS))
    made = incoming(buffer_size=4)
    assert [made.request(entry(message_id), 0) for message_id in ids] == 4 * [True] + 5 * [False]
    assert set(made.planned()) == set(ids[:4])


def test_nobody_answers_a_request_without_a_sender() -> None:
    # Edge case 4.
    made = incoming()
    assert not made.request(entry("m", None), 0)
    assert not made.request(entry("m", ""), 0)


def test_only_members_of_the_group_answer() -> None:
    made = incoming(num_response_groups=4)
    for i in range(100):
        expected = in_response_group("me", "sender", f"m{i}", 4)
        assert made.request(entry(f"m{i}"), 0) is expected


@pytest.mark.conformance("SDS-REPAIR-13")
def test_a_removed_request_is_not_answered() -> None:
    made = incoming(2)
    made.remove("m0")
    assert made.take_due(OPTIONS.t_max_ms) == ["m1"]


# -- the cache -------------------------------------------------------------------------------------


def test_the_cache_keeps_the_newest_bytes() -> None:
    cache = RepairCache(10)
    for name in "abc":
        cache.add(name, name.encode() * 4)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, b"bbbb", b"cccc")
    assert cache.size_bytes == 8
    cache.add("b", b"other")
    cache.add("huge", bytes(11))
    assert cache.get("b") == b"bbbb" and "huge" not in cache and "c" in cache


def test_only_what_was_written_of_the_cache_is_deleted() -> None:
    recorder = Recorder()
    cache = RepairCache(8, recorder)
    cache.fill(cache.restore([("kept", 1, b"1234")], []))
    cache.add("own", b"1234", durably=True)
    for name in ("others", "more", "most"):
        cache.add(name, b"1234")
    assert recorder.take().rows == {(REPAIR_CACHE, "kept"): None, (REPAIR_CACHE, "own"): None}


# -- what a core makes of them ---------------------------------------------------------------------


def test_due_requests_travel_with_the_next_message() -> None:
    bob = participant("bob")
    bob.receive(forge("m", after=[entry(f"u{i}") for i in range(5)]), NOW_MS)
    assert decode(send(bob, b"early")).repair_request == ()
    message = decode(send(bob, b"late", LATER_MS))
    assert len(message.repair_request) == 3
    assert set(message.repair_request) <= {entry(f"u{i}") for i in range(5)}
    requested = only(events(bob, RepairRequested))
    assert requested.carrier_id == message.message_id
    assert requested.message_ids == tuple(e.message_id for e in message.repair_request)
    rest = decode(sync(bob, LATER_MS)).repair_request
    assert len(rest) == 2


def test_a_received_message_is_no_longer_asked_for_or_answered() -> None:
    bob, alice = participant("bob"), participant("alice")
    wanted = send(alice, b"wanted")
    bob.receive(forge("m", after=[HistoryEntry(wanted.message_id, None, "alice")]), NOW_MS)
    assert set(bob.repair_requests.planned()) == {wanted.message_id}
    give(bob, wanted)
    assert bob.repair_requests.planned() == {}
    request = HistoryEntry(wanted.message_id, None, "alice")
    bob.receive(forge("r", requests=[request], content=None), NOW_MS)
    assert set(bob.repair_responses.planned()) == {wanted.message_id}
    give(bob, wanted)
    assert bob.repair_responses.planned() == {}


def test_a_request_for_what_is_not_held_is_not_answered() -> None:
    bob = participant("bob")
    bob.receive(forge("parked", after=["unknown"]), NOW_MS)
    asked = [entry("unknown"), entry("parked", "mallory"), entry("never heard of")]
    bob.receive(forge("r", requests=asked), NOW_MS)
    assert bob.repair_responses.planned() == {}
    received = only(events(bob, RepairRequestReceived))
    assert received.message_ids == ("unknown", "parked", "never heard of")
    bob.on_deadline(LATER_MS)
    assert not [sent for sent in taken(bob.outgoing) if sent.kind is OutgoingKind.REPAIR]


def test_a_cache_without_room_answers_only_for_own_unacknowledged_messages() -> None:
    bob = participant("bob", repair=RepairOptions(cache_bytes=0))
    bob.receive(forge("other"), NOW_MS)
    own = send(bob, b"own").message_id
    bob.receive(forge("r", requests=[entry("other", "mallory"), entry(own, "bob")]), NOW_MS)
    assert set(bob.repair_responses.planned()) == {own}


def test_without_sds_r_nothing_is_asked_or_answered() -> None:
    bob = participant("bob", repair=RepairOptions(enabled=False))
    own = send(bob, b"own").message_id
    bob.receive(forge("m", after=["u"], requests=[entry(own, "bob")]), NOW_MS)
    assert len(bob.repair_requests) == len(bob.repair_responses) == 0
    assert decode(send(bob, b"x", LATER_MS)).repair_request == ()
    assert events(bob, RepairRequestReceived) == []


def test_a_due_request_makes_a_sync_message_even_if_others_sent_one() -> None:
    # Guide, Periodic Sync Messages with SDS-R.
    bob = participant("bob")
    bob.receive(forge("m", after=[entry("u")]), NOW_MS)
    due_ms = bob.repair_requests.planned()["u"]
    bob.receive(forge("s", content=None), due_ms - 1)
    assert bob.agenda.next_ms is not None
    bob.on_deadline(due_ms)
    (outgoing_sync,) = taken(bob.outgoing)
    assert [e.message_id for e in decode(outgoing_sync).repair_request] == ["u"]


def test_at_most_one_sync_message_a_sweep_is_sent_for_requests() -> None:
    bob = participant("bob", sync_min_interval_ms=0)
    bob.receive(forge("m", after=[entry(f"u{i}") for i in range(9)]), NOW_MS)
    times: list[int] = []
    now_ms = LATER_MS
    while len(times) < 3:
        bob.on_deadline(now_ms)
        times += [now_ms for _ in taken(bob.outgoing)]
        now_ms = max(now_ms, bob.agenda.next_ms or 0)
    assert [b - a for a, b in pairwise(times)] == [5_000, 5_000]


def test_a_message_too_long_to_send_uses_up_no_request() -> None:
    bob = participant("bob", max_message_bytes=5_000)
    bob.receive(forge("m", after=[entry("u")]), NOW_MS)
    planned = bob.repair_requests.planned()
    with pytest.raises(ValueError, match="max_message_bytes is 5000"):
        bob.send(bytes(5_000), LATER_MS)
    assert bob.repair_requests.planned() == planned
    assert events(bob, RepairRequested) == []
    assert len(decode(send(bob, b"short", LATER_MS)).repair_request) == 1


def test_after_a_restart_requests_are_planned_and_rest_as_before() -> None:
    recorder = Recorder()
    made = OutgoingRepairBuffer("me", OPTIONS, recorder=recorder)
    made.want(entry("planned"), NOW_MS, "bob")
    made.want(entry("resting"), NOW_MS)
    rests_ms = NOW_MS + 10 * MINUTE
    while "resting" in made.planned():
        made.asked(["resting"], rests_ms)
    again = OutgoingRepairBuffer("me", OPTIONS)
    again.restore(row for row in recorder.take().rows.values() if row is not None)
    assert again.planned() == made.planned() and len(again) == 2
    for now_ms, is_planned in ((rests_ms + 9 * MINUTE, False), (rests_ms + 10 * MINUTE, True)):
        for each in (made, again):
            each.want(entry("resting"), now_ms)
            assert ("resting" in each.planned()) is is_planned


def test_answers_are_planned_after_a_restart_as_before() -> None:
    recorder = Recorder()
    made = IncomingRepairBuffer("me", OPTIONS, recorder=recorder)
    for name in ("a", "b", "c"):
        made.request(entry(name), NOW_MS)
    made.remove("b")
    again = IncomingRepairBuffer("me", OPTIONS)
    again.restore(row for row in recorder.take().rows.values() if row is not None)
    assert again.planned() == made.planned() and len(again) == 2


def test_requests_of_before_the_clock_was_set_back_are_planned_anew() -> None:
    bob = participant("bob")
    bob.receive(forge("m", after=["u"]), NOW_MS)
    earlier_ms = NOW_MS - 60 * MINUTE
    bob.on_deadline(earlier_ms)
    assert bob.repair_requests.planned()["u"] <= earlier_ms + bob.options.repair.t_max_ms


def test_what_is_answered_counts_and_is_told() -> None:
    alice = participant("alice")
    sent = [send(alice, b"%d" % n).message_id for n in range(2)]
    alice.receive(forge("r", requests=[entry(i, "alice") for i in sent]), NOW_MS)
    alice.on_deadline(NOW_MS + 2 * MINUTE)
    assert alice.counters.repairs_sent == 2
    assert sorted(event.message_id for event in events(alice, RepairSent)) == sorted(sent)


def test_a_received_message_leaves_no_row_and_is_planned_at_once_if_it_goes_missing_again() -> None:
    recorder = Recorder()
    made = OutgoingRepairBuffer("me", OPTIONS, recorder=recorder)
    made.want(entry("a"), NOW_MS - 10 * MINUTE)
    while "a" in made.planned():
        made.asked(["a"], NOW_MS)
    made.remove("a")
    assert set(recorder.take().rows.values()) == {None}
    made.want(entry("a"), NOW_MS + 1)
    assert "a" in made.planned()


def test_a_request_is_recorded_as_that_of_the_referrer_with_fewest() -> None:
    recorder = Recorder()
    made = OutgoingRepairBuffer("me", OPTIONS, recorder=recorder)
    for name, referrer in (("a", "mallory"), ("b", "mallory"), ("a", "nick"), ("b", "nick")):
        made.want(entry(name), NOW_MS, referrer)
    made.asked(["a", "b"], NOW_MS)
    rows = recorder.take().rows.values()
    assert [(row[0], row[-1]) for row in rows if row] == [("a", "nick"), ("b", "mallory")]


def test_who_asked_before_us_counts_again_after_we_asked() -> None:
    made = outgoing(1, max_request_attempts=4)
    for now_ms in (1, 2):
        for _ in range(2):
            made.requested_by_other("m0", now_ms, "nick")
        made.asked(["m0"], now_ms)
        assert ("m0" in made.planned()) is (now_ms == 1)


def test_an_answer_that_another_gave_costs_its_requester_nothing() -> None:
    made = incoming(requester_answers_per_minute=1)
    assert made.request(entry("a"), NOW_MS, "nick", 10)
    assert not made.request(entry("a"), NOW_MS, "nick", 10)  # it is planned
    assert not made.request(entry("b"), NOW_MS, "nick", 10)
    made.remove("a")
    assert made.request(entry("b"), NOW_MS, "nick", 10)
    assert made.take_due(NOW_MS + 2 * MINUTE) == ["b"]
    made.remove("b")  # our own answer comes back
    assert not made.request(entry("c"), NOW_MS, "nick", 10)
