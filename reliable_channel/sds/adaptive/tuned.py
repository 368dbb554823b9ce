"""Parts of a self-tuning participant, which are the parts of LIP 109 controlled by a `Tuner`."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from ..changes import Tables
from ..delivery import Delivery
from ..draft import Draft
from ..events import OutgoingKind
from ..message import HistoryEntry, LogEntry, LogRoot, Message
from ..outgoing import OutgoingEntry
from ..profile import WireProfile
from ..receiving import Arrival, Outcome, Receiver
from ..references.incoming import ArrivedMessage, ParkedMessage
from ..search import ReferenceSearch
from ..sending import Sender
from ..state import ChannelState, Setup, Timing
from ..sweeps import Sweeps
from ..sync import SyncTrigger
from .causal_frontier import HEADS, CausalFrontier
from .tuner import Tuner


class TunedState(ChannelState):
    """State of a self-tuning participant, with its measurements."""

    tuner: Tuner
    frontier: CausalFrontier

    def __init__(self, setup: Setup) -> None:
        # DIVERGES: LIP 109 has a filter in each message. References acknowledge messages without
        # one, and js-waku reads a message that has none.
        self.has_filters = setup.profile.refers_to_syncs
        super().__init__(setup)
        self.refers_first: dict[str, tuple[str, ...]] = {}
        """For each message that waits, messages to which none before it referred."""

    def _timing(self) -> Timing:
        profile = self.profile
        self.tuner = Tuner(
            self.options,
            profile.repair_timers,
            self.setup.random,
            has_filters=profile.refers_to_syncs,
            agenda=self.agenda,
        )
        return Timing(self.tuner.sync_timer, self.tuner.retry_ms, self.tuner.timers)

    def _causal_tail(
        self, size: int, limit_bytes: int, encode: Callable[[HistoryEntry], bytes]
    ) -> CausalFrontier:
        self.frontier = CausalFrontier(self.log, size, limit_bytes, encode, self.recorder)
        return self.frontier


class TunedDelivery(Delivery):
    """Delivery of messages, with a note of messages that no message refers to."""

    def __init__(self, state: TunedState) -> None:
        super().__init__(state)
        self._frontier, self._refers_first = state.frontier, state.refers_first

    def _log(self, arrived: ArrivedMessage) -> None:
        super()._log(arrived)
        message_id = arrived.message.message_id
        self._frontier.logged(message_id)
        self._refers_first.pop(message_id, None)


class TunedSender(Sender):
    """Maker of own messages, whose size and time fit the measurements."""

    is_tuned: ClassVar[bool] = True

    def __init__(self, state: TunedState) -> None:
        super().__init__(state)
        self._tuner, self._frontier = state.tuner, state.frontier

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Plan the copies of an own message that was sent for the first time."""
        self._tuner.dispatched(message_id, now_ms)
        super().dispatched(message_id, now_ms, retrieval_hint)

    def has_attempts(self, entry: OutgoingEntry, now_ms: int) -> bool:
        """Return True if the documented number of retries is not used up."""
        return not self._tuner.gives_up(entry.message_id, now_ms)

    def _draft(self, message_id: str, lamport: int, content: bytes, now_ms: int) -> Draft:
        self._frontier.is_long = self._tuner.suits_others(now_ms)
        made = super()._draft(message_id, lamport, content, now_ms)
        self._frontier.sent()
        return made

    def _sync(self, message_id: str, lamport: int, now_ms: int) -> bytes | None:
        self._frontier.is_long = self._tuner.sync_suits_others(now_ms)
        return super()._sync(message_id, lamport, now_ms)

    def _asked(self, requests: Sequence[HistoryEntry], message_id: str, now_ms: int) -> None:
        super()._asked(requests, message_id, now_ms)
        self._tuner.asked([entry.message_id for entry in requests], now_ms)

    def _root(self, now_ms: int) -> LogRoot | None:
        # Right after news logs differ, and syncs are many.
        return super()._root(now_ms) if self._tuner.sync_timer.is_long else None

    def _log_own(self, entry: LogEntry) -> None:
        super()._log_own(entry)
        self._frontier.logged(entry.message_id)


