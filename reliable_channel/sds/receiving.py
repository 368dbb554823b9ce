"""Receiving of messages (LIP 109, Receive Message and Review ACK Status, and SDS-R, When RECEIVING
a Message)."""

from dataclasses import replace
from enum import Enum
from typing import Final

from .delivery import Delivery
from .dialects import CodecError, SpecCodec
from .events import (
    EphemeralReceived,
    MessageAcknowledged,
    MessageForged,
    MessageRejected,
    RejectionReason,
    RepairRequestReceived,
    SyncReceived,
)
from .fast_dataclass import value
from .ids import RecentIds, is_proven, js_waku_id
from .message import HistoryEntry, LogEntry, Message, MessageKind
from .profile import WireProfile
from .references.causal_history import UnknownReferences, excess, unknown_references
from .references.incoming import ArrivedMessage, ParkedMessage, charge_bytes
from .search import ReferenceSearch
from .signing import NotProven, check_signature
from .state import ChannelState
from .states import Trigger
from .sync import SyncTrigger

REVIEWED: Final = 10_000
"""Maximum number of remembered repair requests of other participants. A repetition of an older
request is reviewed again, within the budget."""

LONG_BYTES: Final = 5_000
"""Message length (bytes) from which known references are looked for. Decoding a shorter causal
history costs less."""


class Outcome(Enum):
    """Result of receiving a message."""

    DELIVERED = "delivered"
    PARKED = "parked"
    DUPLICATE = "duplicate"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"
    OWN = "own"
    UNWANTED = "unwanted"
    """The message was sent before this participant joined, and was not requested."""
    REJECTED = "rejected"


@value
class Arrival:
    """Result of `receive` for one message, with details."""

    outcome: Outcome
    message_id: str = ""
    missing_for_ms: int | None = None
    """Time for which the message was missing (ms). The time is None if the message was not
    missing."""
    reason: RejectionReason | None = None
    """Reason for the rejection of the message, or None if the message was accepted."""


