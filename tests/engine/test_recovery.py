"""When others are asked for what is missing, what a policy is shown of how that went, and what is
remembered from one look into Store to the next."""

from typing import Any

from reliable_channel._contracts.repair_policies import Missing, RepairStep
from reliable_channel.engine.recovery import (
    AWAITED_LIMIT,
    LOOKS,
    SKEW_MS,
    Confirmation,
    RepairPlan,
    Repairs,
)
from reliable_channel.engine.sync_core import Arrival, Outcome
from reliable_channel.sds import CoreLimits, RepairOptions, SdsProtocol
from reliable_channel.sds.agenda import Agenda
from reliable_channel.sds.events import Outgoing, OutgoingKind, RepairRequested
from tests.sds.world import taken

from ..sds.world import NOW_MS, SECOND, forge, next_ms, only, participant

WAIT_MS = 500


class Bob:
    """A participant, its repairs, and what their policy was shown."""

    def __init__(self, **changes: Any) -> None:
        repair = RepairOptions(repair_on_demand=True)
        self.core: SdsProtocol = participant("bob", repair=repair, **changes)
        self.shown: list[Missing] = []
        self.agenda = Agenda()
        self.repairs = Repairs(
            self.core,
            self.policy,
            now_ms=NOW_MS,
            retrieve_frequency_ms=30 * SECOND,
            has_store=True,
            agenda=self.agenda,
        )

        self.asks_after_looks = 0
        """Store is tried so often before others may be asked."""

    def policy(self, missing: Missing) -> RepairStep:
        self.shown.append(missing)
        if missing.store_tries < self.asks_after_looks:
            return RepairStep()
        return RepairStep(ask_at_ms=missing.since_ms + WAIT_MS)

    def receive(self, data: bytes, now_ms: int = NOW_MS, *, from_store: bool = False) -> None:
        arrival = self.core.receive(data, now_ms)
        self.repairs.received(arrival, len(data), now_ms, from_store=from_store)
        self.repairs.notice(taken(self.core.wanted), now_ms)

    def saw(self, now_ms: int) -> None:
        """The core asked for `u`."""
        self.repairs.saw(RepairRequested(("u",), "sync"), now_ms)

    def last_shown(self, now_ms: int) -> Missing:
        """What the policy is shown of `u` after a look into Store."""
        self.repairs.tried(self.repairs.plans(now_ms), (), now_ms)
        return self.shown[-1]


def test_others_are_asked_when_the_policy_says_and_not_before() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u"]))
    assert bob.agenda.next_ms == NOW_MS + WAIT_MS
    bob.repairs.on_deadline(NOW_MS + WAIT_MS - 1)
    assert not bob.core.repair_requests.planned()
    bob.repairs.on_deadline(NOW_MS + WAIT_MS)
    assert bob.core.repair_requests.planned().keys() == {"u"}
    assert next_ms(bob.agenda) is None


def test_whose_time_is_over_is_asked_for_at_once() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u"]))
    bob.repairs.on_deadline(NOW_MS + WAIT_MS)
    bob.core.repair_requests.remove("u")
    bob.receive(forge("n", sender="nick", after=["u"]), NOW_MS + WAIT_MS)
    assert bob.core.repair_requests.planned().keys() == {"u"}


def test_others_are_asked_after_a_look_if_the_policy_says_so_then() -> None:
    bob = Bob()
    bob.asks_after_looks = 1
    bob.receive(forge("m", after=["u"]))
    assert next_ms(bob.agenda) is None
    bob.last_shown(NOW_MS)
    assert bob.agenda.next_ms == NOW_MS + WAIT_MS
    bob.repairs.on_deadline(NOW_MS + WAIT_MS)
    assert bob.core.repair_requests.planned().keys() == {"u"}
    bob.last_shown(NOW_MS + WAIT_MS)
    assert next_ms(bob.agenda) is None  # asked once; the core does the rest


def test_nobody_is_asked_for_what_came_meanwhile() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u"]))
    bob.receive(forge("u"))
    assert next_ms(bob.agenda) is None
    bob.repairs.on_deadline(NOW_MS + WAIT_MS)
    assert not bob.core.repair_requests.planned()


def test_a_policy_is_shown_the_message_and_the_others() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u"]))
    shown = only(bob.shown)
    assert (shown.entry.message_id, shown.since_ms, shown.began_ms) == ("u", NOW_MS, NOW_MS)
    assert (shown.interval_ms, shown.is_awaited, shown.others.count) == (30 * SECOND, True, 1)
    assert (shown.store_tries, shown.last_try_ms, shown.asked, shown.store.exists) == (
        0,
        None,
        0,
        True,
    )
    assert shown.others.asked.tries == 0


