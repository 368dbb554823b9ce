"""A participant of a channel whose sync protocol is State Vector Sync.

Messages are publications, broadcast as they are made. The state vector is the digest: who learns
from one of messages that it lacks asks for them by name, and anybody who has them answers. Messages
of one sender are delivered in order, each once; the log is ordered by Lamport timestamp and id, and
so equal for all who know the same messages.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from reliable_channel import ContentTooLong, EmptyContent, OutgoingBufferFull
from reliable_channel.events import (
    AcknowledgementSource,
    DeliveryFailed,
    EphemeralReceived,
    HistoryEntry,
    MessageAcknowledged,
    MessageLost,
    MessageMissing,
    MessageReceived,
    MessageRejected,
    RejectionReason,
    SyncReceived,
)
from reliable_channel.sync_core import (
    CHANNEL,
    Arrival,
    Changes,
    LogEntry,
    MessageLog,
    MissingEntry,
    Outcome,
    Outgoing,
    OutgoingKind,
    Progress,
    SdsCounters,
    SdsEvent,
    SdsStatistics,
    SyncSetting,
    Tables,
)

from ..errors import SignatureRefused, TlvError
from ..events import PublicationsKnown, VectorIgnored
from ..naming import PublicationName
from ..options import SvsOptions
from ..protocol import SvsProtocol, suppression_timeout_ms
from ..vector import StateVector
from .outbound import UNACKNOWLEDGED, Outbound
from .recovery import Recovery
from .streams import LOST, STREAMS, Stream, Streams
from .wire import OVERHEAD_BYTES, ChannelWire, Message, Request, Sync, node_name, sender_id

ACKNOWLEDGE_WITHIN_MS: Final = 2_000
"""After a message is delivered somebody sends its state vector within this time, and with it an
acknowledgement. One who does is enough: the draws are skewed as those of §4.1."""
VECTOR_BYTES: Final = 30_000
"""Of one Sync Interest; a Waku message has room for much more than an NDN packet."""
LACKING_TOLD: Final = 50
"""Messages given up that a state vector names, the newest."""
BOOTSTRAP_TIME: Final = "svs_bootstrap_time"


class SvsCore:
    """One participant of one channel (`reliable_channel.sync_core.SyncCore`).

    Raises:
        ValueError: signatures are asked for, which this protocol does not have.
    """

    def __init__(self, setting: SyncSetting) -> None:
        if setting.signing is not None or setting.require_signatures:
            raise ValueError(
                "sync='svs' has no signed senders; leave signing and "
                "require_signatures out, or take sync='sds'"
            )
        self._options = options = setting.options.sds_options()
        self._sender_id, self._random = setting.sender_id, setting.random
        self._recorder = setting.recorder
        self._wire = ChannelWire(setting.channel_id, setting.random)
        self._node = node_name(setting.sender_id)
        self.log = MessageLog(
            options.limits.log_entries,
            options.limits.log_bytes,
            archive=setting.archive,
            recorder=setting.recorder,
            window=options.limits.log_window_entries,
        )
        self._streams = Streams(setting.recorder)
        self._recovery = Recovery(setting.random)
        self._own = Outbound(
            setting.recorder,
            limit=options.limits.outgoing_messages,
            interval_ms=options.retry_interval_ms,
            attempts=options.max_retry_attempts,
        )
        self._svs_options = SvsOptions(
            periodic_timeout_ms=options.sync_min_interval_ms, vector_bytes=VECTOR_BYTES
        )
        self._svs = SvsProtocol(
            self._node, now_ms=setting.now_ms, random=setting.random, options=self._svs_options
        )
        self._lamport = 0
        self._acknowledge_at_ms: int | None = None
        self._wanted_from_ms = self._presume_until_ms = 0
        self._counters = SdsCounters()
        self._events: deque[SdsEvent] = deque()
        self._outgoing: deque[Outgoing] = deque()
        self._participants: set[str] = set()

    # -- own messages ------------------------------------------------------------------------------

    @property
    def unacknowledged(self) -> Collection[str]:
        """The ids of own messages that nobody is known to have."""
        return self._own.waiting.keys()

    @property
    def room(self) -> int:
        """How many more own messages may wait for an acknowledgement."""
        return self._own.limit - len(self._own.waiting)

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for everybody and return its id, its name.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: it does not fit a message.
            OutgoingBufferFull: too many own messages wait for an acknowledgement.
            SequenceExhausted: the last number of this bootstrap time is taken.
        """
        self._check(content)
        if self.room <= 0:
            raise OutgoingBufferFull(f"{self._own.limit} own messages are unacknowledged")
        # DIVERGES from §4.2: the message tells of itself, so its vector waits a moment for others.
        publication = self._svs.publish(now_ms, announce=False)
        self._plan_acknowledgement(now_ms)
        self._recorder.put(CHANNEL, BOOTSTRAP_TIME, self._svs.bootstrap_time)
        place = PublicationName(self._node, publication.bootstrap_time, publication.seq)
        message_id, lamport = self._wire.message_id(place), self._tick(now_ms)
        self.log.insert(LogEntry(message_id, self._sender_id, lamport, content))
        stream = self._streams.get((self._node, publication.bootstrap_time))
        self._streams.settle(stream, publication.seq)
        self._add_own(message_id, place)
        self._counters.sent += 1
        data = self._wire.message(place, lamport, content)
        self._broadcast(OutgoingKind.CONTENT, message_id, data, timestamp_ns)
        return message_id

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message without any promise and return its id.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: it does not fit a message.
        """
        self._check(content)
        message_id, data = self._wire.ephemeral(self._node, now_ms, content)
        self._counters.ephemeral_sent += 1
        self._broadcast(OutgoingKind.EPHEMERAL, message_id, data, timestamp_ns)
        return message_id

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Take note that an own message is out."""
        self._own.dispatched(message_id, now_ms)
        if retrieval_hint is not None:
            self.log.set_retrieval_hint(message_id, retrieval_hint)

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        """Broadcast an own message again ahead of its time; return False where it is settled, or
        was sent as often as may be."""
        own = self._own.waiting.get(message_id)
        if own is None or own.attempts > self._own.most_attempts:
            return False
        return self._send_again(OutgoingKind.RETRY, own.place)

    def abandon(self, message_id: str) -> None:
        """Stop sending an own message that the transport refuses for good."""
        self._own.remove(message_id)

    # -- what arrives ------------------------------------------------------------------------------

    def receive(
        self,
        data: bytes,
        now_ms: int,
        *,
        retrieval_hint: bytes | None = None,
        sent_at_ns: int | None = None,
    ) -> Arrival:
        """Take bytes from the transport or from Store. Never raises for what the bytes are."""
        try:
            packet = self._wire.read(data)
        except (TlvError, SignatureRefused) as error:
            return self._reject(RejectionReason.MALFORMED, str(error))
        match packet:
            case None:
                return self._reject(RejectionReason.WRONG_CHANNEL, "a packet of another channel")
            case Sync():
                return self._take_sync(packet, now_ms)
            case Request(place):
                held = self._wire.message_id(place) in self.log
                own = place.node == self._node
                self._recovery.asked(place, now_ms, held=held, own=own)
                return Arrival(Outcome.SYNC)
            case Message():
                return self._take_message(packet, now_ms, retrieval_hint)

    def _take_message(self, message: Message, now_ms: int, hint: bytes | None) -> Arrival:
        who, place = sender_id(message.sender), message.place
        self._participants.add(who)
        if place is None:
            if who == self._sender_id:
                return Arrival(Outcome.OWN, message.message_id)
            self._counters.ephemeral_received += 1
            self._tell(EphemeralReceived(message.message_id, who, message.content))
            return Arrival(Outcome.EPHEMERAL, message.message_id)
        if reason := self._refusal(message, now_ms):
            return self._reject(reason, f"Lamport timestamp {message.lamport_timestamp}", message)
        since_ms = self._recovery.heard(place, now_ms)
        waited_ms = None if since_ms is None else now_ms - since_ms
        if not self._streams.is_new(place):
            return self._take_again(message, now_ms, hint)
        if not self._streams.has_room_for(place):
            return self._reject(RejectionReason.INCOMING_BUFFER_FULL, "too far ahead", message)
        if not self._svs.heard_of(place.node, place.bootstrap_time, place.seq, now_ms):
            return self._reject(RejectionReason.MALFORMED, "bootstrap time too far ahead", message)
        stream = self._streams.raise_known((place.node, place.bootstrap_time), place.seq)
        if message.lamport_timestamp < self._wanted_from_ms:
            self._skip(stream, place.seq)
            return Arrival(Outcome.UNWANTED, message.message_id)
        ready = self._streams.take(place, message)
        for each in ready:
            self._deliver(each, hint if each is message else None)
        self._take_news(now_ms)
        self._note_missing(stream, now_ms)
        self._plan_acknowledgement(now_ms)
        outcome = Outcome.DELIVERED if message in ready else Outcome.PARKED
        return Arrival(outcome, message.message_id, waited_ms)

    def _refusal(self, message: Message, now_ms: int) -> RejectionReason | None:
        if not message.content:
            return RejectionReason.MALFORMED
        if message.lamport_timestamp > now_ms + self._options.max_lamport_ahead_ms:
            return RejectionReason.LAMPORT_TOO_FAR_AHEAD
        return None

    def _take_again(self, message: Message, now_ms: int, hint: bytes | None) -> Arrival:
        if hint is not None:
            self.log.set_retrieval_hint(message.message_id, hint)
        if message.sender == self._node:
            self._counters.own_echoes += 1
            return Arrival(Outcome.OWN, message.message_id)
        # Said again because its sender knows of nobody who has it.
        self._plan_acknowledgement(now_ms)
        self._counters.duplicates += 1
        return Arrival(Outcome.DUPLICATE, message.message_id)

    def _deliver(self, message: Message, hint: bytes | None) -> None:
        who = sender_id(message.sender)
        self._lamport = max(self._lamport, message.lamport_timestamp)
        entry = LogEntry(message.message_id, who, message.lamport_timestamp, message.content, hint)
        position = self.log.insert(entry)
        self._counters.delivered += 1
        self._tell(
            MessageReceived(
                message.message_id,
                who,
                message.content,
                message.lamport_timestamp,
                position,
                retrieval_hint=hint,
            )
        )

    def _take_sync(self, sync: Sync, now_ms: int) -> Arrival:
        if sync.sender == self._node:
            return Arrival(Outcome.OWN)
        self._svs.receive(sync.vector, now_ms)
        if ignored := self._take_news(now_ms):
            return self._reject(RejectionReason.MALFORMED, ignored.detail)
        if sync.sender is not None:
            who = sender_id(sync.sender)
            self._participants.add(who)
            self._counters.syncs_received += 1
            self._tell(SyncReceived("", who))
            for message_id in self._own.acknowledged(sync):
                self._counters.acknowledged += 1
                proof = AcknowledgementSource.CAUSAL_HISTORY
                self._tell(MessageAcknowledged(message_id, proof, who))
            if not sync.received.is_outdated_to(self._streams.received):
                self._acknowledge_at_ms = None  # somebody else said all that we would have said
        return Arrival(Outcome.SYNC)

    def _take_news(self, now_ms: int) -> VectorIgnored | None:
        """What the state machine learned; why it learned nothing, if so."""
        ignored = None
        for event in self._svs.events():
            if isinstance(event, PublicationsKnown):
                stream = self._streams.raise_known(
                    (event.name, event.bootstrap_time), event.last_seq
                )
                if now_ms < self._presume_until_ms:
                    self._skip(stream, stream.known)
                self._note_missing(stream, now_ms)
            elif isinstance(event, VectorIgnored):
                ignored = event
        return ignored

    # -- what is missing ---------------------------------------------------------------------------

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        """Join a running conversation of which nothing before `wanted_from` (ms) is wanted."""
        self._wanted_from_ms = wanted_from
        self._presume_until_ms = now_ms + presume_ms

    def missing(self) -> Sequence[MissingEntry]:
        """What is known by name alone: what to look for in Store."""
        return [
            MissingEntry(self._reference(place), missing.since_ms)
            for place, missing in self._recovery.missing.items()
        ]

    @property
    def is_missing_something(self) -> bool:
        """Whether `missing()` names anything."""
        return bool(self._recovery.missing)

    def is_awaited(self, message_id: str) -> bool:
        """Whether other messages wait for a missing one."""
        place = self._wire.place(message_id)
        if place is None or place not in self._recovery.missing:
            return False
        return bool(self._streams.get((place.node, place.bootstrap_time)).parked)

    def _note_missing(self, stream: Stream, now_ms: int) -> None:
        new = [place for place in stream.missing() if self._recovery.miss(place, now_ms)]
        if new:
            self._tell(MessageMissing(tuple(map(self._reference, new))))

    def _skip(self, stream: Stream, seq: int) -> None:
        """Nothing of a stream up to this number is wanted."""
        for place in [place for place in stream.missing() if place.seq <= seq]:
            self._recovery.forget(place)
        for message in self._streams.skip(stream, seq):
            self._deliver(message, None)

    def _reference(self, place: PublicationName) -> HistoryEntry:
        return HistoryEntry(self._wire.message_id(place), None, sender_id(place.node))

    # -- time --------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` must be called next."""
        deadlines = (
            self._svs.next_deadline_ms(),
            self._acknowledge_at_ms,
            self._own.next_deadline_ms(),
            self._recovery.next_deadline_ms(self._options.timeout_for_lost_messages_ms),
        )
        return min(due for due in deadlines if due is not None)

    def on_deadline(self, now_ms: int) -> None:
        """Do all that is due."""
        self._svs.on_deadline(now_ms)
        if self._acknowledge_at_ms is not None and self._acknowledge_at_ms <= now_ms:
            self._svs.announce(now_ms)
        for message_id in self._own.due(now_ms):
            self._retry(message_id)
        for place in self._recovery.questions(now_ms):
            self._counters.repairs_requested += 1
            self._broadcast(OutgoingKind.SYNC, "", self._wire.request(place))
        for place in self._recovery.answers(now_ms):
            self._counters.repairs_sent += self._send_again(OutgoingKind.REPAIR, place)
        timeout_ms = self._options.timeout_for_lost_messages_ms
        for place in list(self._recovery.overdue(now_ms, timeout_ms)):
            self._give_up(place, now_ms)

    def _retry(self, message_id: str) -> None:
        own = self._own.waiting[message_id]
        if own.attempts <= self._own.most_attempts and self._send_again(
            OutgoingKind.RETRY, own.place
        ):
            self._counters.retries += 1
            return
        self._own.remove(message_id)
        self._counters.delivery_failed += 1
        reason = f"no acknowledgement after it was sent {own.attempts} times"
        self._tell(DeliveryFailed(message_id, own.attempts, reason))

    def _send_again(self, kind: OutgoingKind, place: PublicationName) -> bool:
        message_id = self._wire.message_id(place)
        entry = self.log.get(message_id)
        if entry is None:
            return False
        data = self._wire.message(place, entry.lamport_timestamp, entry.content)
        self._broadcast(kind, message_id, data)
        return True

    def _give_up(self, place: PublicationName, now_ms: int) -> None:
        reference = self._reference(place)
        self._counters.lost += 1
        timeout_ms = self._options.timeout_for_lost_messages_ms
        reason = f"nobody had it for {timeout_ms} ms"
        self._tell(MessageLost(reference.message_id, reference.sender_id, None, reason))
        for message in self._streams.give_up(place):
            self._deliver(message, None)
        self._note_missing(self._streams.get((place.node, place.bootstrap_time)), now_ms)

    def _plan_acknowledgement(self, now_ms: int) -> None:
        if self._acknowledge_at_ms is None:
            delay_ms = suppression_timeout_ms(ACKNOWLEDGE_WITHIN_MS, self._random())
            self._acknowledge_at_ms = now_ms + round(delay_ms)

    # -- outputs -----------------------------------------------------------------------------------

    def events(self) -> Iterator[SdsEvent]:
        """Hand out all that happened."""
        while self._events:
            yield self._events.popleft()

    def outgoing(self) -> Iterator[Outgoing]:
        """Hand out all that must be broadcast, in order."""
        while self._outgoing:
            yield self._outgoing.popleft()
        for vector in self._svs.outgoing():
            self._acknowledge_at_ms = None
            self._counters.syncs_sent += 1
            yield Outgoing(OutgoingKind.SYNC, "", self._sync(vector))

    def _sync(self, vector: bytes) -> bytes:
        told, received = StateVector.decode(vector), StateVector()
        for name in told:
            for boot, seq in self._streams.received.numbers(name).items():
                received.raise_to(name, boot, seq)
        lacking = self._streams.lost[-LACKING_TOLD:]
        return self._wire.sync(vector, self._node, received, lacking)

    def changes(self) -> Changes:
        """Hand out what changed of what a restart needs."""
        return self._recorder.take()

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        """Begin as before a restart. Own messages that never went out wait in `outgoing()`."""
        values = {row[0]: row[1] for row in tables.get(CHANNEL.name, ())}
        boot = values.get(BOOTSTRAP_TIME)
        assert boot is None or isinstance(boot, int)
        rows = {t: list(tables.get(t.name, ())) for t in (STREAMS, LOST, UNACKNOWLEDGED)}
        known = self._streams.restore(rows[STREAMS], rows[LOST])
        blocks, evicted = tables.get("log_blocks", ()), tables.get("evicted_ids", ())
        self.log.restore(list(newest), list(blocks), list(evicted), None)
        self._lamport = newest[-1].lamport_timestamp if newest else 0
        self._svs = SvsProtocol(
            self._node,
            now_ms=now_ms,
            random=self._random,
            bootstrap_time=boot,
            vector=known,
            options=self._svs_options,
        )
        for message_id, attempts in self._own.restore(rows[UNACKNOWLEDGED]):
            place = self._wire.place(message_id)
            if place is None:
                continue
            self._add_own(message_id, place, attempts)
            if attempts:
                self._own.dispatched(message_id, now_ms)
            else:
                self._send_again(OutgoingKind.CONTENT, place)
        for stream in list(self._streams):
            self._note_missing(stream, now_ms)

    def progress(self) -> Progress:
        """How much of what it knows of it has."""
        waiting = sum(len(stream.parked) for stream in self._streams)
        missing = len(self._recovery.missing) + waiting
        return Progress(self._counters.delivered, missing, len(self._streams.lost))

    def statistics(self) -> SdsStatistics:
        """A snapshot of counters and buffers; zero for what the protocol has not."""
        return SdsStatistics(
            counters=self._counters,
            lamport_timestamp=self._lamport,
            log_length=len(self.log),
            log_evicted=self.log.evicted,
            outgoing=len(self._own.waiting),
            incoming=sum(len(stream.parked) for stream in self._streams),
            missing=len(self._recovery.missing),
            lost_entries=len(self._streams.lost),
            repair_requests=len(self._recovery.missing),
            repair_responses=0,
            repair_cache_bytes=0,
            bloom_filter_messages=0,
            bloom_filter_rollovers=0,
            participants=len(self._participants - {self._sender_id}),
        )

    # -- inside ------------------------------------------------------------------------------------

    def _check(self, content: bytes) -> None:
        if not content:
            raise EmptyContent("there is nothing to send")
        limit = self._options.max_message_bytes - OVERHEAD_BYTES - 2 * len(self._node.encode())
        if len(content) > limit:
            raise ContentTooLong(f"{len(content)} bytes; at most {limit} fit a message")

    def _add_own(self, message_id: str, place: PublicationName, attempts: int = 0) -> None:
        name = self._wire.naming.publication(place.node, place.bootstrap_time, place.seq)
        self._own.add(message_id, place, name, attempts)

    def _tick(self, now_ms: int) -> int:
        self._lamport = max(now_ms, self._lamport + 1)
        return self._lamport

    def _broadcast(
        self, kind: OutgoingKind, message_id: str, data: bytes, timestamp_ns: int | None = None
    ) -> None:
        self._outgoing.append(Outgoing(kind, message_id, data, timestamp_ns))

    def _reject(
        self, reason: RejectionReason, detail: str, message: Message | None = None
    ) -> Arrival:
        self._counters.rejected += 1
        message_id = "" if message is None else message.message_id
        who = "" if message is None else sender_id(message.sender)
        self._tell(MessageRejected(reason, detail, message_id, who))
        return Arrival(Outcome.REJECTED, message_id, reason=reason)

    def _tell(self, event: SdsEvent) -> None:
        self._events.append(event)