class Receiver:
    """Receiver of the messages of other participants."""

    def __init__(
        self,
        state: ChannelState,
        delivery: Delivery,
        references: ReferenceSearch,
    ) -> None:
        setup = state.setup
        self._state = state
        self._delivery = delivery
        self._listen_to = setup.listen_to
        self._references = references
        self._proof = setup.signing if setup.require_signatures else None
        self._reviewed = RecentIds(REVIEWED)
        """Requests for repair that were answered, or not, once."""

    def receive(
        self, data: bytes, now_ms: int, retrieval_hint: bytes | None, sent_at_ns: int | None
    ) -> Arrival:
        """Receive the bytes of a message from the transport or from Store.

        Invalid bytes raise no error. A refused message becomes a `MessageRejected` event.
        """
        state = self._state
        for profile in self._listen_to:
            if profile.codec.recognises(data):
                break
        else:
            names = ", ".join(profile.name for profile in self._listen_to)
            return self._reject(RejectionReason.OTHER_DIALECT, f"this participant takes {names}")
        try:
            message = self._decoded(profile, data)
        except CodecError as error:
            return self._reject(RejectionReason.MALFORMED, str(error))
        if message.channel_id != state.channel_id:
            detail = f"it belongs to channel {message.channel_id!r}, this is {state.channel_id!r}"
            return self._reject(RejectionReason.WRONG_CHANNEL, detail, message)
        if not message.message_id or (profile.requires_sender and not message.sender_id):
            return self._reject(
                RejectionReason.MISSING_ID, "sender_id and message_id must be set", message
            )
        if self._proof is not None:
            try:
                check_signature(self._proof, message, data)
            except NotProven as error:
                return self._reject(RejectionReason.UNPROVEN_SENDER, str(error), message)
        if message.sender_id == state.sender_id and self._is_echo(message, profile):
            state.counters.own_echoes += 1
            return Arrival(Outcome.OWN, message.message_id)
        if message.kind is MessageKind.EPHEMERAL:
            state.events.append(
                EphemeralReceived(message.message_id, message.sender_id, message.content or b"")
            )
            state.counters.ephemeral_received += 1
            return Arrival(Outcome.EPHEMERAL, message.message_id)
        arrived = ArrivedMessage(message, data, retrieval_hint)
        return self._receive_reliable(arrived, profile, now_ms, sent_at_ns)

    def _decoded(self, profile: WireProfile, data: bytes) -> Message:
        codec = profile.codec
        is_long = len(data) > LONG_BYTES
        if is_long and isinstance(codec, SpecCodec) and profile is self._state.profile:
            return codec.decode(data, self._state.causal_tail)
        return codec.decode(data)

    def _receive_reliable(
        self,
        arrived: ArrivedMessage,
        profile: WireProfile,
        now_ms: int,
        sent_at_ns: int | None,
    ) -> Arrival:
        state, message, retrieval_hint = self._state, arrived.message, arrived.retrieval_hint
        lamport, message_id = message.lamport_timestamp or 0, message.message_id
        ahead_ms = lamport - now_ms
        if ahead_ms > state.options.max_lamport_ahead_ms:
            detail = f"lamport_timestamp {lamport} is {ahead_ms} ms ahead of local time"
            return self._reject(RejectionReason.LAMPORT_TOO_FAR_AHEAD, detail, message)
        unknown = unknown_references(
            message, state.log, lambda: self._references.room(self._payer(message), now_ms)
        )
        if (unknown or message.repair_request) and (
            too_much := excess(message, unknown, state.log, state.options.limits)
        ):
            return self._reject(RejectionReason.EXCESSIVE_REFERENCES, too_much, message)
        self._review(message, profile, sent_at_ns, now_ms)
        if not message.content:
            return self._receive_sync(arrived, unknown, profile, now_ms)
        known = state.log.get(message_id)
        if known is not None or message_id in state.incoming_buffer.parked:
            if not self._is_forged(message, known, sent_at_ns, now_ms):
                return self._receive_again(message, known, retrieval_hint, now_ms)
            self._forget_forged(message_id)
        missing_for_ms = state.incoming_buffer.missing_for_ms(message_id, now_ms)
        state.repair_requests.remove(message_id)
        if lamport < state.joining.wanted_from:
            self._delivery.pass_over(message_id)
            return Arrival(Outcome.UNWANTED, message_id)
        is_presumed = message_id in state.joining.presumed
        if is_presumed:
            state.joining.arrived(message_id)
        if state.log.is_below_horizon(lamport, message_id):
            detail = f"the log keeps its newest {len(state.log)} messages and this is older"
            if missing_for_ms is not None or state.incoming_buffer.waits_for(message_id):
                entry = HistoryEntry(message_id, retrieval_hint, message.sender_id)
                self._delivery.give_up(entry, detail, Trigger.TOO_OLD)
            elif is_presumed:
                state.on_transition(message_id, Trigger.TOO_OLD)
            return self._reject(RejectionReason.OLDER_THAN_LOG, detail, message)
        state.incoming_buffer.arrived(message_id)
        self._note_news(message, sent_at_ns, missing_for_ms, now_ms)
        # LIP 109, Receive: the id enters the bloom filter before its dependencies are looked at.
        if state.has_filters:
            state.bloom_filter.insert(message_id)
        self._deliver_or_park(arrived, unknown, profile, now_ms)
        waits = message_id in state.incoming_buffer.parked
        return Arrival(Outcome.PARKED if waits else Outcome.DELIVERED, message_id, missing_for_ms)

    def _note_news(
        self, message: Message, sent_at_ns: int | None, missing_for_ms: int | None, now_ms: int
    ) -> None:
        """Content came for the first time: acknowledge it soon."""
        heard = SyncTrigger.CONTENT if missing_for_ms is None else SyncTrigger.MISSED_CONTENT
        self._state.sync_timer.restart(heard, now_ms)

    def _is_echo(self, message: Message, profile: WireProfile) -> bool:
        """Return True if an own message says nothing new.

        DIVERGES: the specification advises to ignore all own messages. But a participant that
        starts again without state, or on a second device, must take the earlier ones from Store as
        anybody's: others refer to them, and would keep it waiting until they count as lost.
        """
        if message.kind is MessageKind.SYNC and profile.refers_to_syncs:
            return message.message_id in self._state.referable_syncs
        return (
            message.kind is not MessageKind.CONTENT
            or not self._state.options.behaviour.adopt_own_messages
            or self._is_own(message)
        )

    def _is_own(self, message: Message) -> bool:
        """Return True if it is as we sent it; another content under the same id and name is
        forged."""
        own = self._state.log.get(message.message_id)
        return own is not None and own.content == message.content

    def _review(
        self, message: Message, profile: WireProfile, sent_at_ns: int | None, now_ms: int
    ) -> None:
        """Take from another's message what it says beside its content."""
        state = self._state
        if message.sender_id == state.sender_id:
            return
        state.participants.heard(message.sender_id, now_ms)
        if message.repair_request and state.options.repair.enabled:
            self._review_requests(message, now_ms)
        for event in state.acknowledgements.review(message, profile.bloom):
            if isinstance(event, MessageAcknowledged):
                self._acknowledged(event.message_id, now_ms)
            state.events.append(event)

    def _acknowledged(self, message_id: str, now_ms: int) -> None:
        """Take note that another participant has an own message."""
        self._state.counters.acknowledged += 1

    def _receive_sync(
        self,
        arrived: ArrivedMessage,
        unknown: UnknownReferences | None,
        profile: WireProfile,
        now_ms: int,
    ) -> Arrival:
        state, message = self._state, arrived.message
        missing_for_ms = state.incoming_buffer.missing_for_ms(message.message_id, now_ms)
        state.events.append(SyncReceived(message.message_id, message.sender_id))
        state.counters.syncs_received += 1
        if message.log_root is not None and (event := state.comparison.review(message, now_ms)):
            state.events.append(event)
        if profile.refers_to_syncs and not self._has_taken(message.message_id):
            # Others wait for it, as it may wait for others, and they may ask for it.
            state.repair_requests.remove(message.message_id)
            state.incoming_buffer.arrived(message.message_id)
            arrived.data = profile.kept_sync(message, arrived.data)
            self._deliver_or_park(arrived, unknown, profile, now_ms)
        else:
            self._note_unmet(arrived, unknown, profile, now_ms)
        if message.message_id in state.referable_syncs:  # not whatever a sync calls itself
            state.repair_responses.remove(message.message_id)
        self._references.bound()
        self._hear_sync(message, now_ms)
        return Arrival(Outcome.SYNC, message.message_id, missing_for_ms)

    def _hear_sync(self, message: Message, now_ms: int) -> None:
        """Wait with the own sync message, as another participant sent one."""
        state = self._state
        if message.reconciling is not None:
            return  # it says nothing of its sender's newest messages
        newest = state.log.last(1)
        if not newest or newest[0].message_id in message.causal_ids:
            # It said what ours would say. One that does not know our newest message spares nobody.
            heard = SyncTrigger.REQUEST if message.repair_request else SyncTrigger.SYNC
            state.sync_timer.restart(heard, now_ms)
        else:
            state.sync_timer.prompt(now_ms)

    def _has_taken(self, message_id: str) -> bool:
        state = self._state
        return (
            message_id in state.referable_syncs
            or message_id in state.log
            or message_id in state.incoming_buffer.parked
        )

    def _deliver_or_park(
        self,
        arrived: ArrivedMessage,
        unknown: UnknownReferences | None,
        profile: WireProfile,
        now_ms: int,
    ) -> None:
        # Nearly always all that it refers to is known.
        if unknown and (unmet := self._note_unmet(arrived, unknown, profile, now_ms, parks=True)):
            self._park(arrived, unmet, now_ms)
        else:
            self._delivery.deliver(arrived)

    def _receive_again(
        self,
        message: Message,
        known: LogEntry | None,
        retrieval_hint: bytes | None,
        now_ms: int,
    ) -> Arrival:
        message_id = message.message_id
        _, content = self._first_copy(message_id, known)
        if content != message.content:
            detail = "a message with this id and other content came first"
            return self._reject(RejectionReason.ID_ALREADY_USED, detail, message)
        self._state.repair_responses.remove(message_id)
        if known is not None and retrieval_hint is not None:
            self._state.log.set_retrieval_hint(message_id, retrieval_hint)
        self._state.counters.duplicates += 1
        return Arrival(Outcome.DUPLICATE, message_id)

    def _first_copy(self, message_id: str, known: LogEntry | None) -> tuple[str, bytes | None]:
        """Sender and content of the message that came first with an id."""
        first = known or self._state.incoming_buffer.parked[message_id].message
        return first.sender_id, first.content

    def _is_forged(
        self, message: Message, known: LogEntry | None, sent_at_ns: int | None, now_ms: int
    ) -> bool:
        """Return True if another message came first under the id that proves this one to be the
        true one.

        Looked at only where two differ, which honest ones never do.
        """
        message_id, sender_id, content = message.message_id, message.sender_id, message.content
        first = self._first_copy(message_id, known)
        if first == (sender_id, content) or content is None:
            return False
        if first[1] != content and js_waku_id(sender_id, 0, content) == message_id:
            return True
        return is_proven(message_id, sender_id, content, sent_at_ns, now_ms)

    def _forget_forged(self, message_id: str) -> None:
        state = self._state
        if message_id in state.incoming_buffer.parked:
            forged = self._take_out(message_id)
            detail = "the message that its id was made for has come"
            self._reject(RejectionReason.FORGED_ID, detail, forged.message)
        else:
            entry = state.forget(message_id)
            state.events.append(MessageForged(message_id, entry.sender_id, entry.content))
        state.on_transition(message_id, Trigger.FORGED)

    def _note_unmet(
        self,
        arrived: ArrivedMessage,
        unknown: UnknownReferences | None,
        profile: WireProfile,
        now_ms: int,
        *,
        parks: bool = False,
    ) -> set[str]:
        """Find the unmet dependencies; look for the newest of those that are missing, as many as
        the budget allows, and have all others wait for their turn."""
        if not unknown:
            return set()
        return self._references.note(
            arrived,
            unknown,
            profile.codec,
            now_ms,
            payer=self._payer(arrived.message),
            parks=parks,
        )

    def _payer(self, message: Message) -> str:
        """Whose budget a message's references are followed with: that of its sender where it is
        proven, else that of all."""
        return "" if self._proof is None else message.sender_id

    def _park(self, arrived: ArrivedMessage, unmet: set[str], now_ms: int) -> None:
        buffer, limits = self._state.incoming_buffer, self._state.options.limits
        parked = ParkedMessage(
            # The decoded history is not needed any more, and larger than all the rest.
            replace(arrived.message, causal_history=(), bloom_filter=None),
            arrived.data,
            arrived.retrieval_hint,
            arrived.lost,
            arrived_ms=now_ms,
            unmet=unmet,
        )
        while len(buffer.parked) >= limits.incoming_messages:
            self._evict(buffer.parked_counts.first_to_go(), now_ms)
        while buffer.parked and buffer.size_bytes + charge_bytes(parked) > limits.incoming_bytes:
            self._evict(buffer.parked_sizes.first_to_go(), now_ms)
        buffer.park(parked)
        self._state.on_transition(parked.message.message_id, Trigger.ARRIVES_EARLY)
        self._references.bound()
        self._delivery.plan_sweep(now_ms)

    def _evict(self, message_id: str, now_ms: int) -> None:
        """Make room; what goes counts as missing, so that it comes again."""
        state, buffer = self._state, self._state.incoming_buffer
        evicted = self._take_out(message_id)
        message = evicted.message
        detail = f"{len(buffer.parked) + 1} messages wait for others; this one must come again"
        self._reject(RejectionReason.INCOMING_BUFFER_FULL, detail, message)
        entry = HistoryEntry(message_id, evicted.retrieval_hint, message.sender_id)
        buffer.note_missing(entry, now_ms, message.sender_id)
        state.on_transition(message_id, Trigger.LIMIT)
        state.want(entry, now_ms, message.sender_id)

    def _take_out(self, message_id: str) -> ParkedMessage:
        """Evict a message that waits, and what it alone said of others."""
        return self._state.incoming_buffer.evict(message_id)

    def _reject(
        self,
        reason: RejectionReason,
        detail: str,
        message: Message | None = None,
        sender_id: str = "",
    ) -> Arrival:
        message_id = ""
        if message is not None:
            message_id, sender_id = message.message_id, message.sender_id
        self._state.events.append(MessageRejected(reason, detail, message_id, sender_id))
        self._state.counters.rejected += 1
        return Arrival(Outcome.REJECTED, message_id, reason=reason)

    def _review_requests(self, message: Message, now_ms: int) -> None:
        """Plan answers to what is held here, and put off what we would have asked for, too.

        A repetition asks for nothing: else a replay would have all participants answer again.
        """
        state, requester = self._state, message.sender_id
        asked = tuple(entry.message_id for entry in message.repair_request)
        # Not by the carrier's id alone: whoever took that first would silence the honest one.
        request = f"{hash((message.message_id, requester, asked)):x}"
        if request in self._reviewed:
            return
        self._reviewed.add(request)
        state.events.append(RepairRequestReceived(asked, requester))
        for entry in message.repair_request:
            message_id = entry.message_id
            if entry.sender_id:  # nobody may answer one without
                state.repair_requests.requested_by_other(message_id, now_ms, requester)
            if message_id in state.log or message_id in state.referable_syncs:
                self._answer(entry, requester, now_ms)
        if reached := state.repair_responses.budget.reached(requester, now_ms):
            state.events.append(reached)

    def _answer(self, entry: HistoryEntry, requester: str, now_ms: int) -> None:
        """Plan an answer with a message that is held here."""
        if (data := self._state.held(entry.message_id)) is not None:
            self._state.repair_responses.request(entry, now_ms, requester, len(data))