def test_a_request_that_is_repeated_found_nothing_and_one_that_helped_is_timed() -> None:
    bob, answer = Bob(), forge("u")
    bob.receive(forge("m", after=["u"]))
    bob.saw(NOW_MS + SECOND)
    shown = bob.last_shown(NOW_MS + SECOND)
    assert (shown.asked, shown.store_tries, shown.last_try_ms) == (1, 1, NOW_MS + SECOND)
    assert shown.others.asked.tries == 0
    bob.saw(NOW_MS + 3 * SECOND)
    shown = bob.last_shown(NOW_MS + 3 * SECOND)
    asked = shown.others.asked
    assert (shown.asked, shown.store_tries) == (2, 2)
    assert (asked.tries, asked.found, asked.took_ms) == (1, 0.0, 2 * SECOND)
    bob.receive(answer, NOW_MS + 5 * SECOND)
    bob.receive(forge("n", after=["v"]), NOW_MS + 5 * SECOND)
    asked = bob.shown[-1].others.asked
    assert (asked.tries, asked.found, asked.took_ms) == (2, 0.5, 3 * SECOND)
    assert asked.cost_bytes == len(answer) / 2


def test_what_store_gave_is_measured_and_is_no_answer_to_a_request() -> None:
    bob, found = Bob(), forge("u")
    bob.receive(forge("m", after=["u"]))
    bob.saw(NOW_MS + SECOND)
    for _ in range(2):
        bob.receive(found, NOW_MS + 2 * SECOND, from_store=True)
    assert bob.repairs.bytes_from_store == 2 * len(found)
    bob.receive(forge("n", after=["v"]), NOW_MS + 2 * SECOND)
    assert bob.shown[-1].others.asked.tries == 0


def answered(bob: Bob, plans: list[RepairPlan], *, found: int, by_time: bool = False) -> Missing:
    left = plans[found:]
    bob.repairs.store_answered(plans, left, 100, 1_000, NOW_MS, by_time=by_time)
    bob.repairs.tried(plans, (), NOW_MS)
    return bob.shown[-1]


def test_what_store_found_is_shown_by_the_way_of_the_look() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u", "v", "w", "x"]))
    plans = bob.repairs.plans(NOW_MS)
    store = answered(bob, plans, found=1).store
    assert (store.by_hint.tries, store.by_hint.found) == (1, 0.25)
    assert (store.by_hint.took_ms, store.by_hint.cost_bytes) == (100, 1_000)
    assert store.by_time.tries == store.again.tries == 0
    store = answered(bob, plans, found=2).store
    assert (store.by_hint.tries, store.again.tries, store.again.found) == (1, 1, 0.5)
    fresh = [RepairPlan(plan.missing) for plan in plans]
    store = answered(bob, fresh, found=4, by_time=True).store
    assert (store.by_time.tries, store.by_time.found, store.by_hint.tries) == (1, 1.0, 1)


def test_all_are_decided_anew_when_store_fails_and_when_it_answers_again() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u", "v", "w"]))
    plans = bob.repairs.plans(NOW_MS)
    bob.shown.clear()
    for n, count in ((1, 3), (2, 1)):  # the first time all, then what was looked for
        bob.repairs.store_failed(plans[:1], NOW_MS + n)
        assert len(bob.shown) == count
        store = bob.shown[-1].store
        assert (store.failures, store.failed_ms) == (n, NOW_MS + n)
        bob.shown.clear()
    bob.repairs.store_answered(plans[:1], [], 100, 0, NOW_MS + 3, by_time=False)
    assert [shown.store.failures for shown in bob.shown] == [0, 0, 0]


def test_a_look_that_was_put_off_does_not_count() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u", "v"]))
    plans = bob.repairs.plans(NOW_MS)
    bob.shown.clear()
    bob.repairs.tried(plans, ["v"], NOW_MS)
    assert [(s.entry.message_id, s.store_tries, s.last_try_ms) for s in bob.shown] == [
        ("u", 1, NOW_MS),
        ("v", 0, NOW_MS),
    ]


def test_plans_are_made_for_what_is_missing_now_and_others_dropped() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u", "v"]))
    before = bob.repairs.plans(NOW_MS)
    assert [plan.message_id for plan in before] == ["u", "v"]
    assert [plan.is_looked_for for plan in before] == [True, True]
    bob.core.receive(forge("u"), NOW_MS)  # as a look into Store found it
    (left,) = bob.repairs.plans(NOW_MS)
    assert left is before[1]
    bob.repairs.on_deadline(NOW_MS + WAIT_MS)
    assert bob.core.repair_requests.planned().keys() == {"v"}


def test_what_came_and_had_to_make_room_is_missing_as_if_for_the_first_time() -> None:
    bob = Bob(limits=CoreLimits(incoming_messages=1))
    bob.receive(forge("s", content=None, after=["u"]))
    bob.repairs.plans(NOW_MS)
    bob.saw(NOW_MS)
    assert bob.last_shown(NOW_MS).asked == 1
    bob.receive(forge("u", after=["never"]))
    bob.receive(forge("v", after=["never"]))  # makes room for itself
    bob.last_shown(NOW_MS)
    assert [s.asked for s in bob.shown if s.entry.message_id == "u"][-1] == 0


