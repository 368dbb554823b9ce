"""Rules for queries to Store, without I/O.

`runtime/store_client.py` sends the queries over a transport, and simulations do so in virtual time.
The repair policy (`recovery.py`) decides when to search for a missing message. A search for a
missing message uses the retrieval hint first, then topic and time. Hints of js-waku never match,
because js-waku gives the hint and the sent message different timestamps. A hint is therefore only a
first try.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..explanation import StoreSearch
from ..sds.shares import in_turn
from .message_traces import MessageTraces
from .recovery import SKEW_MS, RepairPlan, Repairs
from .sync_core import SyncCore

LOOKBACKS_MS: Final = (60_000, 600_000, 3_600_000, 86_400_000, 30 * 86_400_000)
"""Time spans (ms) before a message was missed that are searched, one more in each search."""
HINT_BYTES: Final = 32
MAX_AT_ONCE: Final = 500
"""Maximum number of missing messages for which one round searches. The referrers of the messages
take turns, so that false references do not delay other messages."""
REST: Final = 4
"""Pause after a search by time, as a multiple of the search's duration. A false reference makes a
search read a month of Store, which must not happen all the time."""
MAX_REST_MS: Final = 60_000
LINKS: Final = 20
"""Maximum number of steps by which one round follows references from a found to a missing
message."""
TICK_MS: Final = 1_000
"""Polling interval for due work (ms), which is also the precision of a policy's times."""


@dataclass(frozen=True, slots=True)
class ByHash:
    """Query for the messages with these Waku message hashes."""

    hashes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ByTime:
    """Query for all messages with a timestamp from `start_ms` to `end_ms`. A repeated message gets
    a new timestamp, so the time of a missing message is unknown."""

    start_ms: int
    end_ms: int


Query = ByHash | ByTime
Queries = Generator[Query, None, None]
"""Queries that are sent one after another."""


