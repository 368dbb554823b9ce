"""Plans for finding missing messages, and comparison of own and received messages with Store.

The plans follow a repair policy, and collect the facts that the policy needs. A comparison also
finds a dead subscription, which otherwise looks like a quiet network. One query by content topic
finds own messages that Store lacks, and missed messages in Store (LIP 172, P2P reliability).
Ephemeral messages are not expected in Store, because Store does not keep them.

This module does no I/O. The owner passes missing messages, repair requests and received messages,
and calls `on_deadline`. Other participants are asked for a message only when the repair policy
permits it. `engine/store_queries.py` executes the planned Store queries.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from .._contracts.repair_policies import (
    Missing,
    Peers,
    RecentOutcomes,
    RepairPolicy,
    RepairStep,
    StoreState,
)
from ..sds.agenda import Agenda, Slot, Timetable
from ..sds.events import Outgoing, OutgoingKind, RepairRequested
from ..sds.ids import RecentSet
from ..sds.references.incoming import MissingEntry
from .sync_core import Arrival, Outcome, SyncCore

SLACK: Final = 1_000
"""Number of plans that are kept in addition to twice the number of missing messages."""
SKEW_MS: Final = 30_000
"""Maximum expected difference between clocks (ms), because Store orders messages by sender time."""
LOOKS: Final = 2
"""Number of queries in which a message must be absent before it counts as not stored."""
AWAITED_LIMIT: Final = 10_000
"""Maximum number of own messages that are looked for in Store. The oldest of these messages are
dropped."""
RECENT_LIMIT: Final = 20_000
"""Maximum number of remembered hashes of own messages, and of received live messages."""


@dataclass(slots=True)
class RepairPlan:
    """Attempts to find one missing message, and the next step."""

    missing: MissingEntry
    step: RepairStep = field(default_factory=RepairStep)
    store_tries: int = 0
    last_try_ms: int | None = None
    asked: int = 0
    first_asked_ms: int = 0
    is_held: bool = False
    """True if the core waits for permission to ask other participants."""
    is_past: bool = False
    """True if the message that refers to the missing message came from Store."""
    is_looked_for: bool = False
    """True if the round of Store queries in progress includes the message."""

    @property
    def message_id(self) -> str:
        """Id of the missing message."""
        return self.missing.entry.message_id


class Repairs:
    """Plans of one participant for its missing messages."""

    def __init__(
        self,
        core: SyncCore,
        policy: RepairPolicy,
        *,
        now_ms: int,
        retrieve_frequency_ms: int,
        has_store: bool,
        agenda: Agenda,
    ) -> None:
        self.retrieve_frequency_ms = retrieve_frequency_ms
        self.bytes_from_store = 0
        """All that Store gave."""
        self._core = core
        self._policy = policy
        self._began_ms = now_ms
        self._plans: dict[str, RepairPlan] = {}
        self._most = SLACK
        """With more plans than these it is looked whether all are still needed."""
        self._agenda = agenda
        self._asks = Timetable(partial(agenda.plan, Slot.RECOVERY))
        """When the policy lets others be asked for what is held."""
        self._store = StoreState(exists=has_store)
        self._others = Peers()
        self._reads_store = False
        """True if the last message came from Store."""

    # -- beside the core ---------------------------------------------------------------------------

    def notice(self, wanted: Iterable[MissingEntry], now_ms: int) -> None:
        """Plan the search for messages that the core has begun to want."""
        self._count_others()
        for missing in wanted:
            self._notice(missing, now_ms)
        if len(self._plans) > self._most:
            self.plans(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Let the core ask participants for each message that is due."""
        self._reads_store = False
        if self._agenda.is_due(Slot.RECOVERY, now_ms):
            for message_id in self._asks.until(now_ms, len(self._asks)):
                self._ask(self._plans[message_id], now_ms)

    def saw(self, event: RepairRequested, now_ms: int) -> None:
        """Note that the core asked other participants for messages."""
        for message_id in event.message_ids:
            if plan := self._plans.get(message_id):
                self._requested(plan, now_ms)

    def received(self, arrival: Arrival, size_bytes: int, now_ms: int, *, from_store: bool) -> None:
        """Note that the core received a message."""
        self._reads_store = from_store
        if from_store:
            self.bytes_from_store += size_bytes
        if arrival.missing_for_ms is None or (plan := self._plans.get(arrival.message_id)) is None:
            return
        if plan.asked and not from_store:
            self._heard_of_request(1.0, now_ms - plan.first_asked_ms, size_bytes)
        plan.asked = 0
        self._release(plan)
        if not plan.is_looked_for:
            del self._plans[arrival.message_id]
        # Else it stays until the next round: what has to make room is missing again at once.

    # -- for the looks into Store ------------------------------------------------------------------

    def plans(self, now_ms: int) -> list[RepairPlan]:
        """Return the plans for all missing messages, in the order of the core. All other plans are
        removed."""
        before, self._plans = self._plans, {}
        if all_missing := self._core.missing():
            self._count_others()
        for missing in all_missing:
            message_id = missing.entry.message_id
            if (plan := before.pop(message_id, None)) is None:
                plan = self._new(missing, now_ms, is_past=False)
            plan.missing, plan.is_looked_for = missing, True
            self._plans[message_id] = plan
        for plan in before.values():
            self._release(plan)
        self._most = 2 * len(self._plans) + SLACK
        return list(self._plans.values())

    def tried(self, plans: Collection[RepairPlan], deferred: Collection[str], now_ms: int) -> None:
        """Note that a query found none of the planned messages. The query for the ids in `deferred`
        was incomplete."""
        for plan in plans:
            plan.store_tries += plan.message_id not in deferred
            plan.last_try_ms = now_ms
            self._decide(plan, now_ms)

    def store_answered(
        self,
        plans: Sequence[RepairPlan],
        left: Collection[RepairPlan],
        took_ms: int,
        cost_bytes: int,
        now_ms: int,
        *,
        by_time: bool,
    ) -> None:
        """Note that Store answered a query for the planned messages. `left` names the messages that
        are still missing."""
        was_away, remaining = bool(self._store.failures), {plan.message_id for plan in left}
        store = replace(self._store, failures=0)

        def after(lately: RecentOutcomes, asked: Sequence[RepairPlan]) -> RecentOutcomes:
            found = sum(plan.message_id not in remaining for plan in asked)
            return lately.after(found / len(asked), took_ms, cost_bytes) if asked else lately

        first = [plan for plan in plans if not plan.store_tries]
        if by_time:
            store = replace(store, by_time=after(store.by_time, first))
        else:
            store = replace(store, by_hint=after(store.by_hint, first))
        later = [plan for plan in plans if plan.store_tries]
        self._store = replace(store, again=after(store.again, later))
        if was_away:
            self._decide_on(self._plans.values(), now_ms)

    def store_failed(self, plans: Iterable[RepairPlan], now_ms: int) -> None:
        """Note that Store did not answer a query for the planned messages."""
        first = not self._store.failures
        self._store = replace(self._store, failures=self._store.failures + 1, failed_ms=now_ms)
        self._decide_on(self._plans.values() if first else plans, now_ms)

    # -- inside ------------------------------------------------------------------------------------

    def _notice(self, missing: MissingEntry, now_ms: int) -> None:
        plan = self._plans.get(missing.entry.message_id)
        if plan is None:
            plan = self._new(missing, now_ms, is_past=self._reads_store)
        elif plan.is_held:
            return
        plan.is_held = True
        self._plans[plan.message_id] = plan
        if plan.step.ask_at_ms is not None and plan.step.ask_at_ms <= now_ms:
            plan.missing = missing
            self._ask(plan, now_ms)
        else:
            self._hold(plan)

    def _ask(self, plan: RepairPlan, now_ms: int) -> None:
        self._release(plan)
        self._core.ask_participants(plan.missing, now_ms)

    def _requested(self, plan: RepairPlan, now_ms: int) -> None:
        if plan.asked:
            self._heard_of_request(0.0, now_ms - plan.first_asked_ms, 0)
        else:
            plan.first_asked_ms = now_ms
        plan.asked += 1

    def _heard_of_request(self, found: float, took_ms: int, cost_bytes: int) -> None:
        asked = self._others.asked.after(found, took_ms, cost_bytes)
        self._others = replace(self._others, asked=asked)

    def _count_others(self) -> None:
        self._others = replace(self._others, count=self._core.statistics().participants)

    def _new(self, missing: MissingEntry, now_ms: int, *, is_past: bool) -> RepairPlan:
        plan = RepairPlan(missing, is_past=is_past)
        self._decide(plan, now_ms)
        return plan

    def _decide_on(self, plans: Iterable[RepairPlan], now_ms: int) -> None:
        for plan in plans:
            self._decide(plan, now_ms)

    def _decide(self, plan: RepairPlan, now_ms: int) -> None:
        plan.step = self._policy(
            Missing(
                plan.missing.entry,
                now_ms,
                plan.missing.since_ms,
                self.retrieve_frequency_ms,
                self._began_ms,
                self._core.is_awaited(plan.message_id),
                plan.store_tries,
                plan.last_try_ms,
                plan.asked,
                self._store,
                self._others,
                plan.is_past,
            )
        )
        if plan.is_held:
            self._hold(plan)

    def _hold(self, plan: RepairPlan) -> None:
        self._asks.remove(plan.message_id)
        if plan.step.ask_at_ms is not None:
            self._asks.add(plan.message_id, plan.step.ask_at_ms)

    def _release(self, plan: RepairPlan) -> None:
        plan.is_held = False
        self._asks.remove(plan.message_id)


