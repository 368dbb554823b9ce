"""The state machine of one participant in one channel: SDS with its repair extension SDS-R.

Sans-I/O. The owner calls `send…`, `receive`, `dispatched` and, when `next_deadline_ms()` has come,
`on_deadline`, each with the time; then it broadcasts what `outgoing()` hands out and tells the
application what `events()` hands out. Nothing else changes state, and nothing here reads a clock,
draws a random number of its own, or waits.

Source: LIP 109 (SDS) and the SDS-R implementation guide; section names in the comments are theirs.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from .acknowledgements import AcknowledgementReview, Participants
from .bloom import RollingBloomFilter
from .causal_history import CausalTail
from .clock import LamportClock
from .errors import ContentTooLong, EmptyContent, MessageIdInUse, OutgoingBufferFull
from .events import (
    DeliveryFailed,
    EphemeralReceived,
    MessageAcknowledged,
    MessageLost,
    MessageMissing,
    MessageReceived,
    MessageRejected,
    Outgoing,
    OutgoingKind,
    RejectionReason,
    RepairRequested,
    RepairRequestReceived,
    RepairSent,
    SdsEvent,
    SyncReceived,
    SyncSent,
)
from .ids import IdFunction, reliable_channel_id
from .incoming import IncomingBuffer, MissingEntry, ParkedMessage, in_log_order
from .log import LogEntry, MessageLog
from .message import HistoryEntry, Message, MessageKind
from .options import SdsOptions
from .outgoing import OutgoingBuffer
from .repair import IncomingRepairBuffer, OutgoingRepairBuffer, RepairCache
from .statistics import SdsCounters, SdsStatistics
from .sync import Heard, JsWakuSchedule, Random, SuppressedSchedule, SyncSchedule
from .wire import CodecError, SpecCodec

_T = TypeVar("_T")


class Outcome(Enum):
    """What became of a received message."""

    DELIVERED = "delivered"
    PARKED = "parked"
    DUPLICATE = "duplicate"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"
    OWN = "own"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Arrival:
    """The answer to `receive`."""

    outcome: Outcome
    message_id: str = ""
    was_missing: bool = False
    """Whether somebody here waited for this message."""


class SdsProtocol:
    """One participant of one channel.

    `random` returns floats in [0, 1) and is asked for sync back-off and sync ids alone.
    """

    def __init__(
        self,
        channel_id: str,
        sender_id: str,
        *,
        now_ms: int,
        random: Random,
        options: SdsOptions | None = None,
        id_function: IdFunction = reliable_channel_id,
    ) -> None:
        self.channel_id = channel_id
        self.sender_id = sender_id
        self.options = options = options or SdsOptions()
        self.clock = LamportClock(now_ms)
        self.log = MessageLog(options.limits.log_entries)
        self.bloom_filter = RollingBloomFilter(options.bloom)
        self.participants = Participants(options.limits.participants)
        self.outgoing_buffer = OutgoingBuffer(
            self.bloom_filter.layout,
            retry_interval_ms=options.retry_interval_ms,
            possibly_acknowledged_interval_ms=options.possibly_acknowledged_interval_ms,
        )
        self.incoming_buffer = IncomingBuffer(lost_limit=options.limits.missing_entries)
        self.repair_requests = OutgoingRepairBuffer(sender_id, options.repair)
        self.repair_responses = IncomingRepairBuffer(sender_id, options.repair)
        self.counters = SdsCounters()
        self._codec = SpecCodec()
        self._tail = CausalTail(
            self.log,
            options.causal_history_size,
            options.max_message_bytes // 2,
            self._codec.encode_causal_entry,
        )
        self._repair_cache = RepairCache(
            options.repair.cache_bytes if options.repair.enabled else 0
        )
        self._acknowledgements = AcknowledgementReview(
            self.outgoing_buffer, self.participants, self.bloom_filter.layout, options
        )
        self._id_function = id_function
        self._last_timestamp_ns = 0
        self._random = random
        self._schedule = _schedule(options, random)
        self._events: deque[SdsEvent] = deque()
        self._outgoing: deque[Outgoing] = deque()
        self._undispatched: dict[str, LogEntry] = {}
        self._sync_at_ms: int | None = None
        self._sweep_at_ms: int | None = None
        self._repair_sync_not_before_ms = 0
        self._restart_sync(Heard.START, now_ms)

    # -- sending -----------------------------------------------------------------------------------

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for everybody in the channel and return its id.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: the message would be longer than `max_message_bytes`.
            OutgoingBufferFull: `limits.outgoing_messages` own messages are unacknowledged.
            MessageIdInUse: the id function returned an id for the second time.
        """
        if not content:
            raise EmptyContent("a message needs content: an empty one reads as a sync message")
        limit = self.options.limits.outgoing_messages
        if len(self.outgoing_buffer) >= limit:
            raise OutgoingBufferFull(
                f"{limit} own messages wait for an acknowledgement; send again later"
            )
        message_id = self._next_id(content, now_ms, timestamp_ns)
        if message_id in self.log or message_id in self.outgoing_buffer.entries:
            raise MessageIdInUse(
                f"message id {message_id!r} belongs to an earlier message; ids must be unique"
            )
        lamport = self.clock.tick(now_ms)
        data = self._assemble(message_id, lamport, content, now_ms)
        entry = LogEntry(message_id, self.sender_id, lamport, content)
        self.outgoing_buffer.add(message_id, data)
        if self.options.behaviour.log_own_message == "on_send":
            self._log_own(entry)
        else:
            self._undispatched[message_id] = entry
        self._repair_cache.add(message_id, data)
        self._outgoing.append(Outgoing(OutgoingKind.CONTENT, message_id, data))
        self.counters.sent += 1
        self._restart_sync(Heard.OWN_CONTENT, now_ms)
        return message_id

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Take note that an own message is out, and under which Waku message hash others may
        retrieve it."""
        if entry := self._undispatched.pop(message_id, None):
            self._log_own(entry)
        self.outgoing_buffer.dispatched(message_id, now_ms)
        if retrieval_hint is not None:
            self.set_retrieval_hint(message_id, retrieval_hint)

    def set_retrieval_hint(self, message_id: str, retrieval_hint: bytes) -> None:
        """Remember how others may retrieve a message, where that was not known yet."""
        entry = self.log.get(message_id)
        if entry is not None and entry.retrieval_hint is None:
            entry.retrieval_hint = retrieval_hint
            self._tail.forget(message_id)

    def resend(self, message_id: str, now_ms: int) -> None:
        """Broadcast an unacknowledged own message again, the same bytes; its clock steps as for a
        new one."""
        entry = self.outgoing_buffer.entries[message_id]
        self.clock.tick(now_ms)
        self._outgoing.append(Outgoing(OutgoingKind.RETRY, message_id, entry.data))
        self.counters.retries += 1

    def send_sync(self, now_ms: int, *, message_id: str | None = None) -> bool:
        """Broadcast a sync message (LIP 109, Periodic Sync Message); return whether there was
        anything to say."""
        lamport = self.clock.tick(now_ms)
        has_request = self._has_due_request(now_ms)
        if not (len(self.log) or has_request or self.options.behaviour.sync_without_history):
            return False
        message_id = message_id or f"sync-{int(self._random() * 2**53):014x}"
        data = self._assemble(message_id, lamport, None, now_ms)
        self._outgoing.append(Outgoing(OutgoingKind.SYNC, message_id, data))
        self._events.append(SyncSent(message_id))
        self.counters.syncs_sent += 1
        self._restart_sync(Heard.OWN_SYNC, now_ms)
        return True

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message without any promise and return its id (LIP 109, Ephemeral Messages).

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: the message would be longer than `max_message_bytes`.
        """
        if not content:
            raise EmptyContent("an ephemeral message needs content")
        message_id = self._next_id(content, now_ms, timestamp_ns)
        message = Message(self.sender_id, message_id, self.channel_id, content=content)
        data = self._codec.encode(message)
        self._check_length(content, data)
        self._outgoing.append(Outgoing(OutgoingKind.EPHEMERAL, message_id, data))
        self.counters.ephemeral_sent += 1
        return message_id

    # -- receiving ---------------------------------------------------------------------------------

    def receive(self, data: bytes, now_ms: int, *, retrieval_hint: bytes | None = None) -> Arrival:
        """Take bytes from the transport or from Store; `retrieval_hint` is their Waku message hash.

        Never raises for what the bytes are: what is refused becomes a `MessageRejected` event and
        leaves no trace.
        """
        try:
            message = self._codec.decode(data)
        except CodecError as error:
            return self._reject(RejectionReason.MALFORMED, str(error))
        if message.channel_id != self.channel_id:
            detail = f"it belongs to channel {message.channel_id!r}, this is {self.channel_id!r}"
            return self._reject(RejectionReason.WRONG_CHANNEL, detail, message)
        if message.sender_id == self.sender_id:
            self.counters.own_echoes += 1
            return Arrival(Outcome.OWN, message.message_id)
        if not message.sender_id or not message.message_id:
            return self._reject(
                RejectionReason.MISSING_ID, "sender_id and message_id must be set", message
            )
        if message.kind is MessageKind.EPHEMERAL:
            self._events.append(
                EphemeralReceived(message.message_id, message.sender_id, message.content or b"")
            )
            self.counters.ephemeral_received += 1
            return Arrival(Outcome.EPHEMERAL, message.message_id)
        return self._receive_reliable(message, data, now_ms, retrieval_hint)

    def _receive_reliable(
        self, message: Message, data: bytes, now_ms: int, retrieval_hint: bytes | None
    ) -> Arrival:
        lamport, message_id = message.lamport_timestamp or 0, message.message_id
        ahead_ms = lamport - now_ms
        if ahead_ms > self.options.max_lamport_ahead_ms:
            detail = f"lamport_timestamp {lamport} is {ahead_ms} ms ahead of local time"
            return self._reject(RejectionReason.LAMPORT_TOO_FAR_AHEAD, detail, message)
        self.participants.heard(message.sender_id, now_ms)
        if message.repair_request and self.options.repair.enabled:
            self._review_repair_request(message, now_ms)
        for event in self._acknowledgements.review(message):
            self.counters.acknowledged += isinstance(event, MessageAcknowledged)
            self._events.append(event)
        if message.kind is MessageKind.SYNC:
            return self._receive_sync(message, now_ms)
        known = self.log.get(message_id)
        if known is not None or message_id in self.incoming_buffer.parked:
            return self._receive_again(message, known, retrieval_hint)
        was_missing = message_id in self.incoming_buffer.missing
        self.repair_requests.remove(message_id)
        if self.log.is_below_horizon(lamport, message_id):
            detail = f"the log keeps its newest {self.log.limit} messages and this is older"
            if was_missing:
                self._give_up(HistoryEntry(message_id, retrieval_hint, message.sender_id), detail)
            return self._reject(RejectionReason.OLDER_THAN_LOG, detail, message)
        self.incoming_buffer.arrived(message_id)
        self._restart_sync(Heard.CONTENT, now_ms)
        # LIP 109, Receive: the id enters the bloom filter before its dependencies are looked at.
        self.bloom_filter.insert(message_id)
        parked = ParkedMessage(message, data, retrieval_hint, now_ms, set())
        if unmet := self._note_unmet(message, now_ms, parked.lost):
            parked.unmet = unmet
            self._park(parked, now_ms)
        else:
            self._deliver(parked)
        waits = message_id in self.incoming_buffer.parked
        return Arrival(Outcome.PARKED if waits else Outcome.DELIVERED, message_id, was_missing)

    def _receive_sync(self, message: Message, now_ms: int) -> Arrival:
        self._events.append(SyncReceived(message.message_id, message.sender_id))
        self.counters.syncs_received += 1
        self._note_unmet(message, now_ms, [])
        self._bound_missing()
        self._restart_sync(Heard.SYNC, now_ms)
        return Arrival(Outcome.SYNC, message.message_id)

    def _receive_again(
        self, message: Message, known: LogEntry | None, retrieval_hint: bytes | None
    ) -> Arrival:
        message_id = message.message_id
        content = (
            known.content if known else self.incoming_buffer.parked[message_id].message.content
        )
        if content != message.content:
            detail = "a message with this id and other content came first"
            return self._reject(RejectionReason.ID_ALREADY_USED, detail, message)
        self.repair_responses.remove(message_id)
        if known is not None and retrieval_hint is not None:
            self.set_retrieval_hint(message_id, retrieval_hint)
        self.counters.duplicates += 1
        return Arrival(Outcome.DUPLICATE, message_id)

    def _note_unmet(self, message: Message, now_ms: int, lost: list[HistoryEntry]) -> set[str]:
        """Find the unmet dependencies, note those that are missing, and collect in `lost` those
        given up."""
        known = self.log.entries
        absent = [i for i, message_id in enumerate(message.causal_ids) if message_id not in known]
        if not absent:
            return set()
        unmet: set[str] = set()
        news: list[HistoryEntry] = []
        buffer, repair = self.incoming_buffer, self.options.repair.enabled
        for entry in (message.causal_history[i] for i in absent):
            dependency = entry.message_id
            if not dependency or dependency == message.message_id or dependency in unmet:
                continue
            if self.log.was_evicted(dependency):
                continue
            if dependency in buffer.lost:
                lost.append(entry)
            else:
                unmet.add(dependency)
                if buffer.note_missing(entry, now_ms):
                    news.append(entry)
            # Lost is what nobody waits for; who still refers to it may well have it by now.
            if repair and dependency not in buffer.parked:
                self.repair_requests.want(entry, now_ms)
        if news:
            self._events.append(MessageMissing(tuple(news)))
        self._plan_sweep(now_ms)
        return unmet

    def _park(self, parked: ParkedMessage, now_ms: int) -> None:
        buffer, limits = self.incoming_buffer, self.options.limits
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
            if self.options.repair.enabled:
                self.repair_requests.want(entry, now_ms)
        # The decoded history is not needed any more, and larger than all the rest.
        parked.message = replace(parked.message, causal_history=(), bloom_filter=None)
        buffer.park(parked)
        self._bound_missing()
        self._plan_sweep(now_ms)

    def _bound_missing(self) -> None:
        limit, missing = self.options.limits.missing_entries, self.incoming_buffer.missing
        while len(missing) > limit:
            oldest = next(iter(missing.values())).entry
            self._give_up(oldest, f"more than {limit} references are missing")

    # -- delivery ----------------------------------------------------------------------------------

    def _deliver(self, first: ParkedMessage) -> None:
        """Deliver a message, and those whose last dependency it was (LIP 109, Deliver Message)."""
        at_once = self.options.behaviour.deliver == "at_once"
        ready = deque([first])
        while ready:
            parked = ready.popleft()
            message = parked.message
            lamport, content = message.lamport_timestamp or 0, message.content or b""
            self.clock.merge(lamport)
            entry = LogEntry(
                message.message_id, message.sender_id, lamport, content, parked.retrieval_hint
            )
            position = self.log.insert(entry)
            self._repair_cache.add(message.message_id, parked.data)
            self.counters.delivered += 1
            self._events.append(
                MessageReceived(
                    message.message_id,
                    message.sender_id,
                    content,
                    lamport,
                    position,
                    tuple(parked.lost),
                    parked.retrieval_hint,
                )
            )
            released = self.incoming_buffer.settle(message.message_id)
            if at_once and released:
                ready.extend(
                    self.incoming_buffer.take(p.message.message_id) for p in in_log_order(released)
                )

    def _give_up(self, entry: HistoryEntry, reason: str) -> None:
        self._events.append(
            MessageLost(entry.message_id, entry.sender_id, entry.retrieval_hint, reason)
        )
        self.counters.lost += 1
        for parked in in_log_order(self.incoming_buffer.give_up(entry)):
            if parked.message.message_id in self.incoming_buffer.parked:
                self._deliver(self.incoming_buffer.take(parked.message.message_id))

    # -- repair ------------------------------------------------------------------------------------

    def _review_repair_request(self, message: Message, now_ms: int) -> None:
        asked = tuple(entry.message_id for entry in message.repair_request)
        self._events.append(RepairRequestReceived(asked, message.sender_id))
        for entry in message.repair_request:
            self.repair_requests.requested_by_other(entry.message_id, now_ms)
            if entry.message_id in self.log and self._held(entry.message_id) is not None:
                self.repair_responses.request(entry, now_ms)

    def _held(self, message_id: str) -> bytes | None:
        own = self.outgoing_buffer.entries.get(message_id)
        return own.data if own else self._repair_cache.get(message_id)

    def _has_due_request(self, now_ms: int) -> bool:
        due_ms = self.repair_requests.next_deadline_ms()
        return due_ms is not None and due_ms <= now_ms

    # -- time --------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` must be called next, or None while there is nothing to wait for."""
        request_ms = self.repair_requests.next_deadline_ms()
        if request_ms is not None:
            request_ms = max(request_ms, self._repair_sync_not_before_ms)
        deadlines = (
            self._sync_at_ms,
            self._sweep_at_ms,
            request_ms,
            self.outgoing_buffer.next_deadline_ms(),
            self.repair_responses.next_deadline_ms(),
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def on_deadline(self, now_ms: int) -> None:
        """Do all that is due."""
        self.sweep_outgoing(now_ms)
        self.sweep_repair(now_ms)
        if self._sweep_at_ms is not None and self._sweep_at_ms <= now_ms:
            self.sweep_incoming(now_ms)
        # SDS-R, Periodic Sync: a due request is sent whether or not others sent a sync message
        # lately.
        asks = self._has_due_request(now_ms) and self._repair_sync_not_before_ms <= now_ms
        if asks or (self._sync_at_ms is not None and self._sync_at_ms <= now_ms):
            self._restart_sync(Heard.OWN_SYNC, now_ms)
            self.send_sync(now_ms)
        if asks:
            self._repair_sync_not_before_ms = now_ms + self.options.repair.sweep_interval_ms

    def sweep_outgoing(self, now_ms: int) -> None:
        """Send again what is due; give up, with an event, what was sent often enough."""
        for entry in self.outgoing_buffer.due(now_ms):
            if entry.attempts <= self.options.max_retry_attempts:
                self.resend(entry.message_id, now_ms)
                continue
            self.outgoing_buffer.remove([entry.message_id])
            self.counters.delivery_failed += 1
            reason = f"no acknowledgement after it was sent {entry.attempts} times"
            self._events.append(DeliveryFailed(entry.message_id, entry.attempts, reason))

    def sweep_incoming(self, now_ms: int) -> list[HistoryEntry]:
        """Deliver what is ready, give up what is overdue, and return the entries that are still
        missing."""
        buffer, timeout_ms = self.incoming_buffer, self.options.timeout_for_lost_messages_ms
        while ready := in_log_order(p for p in buffer.parked.values() if not p.unmet):
            for parked in ready:
                self._deliver(buffer.take(parked.message.message_id))
        if timeout_ms:
            for entry in buffer.overdue(now_ms, timeout_ms):
                self._give_up(entry, f"not found within {timeout_ms} ms")
            for stuck in buffer.deadlocked(now_ms, timeout_ms):
                for dependency in sorted(stuck.unmet):
                    self._give_up(
                        HistoryEntry(dependency), "it waits for a message that waits for it"
                    )
        self._sweep_at_ms = None
        if buffer.parked or buffer.missing:
            self._plan_sweep(now_ms)
        return [missing.entry for missing in buffer.missing.values()]

    def sweep_repair(self, now_ms: int) -> list[str]:
        """Broadcast the messages whose T_resp has come and return their ids."""
        self.repair_requests.drop_expired(now_ms)
        answered = []
        for message_id in self.repair_responses.take_due(now_ms):
            if data := self._held(message_id):
                self._outgoing.append(Outgoing(OutgoingKind.REPAIR, message_id, data))
                self._events.append(RepairSent(message_id))
                self.counters.repairs_sent += 1
                answered.append(message_id)
        return answered

    # -- what the owner takes ----------------------------------------------------------------------

    def next_event(self) -> SdsEvent | None:
        """The next thing that happened, or None."""
        return self._events.popleft() if self._events else None

    def events(self) -> Iterator[SdsEvent]:
        """Hand out all that happened."""
        return _drain(self._events)

    def outgoing(self) -> Iterator[Outgoing]:
        """Hand out all that must be broadcast, in order."""
        return _drain(self._outgoing)

    def missing(self) -> Sequence[MissingEntry]:
        """What is known by reference alone, longest missing first: what to look for in Store."""
        return list(self.incoming_buffer.missing.values())

    def statistics(self) -> SdsStatistics:
        """A snapshot of counters and buffers."""
        return SdsStatistics(
            counters=copy(self.counters),
            lamport_timestamp=self.clock.value,
            log_length=len(self.log),
            log_evicted=self.log.evicted,
            outgoing=len(self.outgoing_buffer),
            incoming=len(self.incoming_buffer.parked),
            missing=len(self.incoming_buffer.missing),
            lost_entries=len(self.incoming_buffer.lost),
            repair_requests=len(self.repair_requests),
            repair_responses=len(self.repair_responses),
            repair_cache_bytes=self._repair_cache.size_bytes,
            bloom_filter_messages=len(self.bloom_filter),
            bloom_filter_rollovers=self.bloom_filter.rollovers,
            participants=len(self.participants),
        )

    def _check_length(self, content: bytes, data: bytes) -> None:
        limit = self.options.max_message_bytes
        if len(data) > limit:
            most = max(0, limit - (len(data) - len(content)))
            raise ContentTooLong(
                f"{len(content)} bytes of content make a message of {len(data)} bytes; "
                f"max_message_bytes is {limit}, which leaves {most} for content; "
                "a smaller causal_history_size leaves more"
            )

    # -- parts -------------------------------------------------------------------------------------

    def _next_id(self, content: bytes, now_ms: int, timestamp_ns: int | None) -> str:
        # The timestamp is the salt of the id: two equal messages within a millisecond are still
        # two.
        wanted_ns = now_ms * 1_000_000 if timestamp_ns is None else timestamp_ns
        self._last_timestamp_ns = max(wanted_ns, self._last_timestamp_ns + 1)
        return self._id_function(self.sender_id, self._last_timestamp_ns, content)

    def _assemble(self, message_id: str, lamport: int, content: bytes | None, now_ms: int) -> bytes:
        requests = self.repair_requests.due(now_ms) if self.options.repair.enabled else []
        message = Message(
            self.sender_id,
            message_id,
            self.channel_id,
            lamport,
            bloom_filter=bytes(self.bloom_filter),
            repair_request=requests,
            content=content,
        )
        data = self._codec.assemble(message, self._tail.encoded())
        if content is not None:
            self._check_length(content, data)
        if requests:
            asked = tuple(entry.message_id for entry in requests)
            self.repair_requests.asked(asked, now_ms)
            self._events.append(RepairRequested(asked, message_id))
            self.counters.repairs_requested += len(asked)
        return data

    def _log_own(self, entry: LogEntry) -> None:
        self.bloom_filter.insert(entry.message_id)
        self.log.insert(entry)

    def _reject(
        self, reason: RejectionReason, detail: str, message: Message | None = None
    ) -> Arrival:
        message_id, sender_id = (message.message_id, message.sender_id) if message else ("", "")
        self._events.append(MessageRejected(reason, detail, message_id, sender_id))
        self.counters.rejected += 1
        return Arrival(Outcome.REJECTED, message_id)

    def _restart_sync(self, heard: Heard, now_ms: int) -> None:
        if self._schedule is not None:
            self._sync_at_ms = now_ms + self._schedule.delay_ms(heard)

    def _plan_sweep(self, now_ms: int) -> None:
        if self._sweep_at_ms is None:
            self._sweep_at_ms = now_ms + self.options.sweep_in_buf_interval_ms


def _schedule(options: SdsOptions, random: Random) -> SyncSchedule | None:
    if not options.sync_min_interval_ms:
        return None
    rule: Callable[[int, Random], SyncSchedule] = (
        SuppressedSchedule if options.sync_schedule == "suppressed" else JsWakuSchedule
    )
    return rule(options.sync_min_interval_ms, random)


def _drain(queue: deque[_T]) -> Iterator[_T]:
    while queue:
        yield queue.popleft()
