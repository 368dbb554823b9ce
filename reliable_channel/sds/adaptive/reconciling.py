"""Parts of a self-tuning participant that repairs differences between logs.

The dialect of the participant needs fields for reconciliation. The dialect of nim-sds has no such
fields.
"""

from typing import ClassVar, Final

from ..changes import LogKey
from ..comparison import LogComparison
from ..delivery import Delivery
from ..events import MessageReconciled, OutgoingKind, RejectionReason
from ..log.log import MessageLog
from ..message import LogRoot, Message, Reconciling
from ..profile import WireProfile
from ..receiving import Arrival, Outcome
from ..references.causal_history import history_entry
from ..references.joining import Joining
from ..search import ReferenceSearch
from ..state import Setup
from ..sync import SyncTrigger
from .reconciliation import Reconciliation
from .tuned import TunedDelivery, TunedReceiver, TunedSender, TunedState, TunedSweeps

OPENED: Final = 64
"""Maximum number of messages from bundles in one step, if there is no archive."""
SOON_STABLE_MS: Final = 15_000
"""Time (ms) until a root counts as different. Missing messages are requested without waiting."""
RECONCILED_SECONDS: Final = 50_000
"""Number of seconds with messages that are compared if a participant can repair differences."""


class ReconcilingState(TunedState):
    """State of a participant that reconciles its log with the logs of others."""

    reconciliation: Reconciliation

    def _comparison(self) -> LogComparison:
        self.log.sums.max_seconds = RECONCILED_SECONDS
        self.reconciliation = Reconciliation(
            self.sender_id,
            self.log,
            self.tuner.observations,
            self.tuner.random,
            held=self._held_or_rebuilt,
            parked=self.incoming_buffer.waiting,
            agenda=self.agenda,
        )
        return ReconcilingComparison(self.reconciliation, self.log, self.joining)

    def _held_or_rebuilt(self, message_id: str, after: str | None) -> bytes | None:
        """A message as it is held, or made of the log, without signature and causal history.

        Its dependency is the message that reconciliation broadcast `after`: what is rebuilt arrives
        in the order of the log.
        """
        setup, data = self.setup, self.held(message_id)
        if data is not None or setup.signing is not None or setup.require_signatures:
            return data
        if (entry := self.log.get(message_id)) is None:
            return None
        before = None if after is None else self.log.get(after)
        history = () if before is None else (history_entry(before),)
        message = Message(
            entry.sender_id,
            message_id,
            self.channel_id,
            entry.lamport_timestamp,
            history,
            content=entry.content,
        )
        return self.profile.codec.encode(message)


class ReconcilingComparison(LogComparison):
    """Comparison of the own log with others, which starts the repair of differences."""

    stable_ms: ClassVar[int] = SOON_STABLE_MS

    def __init__(self, reconciliation: Reconciliation, log: MessageLog, joining: Joining) -> None:
        super().__init__(log, joining)
        self._reconciliation = reconciliation

    @property
    def repair_failed(self) -> bool:
        """True if no participant was able to repair the difference."""
        return self._reconciliation.has_failed

    def _agrees(self, now_ms: int) -> None:
        super()._agrees(now_ms)
        self._reconciliation.agrees(now_ms, all_agree=not self._suspects)

    def _differs(
        self, sender_id: str, root: LogRoot, here: LogRoot, lamport: int, now_ms: int
    ) -> None:
        super()._differs(sender_id, root, here, lamport, now_ms)
        alike = sum(other.root == root for other in self._suspects.values())
        self._reconciliation.differs(root, here, now_ms, alike)


class ReconcilingSender(TunedSender):
    """Maker of own messages, reconciliation messages included."""

    def send_reconciling(self, said: Reconciling, now_ms: int) -> None:
        """Broadcast a sync message with a part of the reconciliation."""
        state, message_id = self._state, self._sync_id()
        message = Message(
            state.sender_id,
            message_id,
            state.channel_id,
            state.clock.tick(now_ms),
            reconciling=said,
        )
        data = self._signed_in_turn(state.profile.codec.encode(message))
        if data is not None:
            state.broadcast(OutgoingKind.CONTROL, message_id, data)
            state.counters.syncs_sent += 1