class StoreQueries:
    """Planner of one participant's queries to Store. The planner reads the core and never changes
    the core."""

    def __init__(self, core: SyncCore, repairs: Repairs, message_traces: MessageTraces) -> None:
        self.tick_ms = min(TICK_MS, repairs.retrieve_frequency_ms)
        """While something is missing, a round is due this often."""
        self._core = core
        self._repairs = repairs
        self._message_traces = message_traces
        self._now_ms = 0
        """The time of the last call."""
        self._round: Iterator[Queries] | None = None
        """The looks of this round that did not begin yet."""
        self._look: Queries | None = None
        self._asked: Query | None = None
        """The query that is under way."""
        self._is_refused = False
        """True if the query by hash of this look failed."""
        self.catch_up_from_ms: int | None = None
        """Time (ms) from which a round of queries, due at once, fetches all messages, or None."""
        self._rests_until_ms = 0

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to query."""
        return self.catch_up_from_ms is None and not any(self._core.missing_tables)

    def catch_up(self, since_ms: int) -> None:
        """Fetch all messages stored since `since_ms` in the next round."""
        if self.catch_up_from_ms is None or since_ms < self.catch_up_from_ms:
            self.catch_up_from_ms = since_ms

    def next(self, now_ms: int) -> Query | None:
        """Return the next query of a round, or None at the end of the round.

        A round has two searches, because a Store that fails in one search may answer in the other.
        Pass the answers to the core before you ask for the next query. The next query depends on
        the messages that are still missing.
        """
        self._now_ms = now_ms
        if self._round is None:
            self._round = iter((self._catch_up(), self._fetch_missing()))
        while True:
            if self._look is None and (look := next(self._round, None)) is not None:
                self._look = look
            if self._look is None:
                self._round = None
                return None
            if (query := next(self._look, None)) is not None:
                self._asked = query
                return query
            self._look = None

    def failed(self, now_ms: int) -> None:
        """Note that Store did not answer the last query. The rest of the failed search waits for
        the next round.

        After a failed query by hash, the round continues with a query by time. A Store may refuse
        queries by hash, which upstream has deprecated, but still answer by time.
        """
        self._now_ms = now_ms
        if isinstance(self._asked, ByHash):
            self._is_refused = True
        elif self._look is not None:
            self._look.close()
            self._look = None

    def _catch_up(self) -> Queries:
        start_ms, self.catch_up_from_ms = self.catch_up_from_ms, None
        if start_ms is None:
            return
        try:
            yield from self._ask(self._since(start_ms))
        except GeneratorExit:
            self.catch_up(start_ms)
            raise

    def _fetch_missing(self) -> Queries:
        due, seen = self._due(), set[str]()
        for _ in range(LINKS):
            yield from self._look_for(due)
            seen.update(plan.message_id for plan in due)
            # What Store gave may refer to more that is missing, and the policy not want to wait.
            due = [plan for plan in self._due() if plan.is_past and plan.message_id not in seen]
            if self._is_refused or not due:
                return

    def _look_for(self, due: Sequence[RepairPlan]) -> Queries:
        by_hint = [p for p in due if p.step.look != "time" and _usable_hint(p) is not None]
        self._is_refused = False
        if by_hint:
            yield from self._ask(ByHash(tuple(filter(None, map(_usable_hint, by_hint)))), by_hint)
        still = self._still_missing(due)
        by_time = [
            plan
            for plan in still
            if (plan.step.look != "hint" or self._is_refused)
            and self._core.is_awaited(plan.message_id)
        ]
        rests = self._now_ms < self._rests_until_ms
        if by_time and not rests:
            lookback_ms = max(map(_lookback_ms, by_time))
            start_ms = min(plan.missing.since_ms for plan in by_time) - lookback_ms
            yield from self._ask(self._since(start_ms), by_time)
        unasked = still if self._is_refused and not by_time else by_time if rests else ()
        deferred = {plan.message_id for plan in unasked}
        self._repairs.tried(self._still_missing(still), deferred, self._now_ms)

    def _due(self) -> list[RepairPlan]:
        """What it is time to look for."""
        now_ms = self._now_ms
        due = [
            plan
            for plan in self._repairs.plans(now_ms)
            if plan.step.look_at_ms is not None and plan.step.look_at_ms <= now_ms
        ]
        if len(due) > MAX_AT_ONCE:
            due = in_turn(due, lambda plan: plan.missing.referrer_id)[:MAX_AT_ONCE]
        return due

    def _still_missing(self, plans: Sequence[RepairPlan]) -> Sequence[RepairPlan]:
        if not plans:
            return plans
        missing = {missing.entry.message_id for missing in self._core.missing()}
        return [plan for plan in plans if plan.message_id in missing]

    def _since(self, start_ms: int) -> ByTime:
        return ByTime(start_ms - SKEW_MS, self._now_ms + SKEW_MS)

    def _ask(self, query: Query, plans: Sequence[RepairPlan] = ()) -> Queries:
        """Ask, and have it learned from."""
        repairs, began_ms, by_time = self._repairs, self._now_ms, isinstance(query, ByTime)
        read_before = repairs.bytes_from_store
        try:
            yield query
        except GeneratorExit:
            self._note(plans, None, began_ms, by_time=by_time)
            repairs.store_failed(plans, self._now_ms)
            raise
        if self._is_refused and not by_time:
            self._note(plans, None, began_ms, by_time=by_time)
            repairs.store_failed(plans, self._now_ms)
            return
        took_ms = self._now_ms - began_ms
        if by_time:
            self._rests_until_ms = self._now_ms + min(REST * took_ms, MAX_REST_MS)
        left, cost_bytes = self._still_missing(plans), repairs.bytes_from_store - read_before
        self._note(plans, left, began_ms, by_time=by_time)
        repairs.store_answered(plans, left, took_ms, cost_bytes, self._now_ms, by_time=by_time)

    def _note(
        self,
        plans: Sequence[RepairPlan],
        left: Sequence[RepairPlan] | None,
        began_ms: int,
        *,
        by_time: bool,
    ) -> None:
        """Note for `explain` what Store was asked for; `left` is None where it failed."""
        remaining = {plan.message_id for plan in left or ()}
        for plan in plans:
            outcome = "not found" if plan.message_id in remaining else "found"
            self._message_traces.searched(
                plan.message_id,
                StoreSearch(
                    self._now_ms,
                    "time" if by_time else "hint",
                    self._now_ms - began_ms,
                    "failed" if left is None else outcome,
                ),
            )


def _usable_hint(plan: RepairPlan) -> bytes | None:
    hint = plan.missing.entry.retrieval_hint
    return hint if hint is not None and len(hint) == HINT_BYTES else None


def _lookback_ms(plan: RepairPlan) -> int:
    """How far before it was noticed to search: further after 1, 2, 4, 8, … looks."""
    return LOOKBACKS_MS[min(plan.store_tries.bit_length(), len(LOOKBACKS_MS) - 1)]