class TunedReceiver(Receiver):
    """Receiver that measures arriving messages and acknowledges them by references."""

    def __init__(self, state: TunedState, delivery: Delivery, references: ReferenceSearch) -> None:
        super().__init__(state, delivery, references)
        self._tuner, self._frontier = state.tuner, state.frontier
        self._refers_first = state.refers_first

    def _review(
        self, message: Message, profile: WireProfile, sent_at_ns: int | None, now_ms: int
    ) -> None:
        super()._review(message, profile, sent_at_ns, now_ms)
        if message.sender_id != self._state.sender_id:
            is_first = not self._tuner.observations.heard
            participants = len(self._state.participants)
            self._tuner.heard(message, sent_at_ns, now_ms, participants)
            if is_first and self._state.outgoing_buffer.entries:  # it may lack these
                self._state.sync_timer.prompt(now_ms)
        self._frontier.heard(message.causal_ids, message.sender_id)

    def _acknowledged(self, message_id: str, now_ms: int) -> None:
        super()._acknowledged(message_id, now_ms)
        self._tuner.acknowledged(message_id, now_ms)

    def _note_news(
        self, message: Message, sent_at_ns: int | None, missing_for_ms: int | None, now_ms: int
    ) -> None:
        self._tuner.arrived(message, sent_at_ns, missing_for_ms, now_ms)
        self._refers_first[message.message_id] = self._frontier.referred(message.causal_ids)
        self._state.sync_timer.restart(self._news(message, missing_for_ms), now_ms)

    def _news(self, message: Message, missing_for_ms: int | None) -> SyncTrigger:
        """Acknowledge new content, and return what that means for the next sync message."""
        heard = SyncTrigger.CONTENT if missing_for_ms is None else SyncTrigger.MISSED_CONTENT
        if message.sender_id != self._state.sender_id:
            if self._frontier.is_behind and heard is SyncTrigger.CONTENT:
                heard = SyncTrigger.MORE_CONTENT
            self._frontier.acknowledge(message.message_id, message.sender_id)
        return heard

    def _receive_again(
        self,
        message: Message,
        known: LogEntry | None,
        retrieval_hint: bytes | None,
        now_ms: int,
    ) -> Arrival:
        arrival, message_id = (
            super()._receive_again(message, known, retrieval_hint, now_ms),
            message.message_id,
        )
        is_same = arrival.outcome is Outcome.DUPLICATE
        if is_same and self._tuner.came_again(message_id, now_ms):
            self._frontier.acknowledge(message_id, message.sender_id)
            self._state.sync_timer.prompt(now_ms)
        return arrival

    def _take_out(self, message_id: str) -> ParkedMessage:
        self._frontier.unreferred(self._refers_first.pop(message_id, ()))
        return super()._take_out(message_id)

    def _answer(self, entry: HistoryEntry, requester: str, now_ms: int) -> None:
        if not self._tuner.is_on_air(entry.message_id, now_ms):
            super()._answer(entry, requester, now_ms)


class TunedSweeps(Sweeps):
    """Periodic duties of a participant, with copies of own messages."""

    def __init__(
        self,
        state: TunedState,
        delivery: Delivery,
        references: ReferenceSearch,
        sender: Sender,
    ) -> None:
        super().__init__(state, delivery, references, sender)
        self._tuner, self._frontier = state.tuner, state.frontier
        self._refers_first = state.refers_first

    def restored(self, tables: Tables, now_ms: int) -> None:
        """Restore the references that were saved before a restart."""
        # What is missing or lost besides may be known through a sync alone, which is no reference:
        # once it is here, the next message has to refer to it.
        self._frontier.restore(tables.get(HEADS.name, ()))
        for message_id, parked in self._state.incoming_buffer.parked.items():
            self._refers_first[message_id] = self._frontier.referred(parked.message.causal_ids)
        super().restored(tables, now_ms)

    def sweep_repair(self, now_ms: int) -> None:
        """Broadcast answers for others, and own messages again, acknowledged or not."""
        super().sweep_repair(now_ms)
        for message_id in self._tuner.take_copies(now_ms):
            if data := self._state.held(message_id):
                self._state.broadcast(OutgoingKind.REPAIR, message_id, data, is_redundant=True)

    def _answer(self, message_id: str, data: bytes, now_ms: int) -> None:
        super()._answer(message_id, data, now_ms)
        self._tuner.answered(message_id, now_ms)

    def _request_pause_ms(self, now_ms: int) -> int:
        return self._tuner.request_pause_ms(now_ms)


def make_parts(setup: Setup) -> tuple[TunedState, TunedSender, TunedReceiver, TunedSweeps]:
    """Make the parts of a participant that tunes itself."""
    state = TunedState(setup)
    delivery, sender = TunedDelivery(state), TunedSender(state)
    references = ReferenceSearch(state, delivery)
    receiver = TunedReceiver(state, delivery, references)
    return state, sender, receiver, TunedSweeps(state, delivery, references, sender)