@dataclass(slots=True)
class _Awaited:
    """An own message that Store was not seen to have."""

    newest_ns: int
    """The timestamp of its newest envelope."""
    hashes: set[bytes] = field(default_factory=set)
    """Of all envelopes that it was sent in. By a clock that was set back two may be one."""
    looks: int = 0


class Confirmation:
    """State that is kept between two confirmation queries to Store."""

    def __init__(self, *, interval_ms: int, now_ms: int) -> None:
        self.interval_ms: Final = interval_ms
        """Between two looks; 0 where there are none."""
        self._opened_ms = now_ms
        self._awaited: dict[str, _Awaited] = {}
        self._message_ids: dict[bytes, str] = {}
        self.own: Final = RecentSet[bytes](RECENT_LIMIT)
        """Hashes of own messages; open to read."""
        self._came = RecentSet[bytes](RECENT_LIMIT)
        self._heard = self._heard_before = 0

    def dispatched(self, outgoing: Outgoing, message_hash: bytes, timestamp_ns: int) -> None:
        """Note a sent message, which Store is expected to have from now on."""
        self.own.add(message_hash)
        message_id = outgoing.message_id
        if outgoing.kind is OutgoingKind.CONTENT and self.interval_ms:
            self._awaited[message_id] = _Awaited(timestamp_ns)
            if len(self._awaited) > AWAITED_LIMIT:
                self.forget(next(iter(self._awaited)))
        elif outgoing.kind is not OutgoingKind.RETRY:
            return
        if awaited := self._awaited.get(message_id):
            awaited.newest_ns = timestamp_ns
            awaited.hashes.add(message_hash)
            self._message_ids[message_hash] = message_id

    def came_live(self, message_hash: bytes, arrival: Arrival) -> bool:
        """Note a message that arrived live. Return True if the message shows that the subscription
        works. Own messages do not show that, because a disconnected node echoes them."""
        if message_hash in self.own:
            return False
        self._came.add(message_hash)
        is_others = arrival.outcome is not Outcome.OWN
        self._heard += is_others
        return is_others

    def look_from_ms(self, now_ms: int) -> int:
        """Return the start time of the next confirmation query (ms)."""
        return max(now_ms - LOOKS * self.interval_ms - SKEW_MS, self._opened_ms)

    def stored(self, message_hash: bytes) -> str | None:
        """Note that Store has a message. Return the id of the own message that is confirmed for the
        first time, or None."""
        message_id = self._message_ids.get(message_hash)
        if message_id is not None:
            self.forget(message_id)
        return message_id

    def absent(self, reached_ns: int) -> Iterator[str]:
        """Yield the ids of own messages that Store lacked in enough queries. The last query covered
        messages stamped up to `reached_ns`. Call `forget` for messages that are not sent again."""
        for message_id, awaited in list(self._awaited.items()):
            if awaited.newest_ns <= reached_ns:
                awaited.looks += 1
                if awaited.looks >= LOOKS:
                    awaited.looks = 0
                    yield message_id

    def knows(self, message_hash: bytes) -> bool:
        """Return True if the hash belongs to an own message, or to a message that arrived live."""
        return message_hash in self.own or message_hash in self._came

    def heard_anything(self) -> bool:
        """Return True if a message of another participant arrived live since the last call."""
        heard, self._heard_before = self._heard - self._heard_before, self._heard
        return heard > 0

    def forget(self, message_id: str) -> None:
        """Stop looking for an own message in Store."""
        for message_hash in self._awaited.pop(message_id).hashes:
            del self._message_ids[message_hash]
