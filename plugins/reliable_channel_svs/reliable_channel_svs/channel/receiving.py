"""Handling of the messages, state vectors and requests that arrive."""

from reliable_channel.diagnostics import (
    MessageMissing,
    MessageRejected,
    RejectionReason,
    SyncReceived,
)
from reliable_channel.events import (
    AcknowledgementSource,
    EphemeralReceived,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
)
from reliable_channel.spi import Arrival, LogEntry, Outcome

from ..errors import SignatureRefused, TlvError
from ..events import PublicationsKnown, VectorIgnored
from ..naming import PublicationName
from .state import ChannelState
from .streams import WINDOW, Stream
from .wire import Message, Request, Sync, sender_id


class Receiver:
    """Handles the packets that other members broadcast or that Store returns."""

    def __init__(self, state: ChannelState) -> None:
        self._state = state
        self.wanted_from_ms = self.presume_until_ms = 0
        """Earlier messages are not wanted; until then, nothing that vectors name is."""

    def receive(self, data: bytes, now_ms: int, hint: bytes | None) -> Arrival:
        """Handle bytes that the transport or Store delivered. `receive` raises no error, whatever
        the bytes are."""
        try:
            packet = self._state.wire.read(data)
        except (TlvError, SignatureRefused) as error:
            return self._reject(RejectionReason.MALFORMED, str(error))
        match packet:
            case None:
                return self._reject(RejectionReason.WRONG_CHANNEL, "a packet of another channel")
            case Sync():
                return self._take_sync(packet, now_ms)
            case Request(place):
                held = self._state.wire.message_id(place) in self._state.log
                own = place.node == self._state.node
                self._state.recovery.asked(place, now_ms, held=held, own=own)
                return Arrival(Outcome.SYNC)
            case Message():
                return self._take_message(packet, now_ms, hint)

    def _take_message(self, message: Message, now_ms: int, hint: bytes | None) -> Arrival:
        who, place = sender_id(message.sender), message.place
        self._state.heard_from(who)
        if place is None:
            if who == self._state.sender_id:
                return Arrival(Outcome.OWN, message.message_id)
            self._state.counters.ephemeral_received += 1
            self._state.emit(EphemeralReceived(message.message_id, who, message.content))
            return Arrival(Outcome.EPHEMERAL, message.message_id)
        if reason := self._refusal(message, now_ms):
            return self._reject(reason, f"Lamport timestamp {message.lamport_timestamp}", message)
        since_ms = self._state.recovery.heard(place, now_ms)
        waited_ms = None if since_ms is None else now_ms - since_ms
        if not self._state.streams.is_new(place):
            return self._take_again(message, now_ms, hint)
        if not self._state.streams.has_room_for(place):
            return self._reject(RejectionReason.INCOMING_BUFFER_FULL, "too far ahead", message)
        if not self._state.svs.heard_of(place.node, place.bootstrap_time, place.seq, now_ms):
            detail = "a bootstrap time too far ahead, or more nodes than are kept"
            return self._reject(RejectionReason.MALFORMED, detail, message)
        stream = self._state.streams.raise_known((place.node, place.bootstrap_time), place.seq)
        if message.lamport_timestamp < self.wanted_from_ms:
            self._skip(stream, place.seq)
            return Arrival(Outcome.UNWANTED, message.message_id)
        if now_ms < self.presume_until_ms and not stream.settled:
            self._skip(stream, place.seq - 1)
        ready = self._state.streams.take(place, message)
        for each in ready:
            self._deliver(each, hint if each is message else None)
        self._take_news(now_ms)
        self.note_missing(stream, now_ms)
        self._state.plan_acknowledgement(now_ms)
        outcome = Outcome.DELIVERED if message in ready else Outcome.PARKED
        return Arrival(outcome, message.message_id, waited_ms)

    def _refusal(self, message: Message, now_ms: int) -> RejectionReason | None:
        if not message.content:
            return RejectionReason.MALFORMED
        if message.lamport_timestamp > now_ms + self._state.options.max_lamport_ahead_ms:
            return RejectionReason.LAMPORT_TOO_FAR_AHEAD
        return None

    def _take_again(self, message: Message, now_ms: int, hint: bytes | None) -> Arrival:
        if hint is not None:
            self._state.log.set_retrieval_hint(message.message_id, hint)
        if message.sender == self._state.node:
            self._state.counters.own_echoes += 1
            return Arrival(Outcome.OWN, message.message_id)
        # Said again because its sender knows of nobody who has it.
        self._state.plan_acknowledgement(now_ms)
        self._state.counters.duplicates += 1
        return Arrival(Outcome.DUPLICATE, message.message_id)

    def _deliver(self, message: Message, hint: bytes | None) -> None:
        who, lamport_timestamp = sender_id(message.sender), message.lamport_timestamp
        self._state.lamport_timestamp = max(self._state.lamport_timestamp, lamport_timestamp)
        entry = LogEntry(message.message_id, who, lamport_timestamp, message.content, hint)
        position = self._state.log.insert(entry)
        self._state.counters.delivered += 1
        self._state.emit(
            MessageReceived(
                message.message_id,
                who,
                message.content,
                lamport_timestamp,
                position,
                retrieval_hint=hint,
            )
        )

    def _take_sync(self, sync: Sync, now_ms: int) -> Arrival:
        if sync.sender == self._state.node:
            return Arrival(Outcome.OWN)
        self._state.svs.receive(sync.vector, now_ms)
        if ignored := self._take_news(now_ms):
            return self._reject(RejectionReason.MALFORMED, ignored.detail)
        if sync.sender is not None:
            who = sender_id(sync.sender)
            self._state.heard_from(who)
            self._state.counters.syncs_received += 1
            self._state.emit(SyncReceived("", who))
            for message_id in self._state.own.acknowledged(sync):
                self._state.counters.acknowledged += 1
                proof = AcknowledgementSource.CAUSAL_HISTORY
                self._state.emit(MessageAcknowledged(message_id, proof, who))
            if not sync.received.is_outdated_to(self._state.streams.received):
                self._state.acknowledge_at_ms = None  # it said all that we would have said
        return Arrival(Outcome.SYNC)

    def _take_news(self, now_ms: int) -> VectorIgnored | None:
        """What the state machine learned; why it learned nothing, if so."""
        ignored = None
        for event in self._state.svs.events():
            if isinstance(event, PublicationsKnown):
                stream = self._state.streams.raise_known(
                    (event.name, event.bootstrap_time), event.last_seq
                )
                if now_ms < self.presume_until_ms:
                    self._skip(stream, stream.known)
                self.note_missing(stream, now_ms)
            elif isinstance(event, VectorIgnored):
                ignored = event
        return ignored

    def note_missing(self, stream: Stream, now_ms: int) -> None:
        """Look for the messages that are missing in a sender's stream."""
        new = [place for place in stream.missing() if self._state.recovery.miss(place, now_ms)]
        if new:
            self._state.emit(MessageMissing(tuple(map(self._state.reference, new))))

    def _skip(self, stream: Stream, seq: int) -> None:
        """Nothing of a stream up to this number is wanted."""
        for place in [place for place in stream.missing() if place.seq <= seq]:
            self._state.recovery.forget(place)
        for message in self._state.streams.skip(stream, seq):
            self._deliver(message, None)

    def give_up(self, place: PublicationName, now_ms: int) -> None:
        """Note that a message was not found in time, and deliver the messages that waited for
        it."""
        reference = self._state.reference(place)
        self._state.counters.lost += 1
        timeout_ms = self._state.options.timeout_for_lost_messages_ms
        reason = f"no participant had it for {timeout_ms} ms"
        self._state.emit(MessageLost(reference.message_id, reference.sender_id, None, reason))
        for message in self._state.streams.give_up(place):
            self._deliver(message, None)
        stream = self._state.streams.get((place.node, place.bootstrap_time))
        if stream.lost_in_a_row >= WINDOW:
            # Numbers are a claim, and nobody has any of so many: the rest is one too.
            self._skip(stream, stream.known)
        self.note_missing(stream, now_ms)

    def _reject(
        self, reason: RejectionReason, detail: str, message: Message | None = None
    ) -> Arrival:
        self._state.counters.rejected += 1
        message_id = "" if message is None else message.message_id
        who = "" if message is None else sender_id(message.sender)
        self._state.emit(MessageRejected(reason, detail, message_id, who))
        return Arrival(Outcome.REJECTED, message_id, reason=reason)
