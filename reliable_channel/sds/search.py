"""Search for referenced messages that are unknown, until they are found or dropped.

Two limits apply to unknown references. `ReferenceBudget` limits the rate at which references become
missing and requested messages. If too many references wait, whole batches of them are dropped.
"""

from collections import Counter
from collections.abc import Iterable

from .agenda import Slot
from .delivery import Delivery
from .dialects import Codec
from .events import MessageMissing, ReferencesDropped
from .message import HistoryEntry
from .references.causal_history import (
    CHECKED,
    FOLLOW_INTERVAL_MS,
    FOLLOWED_AT_ONCE,
    ReferenceBudget,
    UnknownReferences,
    is_too_long,
)
from .references.incoming import REFERENCE_BYTES, ArrivedMessage, ParkedMessage, in_log_order
from .references.queued import Batch
from .state import ChannelState
from .states import TRANSITIONS, State, Trigger, unchecked


class ReferenceSearch:
    """Search for unknown references, with the decision when each of them is followed."""

    def __init__(self, state: ChannelState, delivery: Delivery) -> None:
        self._state = state
        self._delivery = delivery
        self._budget = ReferenceBudget(state.options.limits.participants)

    def room(self, payer: str, now_ms: int) -> int:
        """Return how many references of a message may be followed at once."""
        return min(CHECKED, max(FOLLOWED_AT_ONCE, self._budget.room(payer, now_ms)))

    def note(
        self,
        arrived: ArrivedMessage,
        unknown: UnknownReferences,
        codec: Codec,
        now_ms: int,
        *,
        payer: str,
        parks: bool,
    ) -> set[str]:
        """Follow or queue the unknown references of a message. Return the ids that the message must
        wait for. References to lost messages are added to the `lost` list of the message."""
        message, buffer = arrived.message, self._state.incoming_buffer
        history, referrer_id = message.causal_history, message.sender_id
        unmet, followed = self._review_checked(arrived, unknown, now_ms)
        waiting = self._review_unchecked(arrived, unknown, unmet, now_ms)
        news = [history[index] for index in followed]
        for entry in news:
            buffer.note_missing(entry, now_ms, referrer_id)
            self._state.on_transition(entry.message_id, Trigger.REFERENCED)
            self._state.want(entry, now_ms, referrer_id)
        if news:
            self._budget.spend(payer, len(news), now_ms)
        if waiting:
            data = arrived.data
            buffer.queued.add(
                Batch(
                    carrier_id=message.message_id,
                    is_parked=parks,
                    referrer_id=referrer_id,
                    payer=payer,
                    since_ms=now_ms,
                    ids=waiting,
                    history=lambda: codec.decode(data).causal_history,
                    data_size=len(data) // REFERENCE_BYTES,
                )
            )
            self._on_transition(waiting, Trigger.REFERENCE_QUEUED)
            self._plan(now_ms)
        if news:
            self._state.events.append(MessageMissing(tuple(news), message.message_id, referrer_id))
        self._delivery.plan_sweep(now_ms)
        return unmet

    def follow(self, now_ms: int) -> None:
        """Follow queued references, as far as the budgets of their senders allow."""
        queued = self._state.incoming_buffer.queued
        for payer in queued.payers():
            while (room := self._budget.room(payer, now_ms)) > 0:
                if (batch := queued.next_of(payer)) is None:
                    break
                chosen = batch.newest(min(room, CHECKED))
                self._budget.spend(payer, len(chosen), now_ms)
                self._follow(batch, chosen, now_ms)
        self.bound()
        self._state.agenda.plan(Slot.FOLLOW, None)
        self._plan(now_ms)

    def bound(self) -> None:
        """Drop references until the limit of missing messages is kept. Queued references are
        dropped first."""
        state, buffer = self._state, self._state.incoming_buffer
        limit, dropped = state.options.limits.missing_entries, Counter[str]()
        while buffer.reference_count > limit:
            if buffer.queued:
                batch = buffer.queued.heaviest()
                ready, count = buffer.forget_queued(batch)
                self._on_transition(batch.ids, Trigger.LIMIT)
                dropped[batch.referrer_id] += count
            else:
                message_id = buffer.references.first_to_go()
                dropped[buffer.references.owner_of(message_id)] += 1
                ready = buffer.forget_missing(message_id)
                state.on_transition(message_id, Trigger.LIMIT)
            self._deliver(ready)
        self._report(dropped, f"more than {limit} references are missing")

    def expire(self, now_ms: int, timeout_ms: int) -> None:
        """Drop queued references that were not searched within `timeout_ms`."""
        buffer, dropped = self._state.incoming_buffer, Counter[str]()
        while (batch := buffer.queued.oldest()) and now_ms - batch.since_ms > timeout_ms:
            ready, count = buffer.forget_queued(batch)
            self._on_transition(batch.ids, Trigger.TIMEOUT)
            dropped[batch.referrer_id] += count
            self._deliver(ready)
        self._report(dropped, f"not looked for within {timeout_ms} ms")

    def _review_checked(
        self, arrived: ArrivedMessage, unknown: UnknownReferences, now_ms: int
    ) -> tuple[set[str], list[int]]:
        """What the message waits for of the newest references, which fit the budget (`room`), and
        the places of those that are not looked for yet."""
        state, message, buffer = self._state, arrived.message, self._state.incoming_buffer
        ids, history, referrer_id = message.causal_ids, message.causal_history, message.sender_id
        unmet, fresh = set[str](), list[int]()
        joins = state.joining.presumes(now_ms)
        event = Trigger.REFERENCED_JOINING if joins else Trigger.REFERENCED
        for index in unknown.checked:
            dependency = ids[index]
            if not dependency or dependency == message.message_id or dependency in unmet:
                continue
            after = TRANSITIONS[state.states.of_reference(dependency), event]
            if after.is_awaited:
                unmet.add(dependency)
            if known := buffer.missing.get(dependency):
                buffer.note_missing(known.entry, now_ms, referrer_id)
                state.want(known.entry, now_ms, referrer_id)
            elif after is State.MISSING:
                fresh.append(index)
            elif after is State.PRESUMED:
                state.joining.is_earlier(history[index], now_ms)
            elif after is State.LOST:
                # Nothing waits for it, but the referrer may have it by now.
                entry = history[index]
                arrived.lost.append(entry)
                state.want(entry, now_ms, referrer_id)
        return unmet, fresh

    def _review_unchecked(
        self, arrived: ArrivedMessage, unknown: UnknownReferences, unmet: set[str], now_ms: int
    ) -> dict[str, int]:
        """Add to `unmet` all older references; return those that are unknown, by their
        places."""
        state, message = self._state, arrived.message
        if not unknown.unchecked or state.joining.presumes(now_ms):
            return {}  # a newcomer looks for the newest alone, quietly
        ids = message.causal_ids
        waiting = {ids[i]: i for i in unknown.unchecked}
        named = waiting.keys()
        awaited, passed_over = state.states.split(named)
        passed_over |= {"", message.message_id} | unmet
        for dependency in named & (awaited | passed_over):
            del waiting[dependency]
        unmet.update(awaited, waiting)
        return waiting

    def _follow(self, batch: Batch, chosen: Iterable[str], now_ms: int) -> None:
        state, buffer = self._state, self._state.incoming_buffer
        history, news = batch.history(), list[HistoryEntry]()
        for message_id in chosen:
            if message_id not in batch.ids:
                continue  # what was delivered meanwhile took it along
            entry = history[batch.ids[message_id]]
            if (
                state.log.is_known(message_id)
                or is_too_long(entry)
                or state.joining.is_earlier(entry, now_ms)
            ):
                ready = buffer.mark_delivered(message_id)
                if is_too_long(entry):
                    state.on_transition(message_id, Trigger.LIMIT)
                self._deliver(ready)
                continue
            buffer.note_missing(entry, batch.since_ms, batch.referrer_id)
            state.on_transition(message_id, Trigger.SEARCH_BEGINS)
            news.append(entry)
            state.want(entry, now_ms, batch.referrer_id)
        if news:
            state.events.append(MessageMissing(tuple(news), batch.carrier_id, batch.referrer_id))

    def _deliver(self, ready: Iterable[ParkedMessage]) -> None:
        buffer = self._state.incoming_buffer
        for parked in in_log_order(ready):
            if parked.message.message_id in buffer.parked:
                self._delivery.deliver(buffer.take(parked.message.message_id))

    def _on_transition(self, message_ids: Iterable[str], event: Trigger) -> None:
        on_transition = self._state.on_transition
        if (
            on_transition is not unchecked
        ):  # nine hundred ids would cost about what the message costs
            for message_id in message_ids:
                on_transition(message_id, event)

    def _plan(self, now_ms: int) -> None:
        agenda = self._state.agenda
        if self._state.incoming_buffer.queued and not agenda.is_planned(Slot.FOLLOW):
            agenda.plan(Slot.FOLLOW, now_ms + FOLLOW_INTERVAL_MS)

    def _report(self, dropped: Counter[str], reason: str) -> None:
        for sender_id, count in (+dropped).items():
            self._state.events.append(ReferencesDropped(sender_id, count, reason))
            self._state.counters.references_dropped += count
