"""Participant of a channel whose sync protocol is State Vector Sync.

Messages are publications, which are broadcast at once. The state vector is the digest of all
messages that a member has. A member that learns of a missing message from a state vector requests
the message by name. Any member that has the requested message answers. The messages of each sender
are delivered in order and once. The log is ordered by Lamport timestamp and id, so members with the
same messages have equal logs.
"""

from collections.abc import Collection, Sequence, Sized
from copy import copy
from typing import Final

from reliable_channel.diagnostics import RepairRequested
from reliable_channel.errors import ContentTooLong, EmptyContent, OutgoingBufferFull
from reliable_channel.events import DeliveryFailed
from reliable_channel.spi import (
    CHANNEL,
    Agenda,
    Arrival,
    Changes,
    CoreContext,
    LogEntry,
    MissingEntry,
    OutgoingKind,
    Progress,
    SdsStatistics,
    Slot,
    Tables,
)

from ..errors import SequenceExhausted
from ..naming import PublicationName
from ..protocol import Publication
from ..vector import StateVector
from .outbound import UNACKNOWLEDGED
from .receiving import Receiver
from .state import ChannelState
from .streams import LOST, STREAMS
from .wire import OVERHEAD_BYTES

LACKING_TOLD: Final = 50
"""Maximum number of given-up messages that a state vector names, the newest first."""
BOOTSTRAP_TIME: Final = "svs_bootstrap_time"