class ReconcilingReceiver(TunedReceiver):
    """Receiver of messages, of descriptions of other logs, and of bundles."""

    def __init__(
        self, state: ReconcilingState, delivery: Delivery, references: ReferenceSearch
    ) -> None:
        super().__init__(state, delivery, references)
        self._reconciliation = state.reconciliation
        self._bundled_by: str | None = None
        """The sender of the bundle that a message is taken out of."""

    def receive_bundled(self, data: bytes, sender_id: str, now_ms: int) -> Arrival:
        """Receive a message from a bundle of `sender_id`, as if it had arrived alone. A bundle
        inside a bundle is ignored."""
        self._bundled_by = sender_id
        try:
            arrival = self.receive(data, now_ms, None, None)
        finally:
            self._bundled_by = None
        if arrival.outcome in (Outcome.DELIVERED, Outcome.PARKED):
            self._state.events.append(MessageReconciled(arrival.message_id, sender_id))
        return arrival

    def _review(
        self, message: Message, profile: WireProfile, sent_at_ns: int | None, now_ms: int
    ) -> None:
        if self._bundled_by is None:
            super()._review(message, profile, sent_at_ns, now_ms)
        else:
            # What it says beside its content is over, and where it is rebuilt its author never
            # said it.
            self._frontier.heard(message.causal_ids, message.sender_id)

    def _news(self, message: Message, missing_for_ms: int | None) -> SyncTrigger:
        if self._bundled_by is None:
            return super()._news(message, missing_for_ms)
        # The author of what is in a bundle may be gone, and does not wait for these thousands.
        return SyncTrigger.CONTENT if missing_for_ms is None else SyncTrigger.MISSED_CONTENT

    def _hear_sync(self, message: Message, now_ms: int) -> None:
        super()._hear_sync(message, now_ms)
        if message.reconciling is None or self._bundled_by is not None:
            return
        state, said, start = self._state, message.reconciling, self._state.comparison.start
        dropped = self._reconciliation.hear(said, message.sender_id, start, now_ms)
        for sender_id, in_all in dropped.items():
            budget = state.repair_responses.budget
            if reached := budget.report(sender_id, now_ms, in_all=in_all):
                state.events.append(reached)

    def _reject(
        self,
        reason: RejectionReason,
        detail: str,
        message: Message | None = None,
        sender_id: str = "",
    ) -> Arrival:
        return super()._reject(reason, detail, message, sender_id or self._bundled_by or "")


class ReconcilingSweeps(TunedSweeps):
    """Periodic duties of a participant, with bundles and reconciliation."""

    def __init__(
        self,
        state: ReconcilingState,
        delivery: Delivery,
        references: ReferenceSearch,
        sender: ReconcilingSender,
        receiver: ReconcilingReceiver,
    ) -> None:
        super().__init__(state, delivery, references, sender)
        self._reconciliation = state.reconciliation
        self._receiver, self._reconciling = receiver, sender

    def sweep_repair(self, now_ms: int) -> None:
        """Broadcast answers and copies, process received bundles, and describe the own log."""
        super().sweep_repair(now_ms)
        log, reconciliation = self._state.log, self._reconciliation
        for _ in range(1 if log.is_archived else OPENED):
            if (taken := reconciliation.inbox.take(now_ms)) is None:
                break
            data, bundle = taken
            arrival = self._receiver.receive_bundled(data, bundle.sender_id, now_ms)
            if arrival.reason is RejectionReason.MALFORMED:
                reconciliation.inbox.skip(bundle)
            if (entry := log.get(arrival.message_id)) is not None:
                reconciliation.came(entry.key, bundle.sender_id, now_ms)
            if arrival.outcome in (Outcome.DELIVERED, Outcome.PARKED):
                if (key := self._key_of(arrival.message_id)) is not None:
                    reconciliation.brought(key, now_ms)
        for said in reconciliation.take(now_ms):
            self._reconciling.send_reconciling(said, now_ms)

    def _answer(self, message_id: str, data: bytes, now_ms: int) -> None:
        super()._answer(message_id, data, now_ms)
        if (entry := self._state.log.get(message_id)) is not None:
            self._reconciliation.answered(entry.key, now_ms)

    def _key_of(self, message_id: str) -> LogKey | None:
        """Of a message in the log, or one that waits; None where it was evicted at once."""
        if (entry := self._state.log.get(message_id)) is not None:
            return entry.key
        parked = self._state.incoming_buffer.parked.get(message_id)
        return None if parked is None else (parked.message.lamport_timestamp or 0, message_id)


def make_parts(
    setup: Setup,
) -> tuple[ReconcilingState, ReconcilingSender, ReconcilingReceiver, ReconcilingSweeps]:
    """Make the parts of a participant that reconciles logs."""
    state = ReconcilingState(setup)
    delivery, sender = TunedDelivery(state), ReconcilingSender(state)
    references = ReferenceSearch(state, delivery)
    receiver = ReconcilingReceiver(state, delivery, references)
    sweeps = ReconcilingSweeps(state, delivery, references, sender, receiver)
    return state, sender, receiver, sweeps
