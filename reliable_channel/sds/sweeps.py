"""Periodic duties of a participant, which depend on time and not on messages."""

from typing import Final

from .agenda import Slot
from .changes import Tables
from .delivery import Delivery
from .events import DeliveryFailed, OutgoingKind, RepairSent
from .search import ReferenceSearch
from .sending import Sender
from .state import ChannelState
from .sync import SyncTrigger

TRIM_INTERVAL_MS: Final = 60_000
"""Interval (ms) between two searches of the log for entries that are too old."""


class Sweeps:
    """Periodic duties of LIP 109, which are retries, answers, sync messages and timeouts."""

    def __init__(
        self,
        state: ChannelState,
        delivery: Delivery,
        references: ReferenceSearch,
        sender: Sender,
    ) -> None:
        self._state = state
        self._delivery = delivery
        self._references = references
        self._sender = sender

    def restored(self, tables: Tables, now_ms: int) -> None:
        """Plan the work that was saved before a restart."""
        state, buffer = self._state, self._state.incoming_buffer
        if buffer.missing or buffer.parked or state.joining.presumed:
            self._delivery.plan_sweep(now_ms)
            self._references.follow(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Do all work that is due by time."""
        state, agenda = self._state, self._state.agenda
        if agenda.is_due(Slot.TRIM, now_ms):
            agenda.plan(Slot.TRIM, now_ms + TRIM_INTERVAL_MS)
            state.log.forget_before(now_ms - state.options.limits.retention_ms)
        self.sweep_outgoing(now_ms)
        self.sweep_repair(now_ms)
        if agenda.is_due(Slot.FOLLOW, now_ms):
            self._references.follow(now_ms)
        sync_is_due = agenda.is_due(Slot.SYNC, now_ms)
        if agenda.is_due(Slot.SWEEP, now_ms):
            self.sweep_incoming(now_ms)
        # SDS-R, Periodic Sync: a due request is sent whether or not others sent a sync lately.
        asks = agenda.is_due(Slot.REPAIR_REQUEST, now_ms)
        if asks and not state.has_syncs:
            self._sender.repeat_with_requests(now_ms)
        elif asks or sync_is_due:
            state.sync_timer.restart(SyncTrigger.OWN_SYNC, now_ms)
            self._sender.send_sync(now_ms)
        if asks:
            state.repair_requests.pause(now_ms + self._request_pause_ms(now_ms))

    def sweep_outgoing(self, now_ms: int) -> None:
        """Send each message again whose retry is due, or give the message up with an event."""
        state = self._state
        for entry in state.outgoing_buffer.due(now_ms):
            if self._sender.has_attempts(entry, now_ms):
                self._sender.resend(entry.message_id, now_ms)
                continue
            state.outgoing_buffer.remove([entry.message_id])
            state.counters.delivery_failed += 1
            reason = f"no acknowledgement after it was sent {entry.attempts} times"
            if state.profile.refers_to_syncs:
                reason += (
                    "; in this dialect participants acknowledge with their next message only, so "
                    "others may have it"
                )
            state.emit(DeliveryFailed(entry.message_id, entry.attempts, reason))

    def sweep_incoming(self, now_ms: int) -> None:
        """Deliver messages that are ready, and declare overdue missing messages lost."""
        if timeout_ms := self._state.options.timeout_for_lost_messages_ms:
            self._references.expire(now_ms, timeout_ms)
        self._delivery.sweep(now_ms)

    def sweep_repair(self, now_ms: int) -> None:
        """Broadcast each requested message whose T_resp has come."""
        state = self._state
        state.repair_requests.drop_expired(now_ms)
        for message_id in state.repair_responses.take_due(now_ms):
            if data := state.held(message_id):
                self._answer(message_id, data, now_ms)

    def _answer(self, message_id: str, data: bytes, now_ms: int) -> None:
        self._state.broadcast(OutgoingKind.REPAIR, message_id, data)
        self._state.emit(RepairSent(message_id))
        self._state.counters.repairs_sent += 1

    def _request_pause_ms(self, now_ms: int) -> int:
        """How long no sync message goes for the sake of requests, after one did."""
        return self._state.options.repair.sweep_interval_ms
