"""Plans for finding missing messages. The plans follow a repair policy, and collect the facts that
the policy needs.

This module does no I/O. After each step of the core, the owner passes the events and received
messages and calls `step`. Other participants are asked for a message only when the repair policy
permits it. `engine/store_queries.py` executes the planned Store queries.
"""

from collections.abc import Collection, Iterable, Sequence
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
from ..sds.agenda import Agenda, Slot
from ..sds.events import RepairRequested
from ..sds.references.incoming import MissingEntry
from ..sds.timetable import Timetable
from .sync_core import Arrival, SyncCore

SLACK: Final = 1_000
"""Number of plans that are kept in addition to twice the number of missing messages."""


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
