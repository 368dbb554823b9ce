"""What Store is asked for, and what becomes of an answer that does not come."""

from typing import Literal

from reliable_channel._contracts.repair_policies import Look, Missing, RepairStep
from reliable_channel.engine.message_traces import MessageTraces
from reliable_channel.engine.recovery import SKEW_MS, Repairs
from reliable_channel.engine.store_queries import (
    LINKS,
    LOOKBACKS_MS,
    MAX_REST_MS,
    REST,
    ByHash,
    ByTime,
    StoreQueries,
)
from reliable_channel.explanation import StoreSearch
from reliable_channel.sds import HistoryEntry, RepairOptions
from reliable_channel.sds.agenda import Agenda
from tests.sds.world import taken

from ..sds.world import NOW_MS, SECOND, forge, participant

HINT = bytes(32)


class Bob:
    """A participant whose policy has Store asked in one way at each round."""

    def __init__(self, look: Look, hint: bytes | None = HINT) -> None:
        self.core = participant("bob", repair=RepairOptions(repair_on_demand=True))
        self.shown: list[Missing] = []
        self.look: Look = look
        self.repairs = Repairs(
            self.core,
            self.policy,
            now_ms=NOW_MS,
            retrieve_frequency_ms=30 * SECOND,
            has_store=True,
            agenda=Agenda(),
        )
        self.message_traces = MessageTraces("bob", proves_copies=True)
        self.queries = StoreQueries(self.core, self.repairs, self.message_traces)
        self.core.receive(forge("m", after=[HistoryEntry("u", hint, "alice")]), NOW_MS)

    def policy(self, missing: Missing) -> RepairStep:
        self.shown.append(missing)
        return RepairStep(look_at_ms=missing.since_ms, look=self.look)

    def searches(self) -> tuple[StoreSearch, ...]:
        """What `explain` shows of the missing message."""
        return self.message_traces.explain("u", None, NOW_MS).searches


def lookback(step: int, now_ms: int) -> ByTime:
    return ByTime(NOW_MS - LOOKBACKS_MS[step] - SKEW_MS, now_ms + SKEW_MS)


def test_nothing_missing_nothing_asked() -> None:
    bob = Bob("hint")
    bob.core.receive(forge("u"), NOW_MS)
    assert bob.queries.is_idle and bob.queries.catch_up_from_ms is None
    assert bob.queries.next(NOW_MS) is None


def test_all_since_the_earliest_time_is_fetched_once() -> None:
    bob = Bob("hint", hint=None)
    for since_ms in (NOW_MS - 5, NOW_MS - 9, NOW_MS - 7):
        bob.queries.catch_up(since_ms)
    assert bob.queries.catch_up_from_ms is not None and not bob.queries.is_idle
    assert bob.queries.next(NOW_MS) == ByTime(NOW_MS - 9 - SKEW_MS, NOW_MS + SKEW_MS)
    assert bob.queries.next(NOW_MS) is None
    assert bob.queries.catch_up_from_ms is None


def test_a_fetch_that_failed_is_made_again_in_the_next_round_and_the_other_look_is_made() -> None:
    bob = Bob("hint")
    bob.queries.catch_up(NOW_MS - 9)
    bob.queries.next(NOW_MS)
    bob.queries.failed(NOW_MS)
    assert bob.queries.catch_up_from_ms is not None
    assert bob.queries.next(NOW_MS) == ByHash((HINT,))
    assert bob.queries.next(NOW_MS) is None
    assert bob.queries.next(NOW_MS) == ByTime(NOW_MS - 9 - SKEW_MS, NOW_MS + SKEW_MS)


def test_a_store_that_refuses_hashes_is_asked_by_time() -> None:
    bob = Bob("hint")
    assert bob.queries.next(NOW_MS) == ByHash((HINT,))
    bob.queries.failed(NOW_MS)
    assert bob.queries.next(NOW_MS) == lookback(0, NOW_MS)
    assert bob.queries.next(NOW_MS) is None
    store = bob.shown[-1].store
    assert (store.failures, store.by_hint.tries, store.by_time.tries) == (0, 0, 1)


def test_where_the_hint_found_it_nothing_more_is_asked() -> None:
    bob = Bob("hint-then-time")
    assert bob.queries.next(NOW_MS) == ByHash((HINT,))
    bob.core.receive(forge("u"), NOW_MS)
    assert bob.queries.next(NOW_MS) is None


def test_a_search_by_time_goes_further_back_with_each_look() -> None:
    bob = Bob("time")
    for store_tries in range(6):
        now_ms = NOW_MS + store_tries * SECOND
        assert bob.queries.next(now_ms) == lookback(store_tries.bit_length(), now_ms)
        assert bob.queries.next(now_ms) is None
    assert bob.shown[-1].store_tries == 6


