"""Delivery of messages, and their declaration as lost (LIP 109, Deliver Message and Periodic
Incoming Buffer Sweep)."""

from collections import deque

from .agenda import Slot
from .events import MessageLost, MessageReceived
from .message import HistoryEntry, LogEntry
from .references.incoming import ArrivedMessage, in_log_order
from .state import ChannelState
from .states import Trigger

JOINING_TIMEOUT_MS = 300_000
"""Time (ms) for which earlier messages are searched if the wait for missing messages has no
limit."""


class Delivery:
    """Delivery of messages, from their arrival or the incoming buffer into the log."""

    def __init__(self, state: ChannelState) -> None:
        self._state = state

    def deliver(self, first: ArrivedMessage) -> None:
        """Deliver a message, and the messages whose last missing dependency it was (LIP 109,
        Deliver Message).

        A sync message has no content to deliver, even in a dialect that refers to sync messages. In
        such a dialect a sync message still waits for its dependencies, and other messages wait for
        it.
        """
        state = self._state
        at_once = state.options.behaviour.deliver == "at_once"
        ready = deque([first])
        while ready:
            arrived = ready.popleft()
            message_id = arrived.message.message_id
            if not arrived.message.content:  # a sync message
                state.referable_syncs.add(message_id)
            else:
                self._log(arrived)
            state.on_transition(message_id, Trigger.COMPLETE)
            durably = state.options.repair.cache_durably
            state.repair_cache.add(message_id, arrived.data, durably=durably)
            released = state.incoming_buffer.mark_delivered(message_id)
            if at_once and released:
                ready.extend(
                    state.incoming_buffer.take(p.message.message_id) for p in in_log_order(released)
                )

    def _log(self, arrived: ArrivedMessage) -> None:
        state, message = self._state, arrived.message
        lamport, content = message.lamport_timestamp or 0, message.content or b""
        state.clock.merge(lamport)
        entry = LogEntry(
            message.message_id, message.sender_id, lamport, content, arrived.retrieval_hint
        )
        position = state.log.insert(entry)
        state.counters.delivered += 1
        state.events.append(
            MessageReceived(
                message.message_id,
                message.sender_id,
                content,
                lamport,
                position,
                tuple(arrived.lost),
                arrived.retrieval_hint,
            )
        )

    def pass_over(self, message_id: str) -> None:
        """Drop an unwanted message, and deliver the messages that waited only for it."""
        buffer = self._state.incoming_buffer
        self._state.joining.mark_historic(message_id)
        buffer.arrived(message_id)
        self._state.on_transition(message_id, Trigger.UNWANTED)
        for parked in in_log_order(buffer.mark_delivered(message_id)):
            self.deliver(buffer.take(parked.message.message_id))

    def give_up(self, entry: HistoryEntry, reason: str, event: Trigger) -> None:
        """Declare a missing message lost, and deliver the messages that waited only for this
        message."""
        self._state.events.append(
            MessageLost(entry.message_id, entry.sender_id, entry.retrieval_hint, reason)
        )
        self._state.counters.lost += 1
        ready = self._state.incoming_buffer.give_up(entry)
        self._state.on_transition(entry.message_id, event)
        for parked in in_log_order(ready):
            if parked.message.message_id in self._state.incoming_buffer.parked:
                self.deliver(self._state.incoming_buffer.take(parked.message.message_id))

    def sweep(self, now_ms: int) -> None:
        """Deliver messages that are ready, and declare overdue missing messages lost."""
        state = self._state
        buffer, timeout_ms = (
            state.incoming_buffer,
            state.options.timeout_for_lost_messages_ms,
        )
        while ready := in_log_order(p for p in buffer.parked.values() if not p.unmet):
            for parked in ready:
                self.deliver(buffer.take(parked.message.message_id))
        state.joining.expire(now_ms, timeout_ms or JOINING_TIMEOUT_MS)
        if timeout_ms:
            for entry in buffer.overdue(now_ms, timeout_ms):
                self.give_up(entry, f"not found within {timeout_ms} ms", Trigger.TIMEOUT)
            for stuck in buffer.deadlocked(now_ms, timeout_ms):
                for dependency in sorted(stuck.unmet):
                    # Giving up the one before may have delivered this one, which waited for it.
                    if dependency in stuck.unmet:
                        reason = "it waits for a message that waits for it"
                        self.give_up(HistoryEntry(dependency), reason, Trigger.CYCLE)
        state.agenda.plan(Slot.SWEEP, None)
        if buffer.parked or buffer.missing or buffer.queued or state.joining.presumed:
            self.plan_sweep(now_ms)

    def plan_sweep(self, now_ms: int) -> None:
        """Plan a sweep of the incoming buffer, because a message waits now."""
        agenda = self._state.agenda
        if not agenda.is_planned(Slot.SWEEP):
            agenda.plan(Slot.SWEEP, now_ms + self._state.options.sweep_in_buf_interval_ms)
