"""Participant of a channel that MVDS keeps in sync.

All participants receive the transport's broadcasts, for which MVDS has no rules. A new message is
therefore broadcast once to all participants. After the broadcast, a node (`node.py`) repeats the
message to peers that do not acknowledge it. Payloads between other participants are also read,
because they tell which messages a peer has. The peers of a participant are all participants that it
has heard. A peer that answers none of several messages counts as gone. A peer that returns is
offered the messages that the node holds.

MVDS has no order of messages. The core delivers each message when it arrives. The log is ordered by
Lamport timestamps, so that all participants end with the same log.
"""

from collections.abc import Collection, Sequence, Sized
from copy import copy
from hashlib import sha256

from reliable_channel.diagnostics import RejectionReason, SyncReceived, SyncSent
from reliable_channel.errors import ContentTooLong, EmptyContent, OutgoingBufferFull
from reliable_channel.events import (
    AcknowledgementSource,
    DeliveryFailed,
    EphemeralReceived,
    MessageAcknowledged,
)
from reliable_channel.spi import (
    Agenda,
    Arrival,
    Changes,
    CoreContext,
    LogEntry,
    MissingEntry,
    Outcome,
    OutgoingKind,
    Progress,
    SdsStatistics,
    Slot,
    Tables,
)

from .. import events as node_events
from ..errors import BodyTooLong, NodeFull
from ..message import GroupId, MessageId, PeerId
from ..node import MvdsNode
from .broadcast import Broadcast
from .delivery import Delivery
from .own import OWN, Hello, OwnMessages
from .setting import FRESH_MS, MAX_PEERS, node_options
from .wire import MAX_ID_BYTES, Content, Envelope, EnvelopeError