def test_a_search_that_is_not_answered_is_no_answer_and_no_look() -> None:
    bob = Bob("time")
    for failures in (1, 2):
        assert bob.queries.next(NOW_MS) == lookback(0, NOW_MS)
        bob.queries.failed(NOW_MS + SECOND)
        shown = bob.shown[-1]
        assert (shown.store.failures, shown.store_tries) == (failures, 0)
        assert shown.store.by_time.tries == 0
        assert bob.queries.next(NOW_MS + SECOND) is None


def test_after_a_long_search_none_begins_for_a_while() -> None:
    for took_ms, rests_ms in ((SECOND, REST * SECOND), (100 * SECOND, MAX_REST_MS)):
        bob = Bob("time")
        bob.queries.next(NOW_MS)
        ended_ms = NOW_MS + took_ms
        assert bob.queries.next(ended_ms) is None
        store_tries = bob.shown[-1].store_tries
        assert bob.queries.next(ended_ms + rests_ms - 1) is None
        assert bob.shown[-1].store_tries == store_tries == 1  # put off
        assert bob.queries.next(ended_ms + rests_ms) == lookback(1, ended_ms + rests_ms)


class Newcomer(Bob):
    """Bob, of whose messages from Store each refers to the one before."""

    def __init__(self) -> None:
        super().__init__("hint")

    def policy(self, missing: Missing) -> RepairStep:
        """At once, what Store's messages refer to; else after a second."""
        self.shown.append(missing)
        wait_ms = 0 if missing.is_past else SECOND
        return RepairStep(look_at_ms=missing.since_ms + wait_ms, look=self.look)

    def take(self, name: str, after: str, now_ms: int, *, from_store: bool = True) -> None:
        data = forge(name, after=[HistoryEntry(after, after.encode().ljust(32), "alice")])
        arrival = self.core.receive(data, now_ms)
        self.repairs.received(arrival, len(data), now_ms, from_store=from_store)
        self.repairs.notice(taken(self.core.wanted), now_ms)


def hashes(query: object) -> list[str]:
    assert isinstance(query, ByHash)
    return [each.decode().strip() for each in query.hashes]


def test_a_round_follows_what_messages_from_store_refer_to() -> None:
    bob, now_ms = Newcomer(), NOW_MS + SECOND
    bob.take("v", "live", NOW_MS, from_store=False)
    assert bob.queries.next(NOW_MS) is None
    query = bob.queries.next(now_ms)
    assert isinstance(query, ByHash) and len(query.hashes) == 2
    bob.take("u", "u1", now_ms)
    assert hashes(bob.queries.next(now_ms)) == ["u1"]
    bob.take("u1", "u2", now_ms)
    assert hashes(bob.queries.next(now_ms)) == ["u2"]
    assert bob.queries.next(now_ms) is None, "u2 was not there, and has its next look later"
    assert bob.core.missing()


def test_what_a_live_message_refers_to_waits_for_its_time() -> None:
    bob, now_ms = Newcomer(), NOW_MS + SECOND
    bob.queries.next(now_ms)
    bob.take("u", "u1", now_ms, from_store=False)
    assert bob.queries.next(now_ms) is None


def test_a_round_ends_however_long_the_chain_is() -> None:
    bob, now_ms = Newcomer(), NOW_MS + SECOND
    names, queries = ["u", *(f"u{number}" for number in range(100))], 0
    while bob.queries.next(now_ms) is not None:
        bob.take(names[queries], names[queries + 1], now_ms)
        queries += 1
    assert queries == LINKS


def test_a_store_that_refused_hashes_is_asked_for_no_more_of_them_in_this_round() -> None:
    bob, now_ms = Newcomer(), NOW_MS + SECOND
    assert hashes(bob.queries.next(now_ms)) == [HINT.decode()]
    bob.queries.failed(now_ms)
    assert isinstance(bob.queries.next(now_ms), ByTime)
    bob.take("u", "u1", now_ms)
    assert bob.queries.next(now_ms) is None
    assert hashes(bob.queries.next(now_ms)) == ["u1"], "the next round tries again"


def test_explain_shows_how_each_search_ended_and_how_long_it_took() -> None:
    later_ms = NOW_MS + SECOND
    store_tries: tuple[Literal["hint", "time"], ...] = ("hint", "time")
    for look in store_tries:
        found = Bob(look)
        found.queries.next(NOW_MS)
        found.core.receive(forge("u"), later_ms)
        found.queries.next(later_ms)
        assert found.searches() == (StoreSearch(later_ms, look, SECOND, "found"),)
        absent = Bob(look)
        absent.queries.next(NOW_MS)
        absent.queries.next(later_ms)
        assert absent.searches() == (StoreSearch(later_ms, look, SECOND, "not found"),)


def test_explain_shows_searches_that_failed() -> None:
    bob, later_ms = Bob("hint"), NOW_MS + SECOND
    bob.queries.next(NOW_MS)
    bob.queries.failed(later_ms)
    bob.queries.next(later_ms)
    bob.queries.failed(later_ms + SECOND)
    assert bob.searches() == (
        StoreSearch(later_ms, "hint", SECOND, "failed"),
        StoreSearch(later_ms + SECOND, "time", SECOND, "failed"),
    )
