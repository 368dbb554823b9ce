"""Receiving (LIP 109, Receive Message and Review ACK Status; SDS-R, When RECEIVING a Message)."""

from dataclasses import dataclass, replace
from enum import Enum

from .delivery import Delivery
from .events import (
    EphemeralReceived,
    MessageAcknowledged,
    MessageMissing,
    MessageRejected,
    RejectionReason,
    RepairRequestReceived,
    SyncReceived,
)
from .incoming import ParkedMessage
from .log import LogEntry
from .message import HistoryEntry, Message, MessageKind
from .profile import WireProfile
from .state import ChannelState
from .sync import Heard
from .wire import CodecError


class Outcome(Enum):
    """What became of a received message."""

    DELIVERED = "delivered"
    PARKED = "parked"
    DUPLICATE = "duplicate"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"
    OWN = "own"
    UNWANTED = "unwanted"
    """From before this participant joined, and not asked for."""
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Arrival:
    """The answer to `receive`."""

    outcome: Outcome
    message_id: str = ""
    missing_for_ms: int | None = None
    """How long somebody here had waited for this message; None where nobody had."""
    reason: RejectionReason | None = None
    """Why it was rejected."""


class Receiver:
    """Takes what other participants send."""

    def __init__(
        self, state: ChannelState, delivery: Delivery, listen_to: tuple[WireProfile, ...]
    ) -> None:
        self._state = state
        self._delivery = delivery
        self._listen_to = listen_to

    def receive(self, data: bytes, now_ms: int, *, retrieval_hint: bytes | None = None) -> Arrival:
        """Take bytes from the transport or from Store; `retrieval_hint` is their Waku message hash.

        Never raises for what the bytes are: what is refused becomes a `MessageRejected` event.
        """
        state = self._state
        profile = self._dialect_of(data)
        if profile is None:
            names = ", ".join(profile.name for profile in self._listen_to)
            return self._reject(RejectionReason.OTHER_DIALECT, f"this participant takes {names}")
        try:
            message = profile.codec.decode(data)
        except CodecError as error:
            return self._reject(RejectionReason.MALFORMED, str(error))
        if message.channel_id != state.channel_id:
            detail = f"it belongs to channel {message.channel_id!r}, this is {state.channel_id!r}"
            return self._reject(RejectionReason.WRONG_CHANNEL, detail, message)
        if not message.message_id or (profile.requires_sender and not message.sender_id):
            return self._reject(
                RejectionReason.MISSING_ID, "sender_id and message_id must be set", message
            )
        if message.sender_id == state.sender_id and self._is_echo(message, profile):
            state.counters.own_echoes += 1
            return Arrival(Outcome.OWN, message.message_id)
        if message.kind is MessageKind.EPHEMERAL:
            state.tell(
                EphemeralReceived(message.message_id, message.sender_id, message.content or b"")
            )
            state.counters.ephemeral_received += 1
            return Arrival(Outcome.EPHEMERAL, message.message_id)
        arrived = ParkedMessage(message, data, retrieval_hint, now_ms, set())
        return self._receive_reliable(arrived, profile, now_ms)

    def _dialect_of(self, data: bytes) -> WireProfile | None:
        for profile in self._listen_to:
            if profile.codec.recognises(data):
                return profile
        return None

    def _receive_reliable(
        self, arrived: ParkedMessage, profile: WireProfile, now_ms: int
    ) -> Arrival:
        state, message, retrieval_hint = self._state, arrived.message, arrived.retrieval_hint
        lamport, message_id = message.lamport_timestamp or 0, message.message_id
        ahead_ms = lamport - now_ms
        if ahead_ms > state.options.max_lamport_ahead_ms:
            detail = f"lamport_timestamp {lamport} is {ahead_ms} ms ahead of local time"
            return self._reject(RejectionReason.LAMPORT_TOO_FAR_AHEAD, detail, message)
        if message.sender_id != state.sender_id:
            self._review(message, profile, now_ms)
        if message.kind is MessageKind.SYNC:
            return self._receive_sync(arrived, profile, now_ms)
        known = state.log.get(message_id)
        if known is not None or message_id in state.incoming_buffer.parked:
            return self._receive_again(message, known, retrieval_hint)
        missing_for_ms = state.incoming_buffer.missing_for_ms(message_id, now_ms)
        state.repair_requests.remove(message_id)
        if state.joining.is_unwanted(lamport):
            self._delivery.pass_over(message_id)
            return Arrival(Outcome.UNWANTED, message_id)
        state.joining.arrived(message_id)
        if state.log.is_below_horizon(lamport, message_id):
            detail = f"the log keeps its newest {state.log.limit} messages and this is older"
            if missing_for_ms is not None:
                self._delivery.give_up(
                    HistoryEntry(message_id, retrieval_hint, message.sender_id), detail
                )
            return self._reject(RejectionReason.OLDER_THAN_LOG, detail, message)
        state.incoming_buffer.arrived(message_id)
        state.sync_timer.restart(Heard.CONTENT, now_ms)
        # LIP 109, Receive: the id enters the bloom filter before its dependencies are looked at.
        state.bloom_filter.insert(message_id)
        self._deliver_or_park(arrived, now_ms)
        waits = message_id in state.incoming_buffer.parked
        return Arrival(Outcome.PARKED if waits else Outcome.DELIVERED, message_id, missing_for_ms)

    def _is_echo(self, message: Message, profile: WireProfile) -> bool:
        """Whether an own message says nothing new.

        DIVERGES: the specification advises to ignore all of one's own. But one who starts again
        without state, or on a second device, must take the earlier ones from Store as anybody's:
        others refer to them, and would keep it waiting until they count as lost.
        """
        if message.kind is MessageKind.SYNC and profile.refers_to_syncs:
            return message.message_id in self._state.referable_syncs
        return (
            message.kind is not MessageKind.CONTENT
            or not self._state.options.behaviour.adopt_own_messages
            or message.message_id in self._state.log
        )

    def _review(self, message: Message, profile: WireProfile, now_ms: int) -> None:
        """Take from another's message what it says beside its content."""
        state = self._state
        state.participants.heard(message.sender_id, now_ms)
        if message.repair_request and state.options.repair.enabled:
            self._review_repair_request(message, now_ms)
        for event in state.acknowledgements.review(message, profile.bloom):
            state.counters.acknowledged += isinstance(event, MessageAcknowledged)
            state.tell(event)

    def _receive_sync(self, arrived: ParkedMessage, profile: WireProfile, now_ms: int) -> Arrival:
        state, message = self._state, arrived.message
        missing_for_ms = state.incoming_buffer.missing_for_ms(message.message_id, now_ms)
        state.tell(SyncReceived(message.message_id, message.sender_id))
        state.counters.syncs_received += 1
        if profile.refers_to_syncs and not self._has_taken(message.message_id):
            # Others wait for it, as it may wait for others, and they may ask for it.
            state.repair_requests.remove(message.message_id)
            state.incoming_buffer.arrived(message.message_id)
            arrived.data = profile.without_filter(message)
            self._deliver_or_park(arrived, now_ms)
        else:
            self._note_unmet(message, now_ms, [])
        state.repair_responses.remove(message.message_id)
        self._bound_missing()
        newest = state.log.last(1)
        if not newest or newest[0].message_id in message.causal_ids:
            # It said what ours would say. One that does not know our newest message spares nobody.
            state.sync_timer.restart(Heard.SYNC, now_ms)
        return Arrival(Outcome.SYNC, message.message_id, missing_for_ms)

    def _has_taken(self, message_id: str) -> bool:
        state = self._state
        return (
            message_id in state.referable_syncs
            or message_id in state.log
            or message_id in state.incoming_buffer.parked
        )

    def _deliver_or_park(self, arrived: ParkedMessage, now_ms: int) -> None:
        if unmet := self._note_unmet(arrived.message, now_ms, arrived.lost):
            arrived.unmet = unmet
            self._park(arrived, now_ms)
        else:
            self._delivery.deliver(arrived)

    def _receive_again(
        self, message: Message, known: LogEntry | None, retrieval_hint: bytes | None
    ) -> Arrival:
        message_id = message.message_id
        content = (
            known.content
            if known
            else self._state.incoming_buffer.parked[message_id].message.content
        )
        if content != message.content:
            detail = "a message with this id and other content came first"
            return self._reject(RejectionReason.ID_ALREADY_USED, detail, message)
        self._state.repair_responses.remove(message_id)
        if known is not None and retrieval_hint is not None:
            self._state.set_retrieval_hint(message_id, retrieval_hint)
        self._state.counters.duplicates += 1
        return Arrival(Outcome.DUPLICATE, message_id)

    def _note_unmet(self, message: Message, now_ms: int, lost: list[HistoryEntry]) -> set[str]:
        """Find the unmet dependencies, note those that are missing, and collect in `lost` those
        given up."""
        state = self._state
        known = state.log.entries
        absent = [i for i, message_id in enumerate(message.causal_ids) if message_id not in known]
        if not absent:
            return set()
        unmet: set[str] = set()
        news: list[HistoryEntry] = []
        buffer, repair = state.incoming_buffer, state.options.repair.enabled
        for entry in (message.causal_history[i] for i in absent):
            dependency = entry.message_id
            if not dependency or dependency == message.message_id or dependency in unmet:
                continue
            if state.log.is_settled(dependency) or dependency in state.referable_syncs:
                continue
            if self._is_earlier(entry, now_ms):
                continue
            if dependency in buffer.lost:
                lost.append(entry)
            else:
                unmet.add(dependency)
                if buffer.note_missing(entry, now_ms):
                    news.append(entry)
            # Lost is what nobody waits for; who still refers to it may well have it by now.
            if repair and dependency not in buffer.parked:
                state.repair_requests.want(entry, now_ms)
        if news:
            state.tell(MessageMissing(tuple(news)))
        self._delivery.plan_sweep(now_ms)
        return unmet

    def _is_earlier(self, entry: HistoryEntry, now_ms: int) -> bool:
        """Whether a reference is to what was sent before this participant joined."""
        buffer, message_id = self._state.incoming_buffer, entry.message_id
        if message_id in buffer.parked or message_id in buffer.missing:
            return False
        return self._state.joining.is_earlier(entry, now_ms)

    def _park(self, parked: ParkedMessage, now_ms: int) -> None:
        buffer, limits = self._state.incoming_buffer, self._state.options.limits
        while buffer.parked and (
            len(buffer.parked) >= limits.incoming_messages
            or buffer.size_bytes + len(parked.data) > limits.incoming_bytes
        ):
            evicted = buffer.evict_oldest()
            self._reject(
                RejectionReason.INCOMING_BUFFER_FULL,
                f"{len(buffer.parked) + 1} messages wait for others; this one must come again",
                evicted.message,
            )
            message = evicted.message
            entry = HistoryEntry(message.message_id, evicted.retrieval_hint, message.sender_id)
            buffer.note_missing(entry, now_ms)
            if self._state.options.repair.enabled:
                self._state.repair_requests.want(entry, now_ms)
        # The decoded history is not needed any more, and larger than all the rest.
        parked.message = replace(parked.message, causal_history=(), bloom_filter=None)
        buffer.park(parked)
        self._bound_missing()
        self._delivery.plan_sweep(now_ms)

    def _bound_missing(self) -> None:
        limit, missing = (
            self._state.options.limits.missing_entries,
            self._state.incoming_buffer.missing,
        )
        while len(missing) > limit:
            oldest = next(iter(missing.values())).entry
            self._delivery.give_up(oldest, f"more than {limit} references are missing")

    def _review_repair_request(self, message: Message, now_ms: int) -> None:
        asked = tuple(entry.message_id for entry in message.repair_request)
        self._state.tell(RepairRequestReceived(asked, message.sender_id))
        for entry in message.repair_request:
            state, message_id = self._state, entry.message_id
            state.repair_requests.requested_by_other(message_id, now_ms)
            delivered = message_id in state.log or message_id in state.referable_syncs
            if delivered and state.held(message_id) is not None:
                state.repair_responses.request(entry, now_ms)

    def _reject(
        self, reason: RejectionReason, detail: str, message: Message | None = None
    ) -> Arrival:
        message_id, sender_id = (message.message_id, message.sender_id) if message else ("", "")
        self._state.tell(MessageRejected(reason, detail, message_id, sender_id))
        self._state.counters.rejected += 1
        return Arrival(Outcome.REJECTED, message_id, reason=reason)