class SvsCore:
    """Participant of one channel (`reliable_channel.engine.sync_core.SyncCore`).

    Raises:
        ValueError: signatures are asked for, which this protocol does not have; or no syncs, as in
            the dialect of nim-sds, without which it repairs nothing.
    """

    def __init__(self, context: CoreContext) -> None:
        if context.signing is not None or context.require_signatures:
            raise ValueError(
                "sync='svs' has no signed senders; leave out `signing` and `require_signatures`, "
                "or choose sync='sds'"
            )
        if (interval_ms := context.options.sds_options().sync_min_interval_ms) < 1:
            raise ValueError(
                f"`sync_min_interval_ms` must be at least 1 with sync='svs' (got {interval_ms}), "
                "because state vectors announce missing messages"
            )
        self._state = ChannelState(context)
        self._receiver = Receiver(self._state)
        self.log, self.agenda = self._state.log, Agenda()
        self.events, self.outgoing = self._state.events, self._state.outgoing
        self.wanted: list[MissingEntry] = []
        self.missing_tables: Sequence[Sized] = (self._state.recovery.missing,)
        self._end()

    # -- own messages ------------------------------------------------------------------------------

    @property
    def unacknowledged(self) -> Collection[str]:
        """Ids of the participant's messages that no other member is known to have."""
        return self._state.own.waiting.keys()

    @property
    def capacity_left(self) -> int:
        """Number of further messages that may wait for an acknowledgement."""
        return self._state.own.limit - len(self._state.own.waiting)

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for all members, and return its id, which is its NDN name.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: it does not fit a message.
            OutgoingBufferFull: too many own messages wait for an acknowledgement.
        """
        self._check(content)
        if self.capacity_left <= 0:
            raise OutgoingBufferFull(
                f"{self._state.own.limit} own messages are unacknowledged, which is the limit; "
                "send again later"
            )
        # DIVERGES from §4.2: the message tells of itself, so its vector waits a moment for others.
        publication = self._publish(now_ms)
        self._state.plan_acknowledgement(now_ms)
        self._state.recorder.put(CHANNEL, BOOTSTRAP_TIME, self._state.svs.bootstrap_time)
        place = PublicationName(self._state.node, publication.bootstrap_time, publication.seq)
        entry = self._state.log_own(place, content, now_ms)
        stream = self._state.streams.get((self._state.node, publication.bootstrap_time))
        self._state.streams.settle(stream, publication.seq)
        self._add_own(entry.message_id, place)
        self._state.counters.sent += 1
        data = self._state.wire.message(place, entry.lamport_timestamp, content)
        self._state.broadcast(OutgoingKind.CONTENT, entry.message_id, data, timestamp_ns)
        self._end()
        return entry.message_id

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message without any promise of delivery, and return its id.

        Raises:
            EmptyContent: there is nothing to send.
            ContentTooLong: it does not fit a message.
        """
        self._check(content)
        message_id, data = self._state.wire.ephemeral(self._state.node, now_ms, content)
        self._state.counters.ephemeral_sent += 1
        self._state.broadcast(OutgoingKind.EPHEMERAL, message_id, data, timestamp_ns)
        return message_id

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Note that an own message was sent for the first time."""
        self._state.own.dispatched(message_id, now_ms)
        if retrieval_hint is not None:
            self.log.set_retrieval_hint(message_id, retrieval_hint)
        self._end()

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        """Broadcast an own message again before its next retry is due. If the message is
        acknowledged or has no attempts left, `resend_early` returns False."""
        own = self._state.own.waiting.get(message_id)
        if own is None or own.attempts > self._state.own.max_attempts:
            return False
        return self._state.send_again(OutgoingKind.RETRY, own.place)

    def abandon(self, message_id: str) -> None:
        """Stop sending a message that the transport refuses permanently."""
        self._state.own.remove(message_id)
        self._end()

    # -- what arrives ------------------------------------------------------------------------------

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
        arrival = self._receiver.receive(data, now_ms, retrieval_hint)
        self._end()
        return arrival

    # -- what is missing ---------------------------------------------------------------------------

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        """Join a running conversation, without messages from before `wanted_from` (ms)."""
        self._receiver.wanted_from_ms = wanted_from
        self._receiver.presume_until_ms = now_ms + presume_ms

    def missing(self) -> Sequence[MissingEntry]:
        """Return the missing messages that are known only by name, so that Store can be searched
        for them."""
        return [
            MissingEntry(self._state.reference(place), missing.since_ms)
            for place, missing in self._state.recovery.missing.items()
        ]

    def ask_participants(self, missing: MissingEntry, now_ms: int) -> None:
        """Request a missing message from the other members from now on."""
        if (place := self._state.wire.place(missing.entry.message_id)) is not None:
            self._state.recovery.may_ask(place, now_ms)
            self._end()

    def is_awaited(self, message_id: str) -> bool:
        """Return True if other messages wait for a missing message."""
        place = self._state.wire.place(message_id)
        if place is None or place not in self._state.recovery.missing:
            return False
        return bool(self._state.streams.get((place.node, place.bootstrap_time)).parked)

    # -- time --------------------------------------------------------------------------------------

    def on_deadline(self, now_ms: int) -> None:
        """Send what is due at this time, and give up messages that were missing for too long."""
        self._state.svs.on_deadline(now_ms)
        if self._state.acknowledge_at_ms is not None and self._state.acknowledge_at_ms <= now_ms:
            self._state.svs.announce(now_ms)
        for message_id in self._state.own.due(now_ms):
            self._retry(message_id)
        for place in self._state.recovery.questions(now_ms):
            self._state.counters.repairs_requested += 1
            message_id = self._state.wire.message_id(place)
            question = self._state.wire.request(place)
            self._state.emit(RepairRequested((message_id,), ""))
            self._state.broadcast(OutgoingKind.CONTROL, f"request for {message_id}", question)
        for place in self._state.recovery.answers(now_ms):
            self._state.counters.repairs_sent += self._state.send_again(OutgoingKind.REPAIR, place)
        timeout_ms = self._state.options.timeout_for_lost_messages_ms
        for place in self._state.recovery.overdue(now_ms, timeout_ms):
            self._receiver.give_up(place, now_ms)
        self._end()

    def _retry(self, message_id: str) -> None:
        own = self._state.own.waiting[message_id]
        if own.attempts <= self._state.own.max_attempts and self._state.send_again(
            OutgoingKind.RETRY, own.place
        ):
            self._state.counters.retries += 1
            return
        self._state.own.remove(message_id)
        self._state.counters.delivery_failed += 1
        reason = f"no acknowledgement after it was sent {own.attempts} times"
        self._state.emit(DeliveryFailed(message_id, own.attempts, reason))

    # -- outputs -----------------------------------------------------------------------------------

    def _end(self) -> None:
        """End an input: tell the newly missing messages and the state vectors, and plan."""
        recovery = self._state.recovery
        if undecided := recovery.undecided:
            recovery.undecided = []
            self.wanted += [
                MissingEntry(self._state.reference(place), recovery.missing[place].since_ms)
                for place in undecided
                if place in recovery.missing
            ]
        self._broadcast_vectors()
        deadlines = (
            self._state.svs.next_deadline_ms(),
            self._state.acknowledge_at_ms,
            self._state.own.next_deadline_ms(),
            recovery.next_deadline_ms(self._state.options.timeout_for_lost_messages_ms),
        )
        self.agenda.plan(Slot.SYNC, min(due for due in deadlines if due is not None))

    def _broadcast_vectors(self) -> None:
        parts = list(self._state.svs.outgoing())
        for number, vector in enumerate(parts, 1):
            self._state.acknowledge_at_ms = None
            self._state.counters.syncs_sent += 1
            # A whole vector says all that the one before said, a part of one does not.
            kind = OutgoingKind.SYNC if len(parts) == 1 else OutgoingKind.CONTROL
            sync_id = f"vector {self._state.counters.syncs_sent}, part {number} of {len(parts)}"
            self._state.broadcast(kind, sync_id, self._sync(vector))

    def _sync(self, vector: bytes) -> bytes:
        told, received = StateVector.decode(vector), StateVector()
        for name in told:
            for boot, seq in self._state.streams.received.numbers(name).items():
                received.raise_to(name, boot, seq)
        lacking = self._state.streams.lost[-LACKING_TOLD:]
        return self._state.wire.sync(vector, self._state.node, received, lacking)

    def changes(self) -> Changes:
        """Return the changes of the state that a restart needs."""
        return self._state.recorder.take()

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        """Begin with the state that an earlier process recorded. Own messages that were never sent
        wait in `outgoing` after a restart."""
        values = {row[0]: row[1] for row in tables.get(CHANNEL.name, ())}
        boot = values.get(BOOTSTRAP_TIME)
        assert boot is None or isinstance(boot, int)
        rows = {t: list(tables.get(t.name, ())) for t in (STREAMS, LOST, UNACKNOWLEDGED)}
        known = self._state.streams.restore(rows[STREAMS], rows[LOST])
        self.log.restore_from(tables, newest)
        self._state.lamport_timestamp = newest[-1].lamport_timestamp if newest else 0
        self._state.svs = self._state.make_svs(now_ms, boot, known)
        for message_id, attempts in self._state.own.restore(rows[UNACKNOWLEDGED]):
            place = self._state.wire.place(message_id)
            if place is None:
                continue
            self._add_own(message_id, place, attempts)
            if attempts:
                self._state.own.dispatched(message_id, now_ms)
            else:
                self._state.send_again(OutgoingKind.CONTENT, place)
        for stream in list(self._state.streams):
            self._receiver.note_missing(stream, now_ms)
        self._end()

    def progress(self) -> Progress:
        """Return the number of this participant's messages that each member has."""
        waiting = sum(len(stream.parked) for stream in self._state.streams)
        missing = len(self._state.recovery.missing) + waiting
        return Progress(self._state.counters.delivered, missing, len(self._state.streams.lost))

    def statistics(self) -> SdsStatistics:
        """Return a snapshot of counters and buffers, with 0 for figures that SVS does not have."""
        heard = self._state.participants
        return SdsStatistics(
            counters=copy(self._state.counters),
            lamport_timestamp=self._state.lamport_timestamp,
            log_length=len(self.log),
            log_evicted=self.log.evicted,
            outgoing=len(self._state.own.waiting),
            incoming=sum(len(stream.parked) for stream in self._state.streams),
            missing=len(self._state.recovery.missing),
            lost_entries=len(self._state.streams.lost),
            repair_requests=len(self._state.recovery.missing),
            repair_responses=0,
            repair_cache_bytes=0,
            bloom_filter_messages=0,
            bloom_filter_rollovers=0,
            participants=len(heard) - (self._state.sender_id in heard),
        )

    # -- inside ------------------------------------------------------------------------------------

    def _publish(self, now_ms: int) -> Publication:
        svs = self._state.svs
        try:
            return svs.publish(now_ms, announce=False)
        except SequenceExhausted:  # somebody claimed our last number
            svs.rebootstrap(now_ms)
            return svs.publish(now_ms, announce=False)

    def _check(self, content: bytes) -> None:
        if not content:
            raise EmptyContent("the content is empty; there is nothing to send")
        overhead = OVERHEAD_BYTES + 2 * len(self._state.node.encode())
        limit = self._state.options.max_message_bytes - overhead
        if len(content) > limit:
            raise ContentTooLong(
                f"the content has {len(content)} bytes; at most {limit} fit a message"
            )

    def _add_own(self, message_id: str, place: PublicationName, attempts: int = 0) -> None:
        name = self._state.wire.naming.publication(place.node, place.bootstrap_time, place.seq)
        self._state.own.add(message_id, place, name, attempts)