def test_a_policy_may_put_off_or_call_off_what_it_had_planned() -> None:
    class Hesitant(Bob):
        def policy(self, missing: Missing) -> RepairStep:
            at_ms = missing.since_ms + (1 + missing.store_tries) * WAIT_MS
            return RepairStep(ask_at_ms=at_ms if missing.store_tries < 2 else None)

    bob = Hesitant()
    bob.receive(forge("m", after=["u"]))
    bob.repairs.tried(bob.repairs.plans(NOW_MS), (), NOW_MS)
    assert bob.agenda.next_ms == NOW_MS + 2 * WAIT_MS
    bob.repairs.on_deadline(NOW_MS + WAIT_MS)
    assert not bob.core.repair_requests.planned()
    bob.repairs.tried(bob.repairs.plans(NOW_MS), (), NOW_MS)
    assert next_ms(bob.agenda) is None
    bob.repairs.on_deadline(NOW_MS + 2 * WAIT_MS)
    assert not bob.core.repair_requests.planned()


def test_what_a_message_of_store_refers_to_is_of_the_past_and_what_comes_live_is_not() -> None:
    bob = Bob()
    bob.receive(forge("m", after=["u"]), from_store=True)
    bob.receive(forge("n", sender="nick", after=["v"]))
    assert [(each.entry.message_id, each.is_past) for each in bob.shown] == [
        ("u", True),
        ("v", False),
    ]


def confirmation() -> Confirmation:
    return Confirmation(interval_ms=30_000, now_ms=NOW_MS)


def sent(it: Confirmation, name: str, kind: OutgoingKind = OutgoingKind.CONTENT) -> bytes:
    it.dispatched(Outgoing(kind, name, b"data"), name.encode(), 1)
    return name.encode()


def test_an_own_message_is_confirmed_once() -> None:
    it = confirmation()
    message_hash = sent(it, "a")
    assert [it.stored(message_hash), it.stored(message_hash)] == ["a", None]
    assert list(it.absent(2)) == []


def test_a_message_is_absent_after_enough_looks_that_reached_it() -> None:
    it = confirmation()
    sent(it, "a")
    assert [list(it.absent(reached_ns)) for reached_ns in (0, 1, 1, 1, 1)] == [
        [], [], ["a"], [], ["a"],
    ]  # fmt: skip
    it.forget("a")
    assert list(it.absent(1)) == []


def test_each_copy_of_a_message_confirms_it() -> None:
    it = confirmation()
    sent(it, "a")
    it.dispatched(Outgoing(OutgoingKind.RETRY, "a", b"data"), b"again", 2)
    assert it.stored(b"again") == "a"
    assert it.stored(b"a") is None


def test_a_repetition_in_the_same_envelope_is_one_copy() -> None:
    """As by a clock that was set back to the very millisecond (seed 37009748)."""
    it = confirmation()
    message_hash = sent(it, "a")
    it.dispatched(Outgoing(OutgoingKind.RETRY, "a", b"data"), message_hash, 1)
    assert [it.stored(message_hash), it.stored(message_hash)] == ["a", None]


def test_syncs_are_known_and_not_looked_for() -> None:
    it = confirmation()
    message_hash = sent(it, "s", OutgoingKind.SYNC)
    assert it.knows(message_hash)
    assert it.stored(message_hash) is None


def test_echoes_of_own_messages_do_not_show_that_others_are_heard() -> None:
    it = confirmation()
    assert not it.came_live(sent(it, "a"), Arrival(Outcome.DUPLICATE))
    assert not it.came_live(b"b", Arrival(Outcome.OWN))
    assert not it.heard_anything()
    assert it.came_live(b"c", Arrival(Outcome.DELIVERED))
    assert [it.heard_anything(), it.heard_anything()] == [True, False]
    assert [it.knows(each) for each in (b"a", b"b", b"c", b"d")] == [True, True, True, False]


def test_a_look_goes_back_two_intervals_but_not_before_the_opening() -> None:
    it = confirmation()
    assert it.look_from_ms(NOW_MS + 1) == NOW_MS
    later_ms = NOW_MS + 3_600_000
    assert it.look_from_ms(later_ms) == later_ms - LOOKS * 30_000 - SKEW_MS


def test_the_oldest_are_dropped() -> None:
    it = confirmation()
    for number in range(AWAITED_LIMIT + 1):
        sent(it, str(number))
    assert [it.stored(b"0"), it.stored(b"1")] == [None, "1"]


def test_a_message_that_was_sent_again_is_not_absent_before_a_look_reached_the_copy() -> None:
    it = confirmation()
    sent(it, "a")
    it.dispatched(Outgoing(OutgoingKind.RETRY, "a", b"data"), b"again", 5)
    assert [list(it.absent(reached_ns)) for reached_ns in (4, 4, 5, 5)] == [[], [], [], ["a"]]