class MvdsCore:
    """Sync core of `sync="mvds"`.

    Raises:
        ValueError: an id is too long, messages are too short for MVDS, or signatures are asked for.
    """

    def __init__(self, context: CoreContext) -> None:
        if context.signing is not None or context.require_signatures:
            raise ValueError("sync is 'mvds': its messages cannot be signed; leave signing= out")
        if max(len(context.channel_id.encode()), len(context.sender_id.encode())) > MAX_ID_BYTES:
            raise ValueError(
                f"sync='mvds' allows ids of at most {MAX_ID_BYTES} bytes; choose a shorter id"
            )
        self._context, self._options = context, context.options.sds_options()
        name = b"reliable-channel mvds " + _bytes(context.channel_id)
        self._group = GroupId(sha256(name).digest())
        self._node = MvdsNode(
            PeerId(_bytes(context.sender_id)),
            now_ms=context.now_ms,
            random=context.random,
            options=node_options(self._options),
            recorder=context.recorder,
        )
        self._delivery, self._broadcast = Delivery(context), Broadcast(context)
        self.log, self._counters = self._delivery.log, self._delivery.counters
        self.agenda = Agenda()
        self.events, self.outgoing = self._delivery.events, self._broadcast.outgoing
        # Peers offer their messages and MVDS requests them, so the core knows of no gap.
        self.wanted: list[MissingEntry] = []
        self.missing_tables: Sequence[Sized] = ()
        self._own = OwnMessages(context.recorder)
        self._hello = Hello(context.now_ms)
        self._plan()

    # -- sending -----------------------------------------------------------------------------------

    @property
    def unacknowledged(self) -> Collection[str]:
        """Ids of the participant's messages that no other participant is known to have."""
        return self._own.resent.keys()

    @property
    def capacity_left(self) -> int:
        """Number of further messages that may wait for an acknowledgement."""
        return max(0, self._options.limits.outgoing_messages - len(self._own.resent))

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for all participants, and return the message's id.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: it would be longer than `max_message_bytes`.
            OutgoingBufferFull: too many own messages are unacknowledged, or all held messages are.
        """
        if not content:
            raise EmptyContent("the content is empty; there is nothing to send")
        if not self.capacity_left:
            raise OutgoingBufferFull(
                f"{len(self._own.resent)} own messages wait for an acknowledgement, the maximum "
                "of limits.outgoing_messages; send again later"
            )
        message = Content(self._context.sender_id, self._delivery.next_clock(now_ms), content)
        try:
            message_id = self._node.append(self._group, message.encode(), now_ms, broadcast=True)
        except BodyTooLong as error:
            raise ContentTooLong(str(error)) from error
        except NodeFull as error:
            raise OutgoingBufferFull(str(error)) from error
        self._own.add(message_id.hex())
        self._delivery.accepted(message_id, message)
        self._broadcast_message(OutgoingKind.CONTENT, message_id)
        self._hear_node(now_ms)
        return message_id.hex()

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message without any promise of delivery, and return its id.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: it would be longer than `max_message_bytes`.
        """
        if not content:
            raise EmptyContent("the content is empty; there is nothing to send")
        outgoing = self._broadcast.ephemeral(content, now_ms)
        if len(outgoing.data) > self._options.max_message_bytes:
            raise ContentTooLong(
                f"the message has {len(outgoing.data)} bytes; max_message_bytes is "
                f"{self._options.max_message_bytes}"
            )
        self._counters.ephemeral_sent += 1
        self.outgoing.append(outgoing)
        return outgoing.message_id

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Note that an own message or payload was sent."""
        self._broadcast.under_way.discard(message_id)
        self._own.dispatched(message_id)
        self._plan()

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        """Broadcast an own message again before its next repetition is due. If the message is
        acknowledged or has no attempts left, `resend_early` returns False."""
        resent = self._own.resent.get(message_id, self._options.max_retry_attempts)
        if resent >= self._options.max_retry_attempts:
            return False
        self._own.resent[message_id] = resent + 1
        self._counters.retries += 1
        return self._broadcast_message(OutgoingKind.RETRY, _id(message_id))

    def abandon(self, message_id: str) -> None:
        """Stop sending a message that the transport refuses permanently."""
        self._broadcast.under_way.discard(message_id)
        if self._own.settle(message_id):
            self._node.withdraw(_id(message_id))
        self._plan()

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        """Join a running conversation, without messages from before `wanted_from` (ms)."""
        self._delivery.want_from(wanted_from)

    # -- receiving ---------------------------------------------------------------------------------

    def receive(
        self,
        data: bytes,
        now_ms: int,
        *,
        retrieval_hint: bytes | None = None,
        sent_at_ns: int | None = None,
    ) -> Arrival:
        """Handle bytes that the transport or Store delivered. `receive` raises no error, whatever
        the bytes are."""
        try:
            envelope = Envelope.decode(data)
        except EnvelopeError as error:
            return self._delivery.rejected(RejectionReason.MALFORMED, str(error))
        sender_id = envelope.sender_id
        if envelope.channel_id != self._context.channel_id:
            detail = f"it is of channel {envelope.channel_id!r}"
            return self._delivery.rejected(RejectionReason.WRONG_CHANNEL, detail, sender_id)
        if sender_id == self._context.sender_id:
            self._counters.own_echoes += 1
            return Arrival(Outcome.OWN)
        if envelope.ephemeral:
            return self._take_ephemeral(envelope, sha256(data).hexdigest())
        peer_id = PeerId(_bytes(sender_id))
        if not self._meet(peer_id, envelope, now_ms, sent_at_ns):
            detail = "there are as many participants as there may be"
            return self._delivery.rejected(RejectionReason.INCOMING_BUFFER_FULL, detail, sender_id)
        if envelope.recipient_id not in ("", self._context.sender_id):
            self._node.overhear(peer_id, envelope.payload, now_ms)
            self._hear_node(now_ms)
            return Arrival(Outcome.SYNC)
        return self._take_payload(peer_id, envelope.payload, now_ms, retrieval_hint)

    def _take_payload(
        self, peer_id: PeerId, payload: bytes, now_ms: int, retrieval_hint: bytes | None
    ) -> Arrival:
        """Give the node a payload, and say what became of it by what that changed."""
        counters = self._counters
        delivered, rejected, duplicates = counters.delivered, counters.rejected, counters.duplicates
        self._node.receive(peer_id, payload, now_ms)
        self._hear_node(now_ms, retrieval_hint)
        counters.duplicates = self._node.statistics().counters.duplicates_received
        if counters.delivered > delivered:
            return Arrival(Outcome.DELIVERED)
        if counters.rejected > rejected:
            return Arrival(Outcome.REJECTED)
        if counters.duplicates > duplicates:
            return Arrival(Outcome.DUPLICATE)
        counters.syncs_received += 1
        return Arrival(Outcome.SYNC)

    def _take_ephemeral(self, envelope: Envelope, message_id: str) -> Arrival:
        self._counters.ephemeral_received += 1
        self.events.append(EphemeralReceived(message_id, envelope.sender_id, envelope.ephemeral))
        return Arrival(Outcome.EPHEMERAL, message_id)

    def _meet(
        self, peer_id: PeerId, envelope: Envelope, now_ms: int, sent_at_ns: int | None
    ) -> bool:
        """Get to know a peer that is heard; return False where these are too many."""
        peers = self._node.peers(self._group)
        known = peer_id in peers
        if not known:
            if len(peers) >= min(self._options.limits.participants, MAX_PEERS):
                return False
            self._node.add_peer(self._group, peer_id)
            self._node.offer_held(self._group, peer_id, now_ms)
            self._hello.heard_somebody()
        if not envelope.is_hello:
            return True
        self.events.append(SyncReceived("", envelope.sender_id))
        fresh = sent_at_ns is None or now_ms - sent_at_ns // 1_000_000 <= FRESH_MS
        if fresh and self._broadcast.answer(peer_id) and known:
            self._node.peer_is_back(peer_id, now_ms)
        return True

    def _hear_node(self, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        for event in self._node.events():
            match event:
                case node_events.MessageReceived():
                    self._delivery.deliver(event, now_ms, retrieval_hint)
                case node_events.MessageAcknowledged(message_id, peer_id):
                    self._acknowledged(message_id.hex(), peer_id)
                case node_events.DeliveryFailed():
                    self._gone(event, now_ms)
                case node_events.PayloadRejected(peer_id, detail):
                    self._delivery.rejected(RejectionReason.MALFORMED, detail, peer_id.decode())
                case node_events.ElementsRejected():
                    self._elements_rejected(event)
                case node_events.LimitReached():
                    pass  # what everybody has made room; the log still has it
        self._plan()

    def _acknowledged(self, message_id: str, peer_id: PeerId) -> None:
        if self._own.settle(message_id):
            self._counters.acknowledged += 1
            # A proof, as a causal history is: the peer says that it holds the message.
            proof = AcknowledgementSource.CAUSAL_HISTORY
            self.events.append(MessageAcknowledged(message_id, proof, peer_id.decode()))

    def _gone(self, event: node_events.DeliveryFailed, now_ms: int) -> None:
        """A peer that leaves something unanswered as often as may be is gone, until it is heard
        again."""
        if event.element is node_events.Element.REQUEST:
            return
        self._node.remove_peer(self._group, event.peer_id)
        if not self._node.peers(self._group):
            self._hello.alone(now_ms)
        message_id = event.message_id.hex()
        waits = any(record.message_id == event.message_id for record in self._node.records())
        if not waits and self._own.settle(message_id):
            self._counters.delivery_failed += 1
            reason = f"no acknowledgement after it was sent {event.send_count} times"
            self.events.append(DeliveryFailed(message_id, event.send_count, reason))

    def _elements_rejected(self, event: node_events.ElementsRejected) -> None:
        reason = {
            node_events.Reason.NO_ROOM: RejectionReason.INCOMING_BUFFER_FULL,
            node_events.Reason.NOT_IN_GROUP: RejectionReason.WRONG_CHANNEL,
            node_events.Reason.MALFORMED_ID: RejectionReason.MALFORMED,
            node_events.Reason.MALFORMED_GROUP: RejectionReason.MALFORMED,
        }.get(event.reason)
        if reason is not None:  # a request for what was forgotten since is nobody's fault
            detail = f"{event.count} of {event.element.value}: {event.reason.value}"
            self._delivery.rejected(reason, detail, event.peer_id.decode(), event.example_id.hex())

    # -- time --------------------------------------------------------------------------------------

    def on_deadline(self, now_ms: int) -> None:
        """Send what is due at this time, and give up messages that were repeated too often."""
        if self._hello.due_ms is not None and self._hello.due_ms <= now_ms:
            self._hello.said(now_ms, alone=not self._node.peers(self._group))
            self._counters.syncs_sent += 1
            self.events.append(SyncSent(self._broadcast.hello()))
        if not self._broadcast.under_way:
            self._node.on_deadline(now_ms)
            for payload in self._node.outgoing():
                self._broadcast.payload(payload.peer_id, payload.data)
            self._hear_node(now_ms)
        self._plan()

    def _plan(self) -> None:
        """Plan the next deadlines, after each input that may change them."""
        waits = bool(self._broadcast.under_way)
        self.agenda.plan(Slot.SYNC, self._hello.due_ms)
        self.agenda.plan(Slot.RETRY, None if waits else self._node.next_deadline_ms())

    # -- outputs -----------------------------------------------------------------------------------

    def missing(self) -> Sequence[MissingEntry]:
        """Return no messages, because peers offer their messages and MVDS requests them."""
        return ()

    def ask_participants(self, missing: MissingEntry, now_ms: int) -> None:
        """Do nothing, because MVDS does not know of gaps."""

    def is_awaited(self, message_id: str) -> bool:
        """Return False, because in MVDS no message waits for another message."""
        return False

    def changes(self) -> Changes:
        """Return the changes of the state that a restart needs."""
        self._delivery.record()
        return self._context.recorder.take()

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        """Begin with the state that an earlier process recorded."""
        self._node.restore(tables, now_ms)
        self._delivery.restore(tables, newest)
        undispatched = self._own.restore(tables.get(OWN.name, ()))
        entries = [entry for i in undispatched if (entry := self.log.get(i)) is not None]
        for message_id in (entry.message_id for entry in sorted(entries, key=lambda e: e.key)):
            self._broadcast_message(OutgoingKind.CONTENT, _id(message_id))
        self._plan()

    def progress(self) -> Progress:
        """Return the number of this participant's messages that each peer has."""
        missing = self._node.statistics().requests
        return Progress(received=self._counters.delivered, missing=missing, lost=0)

    def statistics(self) -> SdsStatistics:
        """Return a snapshot of counters and buffers, with 0 for figures that MVDS does not have."""
        progress = self.progress()
        return SdsStatistics(
            counters=copy(self._counters),
            lamport_timestamp=self._delivery.clock,
            log_length=len(self.log),
            log_evicted=self.log.evicted,
            outgoing=len(self._own.resent),
            incoming=0,
            missing=progress.missing,
            lost_entries=0,
            repair_requests=0,
            repair_responses=0,
            repair_cache_bytes=self._node.statistics().message_bytes,
            bloom_filter_messages=0,
            bloom_filter_rollovers=0,
            participants=len(self._node.peers(self._group)),
        )

    # -- inside ------------------------------------------------------------------------------------

    def _broadcast_message(self, kind: OutgoingKind, message_id: MessageId) -> bool:
        """Send an own message to all; return False where it is held no more."""
        if (message := self._node.get(message_id)) is None:
            return False
        self._broadcast.message(kind, message)
        return True


def _bytes(text: str) -> bytes:
    return text.encode()


def _id(message_id: str) -> MessageId:
    return MessageId(bytes.fromhex(message_id))
