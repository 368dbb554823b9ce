"""The one owner of a channel's core.

No method here awaits: between two awaits of anybody else, a step is whole. Each step ends by
handing on what the core wants told and broadcast.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from ..engine.idempotency import SENDS, Accepted, Idempotency
from ..engine.repairs import Repairs
from ..engine.requests import REQUEST_PROGRESS, REQUESTS, Requests
from ..engine.segments import Segmentation
from ..engine.telling import Deliver, Telling
from ..engine.unconfirmed import UNCONFIRMED, Unconfirmed
from ..errors import OutgoingBufferFull
from ..events import (
    EphemeralDropped,
    EphemeralReceived,
    Event,
    MessageReceived,
    MessageRejected,
    RateLimitReached,
    RejectionReason,
    SendingMessage,
    UnconfirmedDropped,
)
from ..options import StateFailure
from ..sds import Arrival, Outcome
from ..sds.changes import CHANNEL, NO_RECORDER, Recorder, Tables
from ..sds.events import Outgoing, OutgoingKind, SyncSent
from ..state import StateError
from ..sync_core import SyncCore, Withdrawing
from ..transport.base import Envelope, Received, Source
from .event_stream import EventStream
from .journal import Journal, Logged
from .keeper import StateKeeper
from .kept import LAST_LOOK
from .observers import Observers
from .outbox import Outbox
from .statistics import TransportCounters

HANDLED_HASHES: Final = 20_000
"""Hashes that are remembered, so that what Store gives again costs a look-up."""
_FINAL: Final = frozenset({Outcome.DELIVERED, Outcome.DUPLICATE, Outcome.OWN, Outcome.UNWANTED})
"""What became of a message for good; one that waits for others may have to make room and come
again."""
_REFUSED_FOR_GOOD: Final = frozenset(
    {
        RejectionReason.MALFORMED,
        RejectionReason.WRONG_CHANNEL,
        RejectionReason.MISSING_ID,
        RejectionReason.OTHER_DIALECT,
        RejectionReason.ID_ALREADY_USED,
        RejectionReason.OLDER_THAN_LOG,
    }
)
"""Refusals that the same bytes will meet again: told once, however often Store gives them."""
REORDERED_MS: Final = 200
"""A message that was missing for less came late by itself; nobody repaired it."""


class Engine:
    """Feeds the core and hands on what it says."""

    def __init__(
        self,
        core: SyncCore,
        repairs: Repairs,
        *,
        now_ns: Callable[[], int],
        random: Random,
        stream: EventStream,
        outbox: Outbox,
        segmentation: Segmentation,
        journal: Journal | None,
        wake: Callable[[], None],
        deliver: Deliver | None = None,
        keeper: StateKeeper | None = None,
        recorder: Recorder = NO_RECORDER,
        observers: Observers | None = None,
        warn: Callable[[Event], None] = lambda event: None,
        on_state_failure: StateFailure = "accept",
    ) -> None:
        self.core = core
        self._repairs = repairs
        self.counters = TransportCounters()
        self._now_ns = now_ns
        self._random = random
        self._stream = stream
        self._outbox = outbox
        self._journal = journal
        self._wake = wake
        self._segmentation = segmentation
        self._keeper = keeper
        self._recorder = recorder
        self._observers = observers
        self._warn = warn
        self._refuses_unwritten = on_state_failure == "raise"
        self._can_withdraw = self._refuses_unwritten and isinstance(core, Withdrawing)
        self._steps = self._without_syncs_through = 0
        self._unconfirmed = None if keeper is None else Unconfirmed(recorder)
        self._requests = Requests(recorder)
        self._idempotency = Idempotency(recorder)
        self._telling = Telling(
            self._requests,
            segmentation,
            self.now_ms,
            deliver=deliver,
            unconfirmed=self._unconfirmed,
        )
        self._handled: OrderedDict[bytes, None] = OrderedDict()
        self._rate_limited_until_ms = 0

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds."""
        return self._now_ns() // 1_000_000

    def split(self, payload: bytes) -> list[bytes]:
        """Cut a payload into the contents of as many messages as it takes, if there is room."""
        segments = self._segmentation.split(payload)
        self._check_room(len(segments))
        return segments

    def check_writable(self) -> None:
        """See that what is accepted now can be written.

        Raises:
            StateUnavailable, StateCorrupt: it cannot.
        """
        failure = None if self._keeper is None else self._keeper.failure
        if failure is not None and self._refuses_unwritten:
            raise _refusal(failure)

    def accepted_before(self, idempotency_key: str | None) -> Accepted | None:
        """What was accepted under this key already."""
        return self._idempotency.get(idempotency_key)

    def send(self, segments: Sequence[bytes], idempotency_key: str | None = None) -> Accepted:
        """Accept a message, unless one was under this key."""
        if accepted := self._idempotency.get(idempotency_key):
            return accepted
        now_ns = self._now_ns()
        message_ids: list[str] = []
        logged: list[Logged] = []
        for segment in segments:
            message_id = self.core.send(segment, now_ns // 1_000_000, timestamp_ns=now_ns)
            message_ids.append(message_id)
            logged += self._logged_own(message_id, message_ids[0])
        request_id = str(UUID(int=self._random.getrandbits(128), version=4))
        accepted = Accepted(request_id, tuple(message_ids))
        self._idempotency.add(idempotency_key, accepted)
        self._requests.accepted(request_id, message_ids)
        refuse = partial(self._withdraw, accepted, idempotency_key)
        self._settle(
            SendingMessage(message_ids[0], request_id),
            *logged,
            refuse=refuse if self._can_withdraw else None,
        )
        return accepted

    def send_ephemeral(self, content: bytes, refusal: str | None = None) -> str:
        """Accept an ephemeral message, or drop it with an event; return its message id."""
        now_ns = self._now_ns()
        message_id = self.core.send_ephemeral(content, now_ns // 1_000_000, timestamp_ns=now_ns)
        if refusal is not None:
            list(self.core.outgoing())  # it was all that waited here
            self._settle(EphemeralDropped(message_id, refusal))
        else:
            self._settle()
        return message_id

    def receive(self, data: bytes, envelope: Received) -> Arrival:
        """Take an opened message from the transport or from Store."""
        message_hash, source = envelope.message_hash, envelope.source
        now_ms = self.now_ms()
        arrival = self.core.receive(
            data,
            now_ms,
            retrieval_hint=message_hash,
            sent_at_ns=envelope.timestamp_ns,
        )
        if self._journal is not None:
            self._journal.came(data, envelope, arrival.outcome.value, now_ms)
        if arrival.outcome in _FINAL or arrival.reason in _REFUSED_FOR_GOOD:
            self.handled(message_hash)
        self._count(source, arrival)
        self._repairs.received(arrival, len(data), from_store=source is Source.STORE)
        self._settle()
        return arrival

    def was_handled(self, message_hash: bytes) -> bool:
        """Whether nothing new can come under this hash."""
        return message_hash in self._handled

    def handled(self, message_hash: bytes) -> None:
        """Remember that nothing new can come under this hash; the oldest are forgotten."""
        self._handled[message_hash] = None
        if len(self._handled) > HANDLED_HASHES:
            self._handled.popitem(last=False)

    def dispatched(self, outgoing: Outgoing, envelope: Envelope) -> None:
        """A message is out."""
        self.counters.published += 1
        if self._journal is not None:
            self._journal.went(outgoing.data, envelope, outgoing.kind.value, self.now_ms())
        if outgoing.kind not in (OutgoingKind.CONTENT, OutgoingKind.RETRY):
            return
        message_id = outgoing.message_id
        self.core.dispatched(message_id, self.now_ms(), envelope.message_hash)
        self._settle(*self._requests.sent(message_id, envelope.message_hash))

    def is_settled(self, outgoing: Outgoing) -> bool:
        """Whether a message that waited to go need not any more: a retry of what was acknowledged
        or given up meanwhile."""
        message_id = outgoing.message_id
        return (
            outgoing.kind is OutgoingKind.RETRY
            and message_id in self.core.log
            and message_id not in self.core.unacknowledged
        )

    def resend(self, message_id: str) -> bool:
        """Send an own message again ahead of its time; return False where it is settled or has no
        attempt left."""
        if not self.core.resend_early(message_id, self.now_ms()):
            return False
        self._settle()
        return True

    def refused(self, outgoing: Outgoing, reason: str) -> None:
        """A message will never go out."""
        message_id = outgoing.message_id
        if outgoing.kind not in (OutgoingKind.CONTENT, OutgoingKind.RETRY):
            return
        self.core.abandon(message_id)
        self._settle(*self._telling.refused(message_id, reason))

    def opened(self, event: MessageReceived | EphemeralReceived, number: int) -> None:
        """Give the application what a message, opened after its delivery, makes whole."""
        self._settle(*self._telling.opened(event, number))

    def unopened(self, event: MessageRejected, number: int) -> None:
        """Tell the application that a delivered message does not open."""
        self._settle(*self._telling.unopened(event, number))

    def confirm(self, event: Event) -> None:
        """The application has handled an event: it is not told again."""
        if self._unconfirmed is not None and self._unconfirmed.confirm(event):
            self._let_out([])

    def restore(self, tables: Tables) -> None:
        """Begin with what the runtime recorded before a restart; the core has begun with its
        own."""
        self._requests.restore(
            tables.get(REQUESTS.name, ()),
            tables.get(REQUEST_PROGRESS.name, ()),
            self.core.unacknowledged,
        )
        self._idempotency.restore(tables.get(SENDS.name, ()))
        self._settle()

    def owed(self, tables: Tables) -> Iterator[None]:
        """Tell again what was not confirmed before a restart, one event a step."""
        for events in self._telling.again(tables.get(UNCONFIRMED.name, ()), self.core.log):
            self._settle(*events)
            yield

    def looked(self, at_ms: int) -> None:
        """The transport was listened to. Written with the next step: a quiet channel writes
        nothing."""
        self._recorder.put(CHANNEL, LAST_LOOK, at_ms)

    async def writable(self) -> None:
        """Wait while too much waits to be written."""
        if self._keeper is not None:
            await self._keeper.writable()

    async def recorded(self) -> None:
        """Wait until all that happened so far outlives the process, where anything does."""
        if self._keeper is not None:
            self._let_out([])
            await self._keeper.written()

    def rate_limited(self, epoch_ends_at_ms: int, waiting: int) -> None:
        """The budget is spent; told once an epoch."""
        if epoch_ends_at_ms != self._rate_limited_until_ms:
            self._rate_limited_until_ms = epoch_ends_at_ms
            self.emit(RateLimitReached(epoch_ends_at_ms, waiting))

    def on_deadline(self) -> None:
        """Let the core do what is due."""
        now_ms = self.now_ms()
        self.core.on_deadline(now_ms)
        self._settle(*self._telling.on_deadline(now_ms))

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` must be called next."""
        deadlines = (
            self.core.next_deadline_ms(),
            self._repairs.next_deadline_ms(),
            self._segmentation.next_deadline_ms(),
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def repairs_changed(self) -> None:
        """After looks into Store, see that others are asked when it is time for that now."""
        if self._repairs.next_deadline_ms() is not None:
            self._settle()

    def emit(self, event: Event) -> None:
        """Tell the application and the journal."""
        self._let_out([event])

    def _withdraw(self, accepted: Accepted, key: str | None, failure: StateError) -> None:
        """Take back an own message that could not be written: it was not let out, nor was anything
        that refers to it. Of the steps that wait, sync messages may."""
        self._idempotency.discard(key)
        self._requests.withdrawn(accepted.message_ids)
        assert isinstance(self.core, Withdrawing)
        for message_id in accepted.message_ids:
            self.core.withdraw(message_id)
        accepted.failure = _refusal(failure)
        self._without_syncs_through = self._steps
        self._settle()

    def _check_room(self, messages: int) -> None:
        """Refuse a message of which only a part would find room in the outgoing buffer."""
        if messages > 1 and messages > self.core.room:
            raise OutgoingBufferFull(
                f"the message has {messages} segments, and {self.core.room} more own messages may "
                "wait for an acknowledgement; send again later, or raise outgoing_buffer_limit"
            )

    def _logged_own(self, message_id: str, first_segment_id: str) -> Iterator[Logged]:
        """What the journal is told of a message that was just accepted."""
        log = self.core.log
        if self._journal is not None and (entry := log.entries.get(message_id)) is not None:
            yield Logged.own(
                entry, log.position(entry), log.evicted, first_segment_id=first_segment_id
            )

    def _settle(
        self, *events: Event | Logged, refuse: Callable[[StateError], None] | None = None
    ) -> None:
        """End a step: tell what happened, and hand on what is to be broadcast; or `refuse` it,
        where it cannot be written."""
        self._repairs.step()
        told: list[Event | Logged] = list(events)
        for event in self.core.events():
            self._repairs.saw(event)
            if self._journal is not None and isinstance(event, MessageReceived):
                told.append(Logged.delivered(event, self.core.log.evicted))
            told += self._telling.meaning(event)
        if self._unconfirmed is not None and (dropped := self._unconfirmed.newly_dropped()):
            told.append(UnconfirmedDropped(dropped))
        self._let_out(told, list(self.core.outgoing()), refuse)
        self._wake()

    def _let_out(
        self,
        events: Sequence[Event | Logged],
        outgoing: Sequence[Outgoing] = (),
        refuse: Callable[[StateError], None] | None = None,
    ) -> None:
        """Tell and broadcast, once what led to it outlives the process."""
        if self._keeper is None:
            self._release(events, outgoing)
            return
        self._steps += 1
        release = partial(self._release_step, self._steps, events, outgoing)
        self._keeper.submit(self.core.changes(), release, refuse)

    def _release_step(
        self, step: int, events: Sequence[Event | Logged], outgoing: Sequence[Outgoing]
    ) -> None:
        if step <= self._without_syncs_through:
            events = [event for event in events if not isinstance(event, SyncSent)]
            outgoing = [each for each in outgoing if each.kind is not OutgoingKind.SYNC]
        self._release(events, outgoing)

    def _release(self, events: Sequence[Event | Logged], outgoing: Sequence[Outgoing]) -> None:
        now_ms = self.now_ms()
        for event in events:
            if isinstance(event, Logged):
                assert self._journal is not None
                self._journal.logged(event, now_ms)
                continue
            if self._journal is not None:
                self._journal.event(event, now_ms)
            self._warn(event)
            if self._observers is not None:
                for failure in self._observers.tell(event, now_ms):
                    self.emit(failure)
            self._stream.emit(event)
        for message in outgoing:
            self._outbox.put(message)

    def _count(self, source: Source, arrival: Arrival) -> None:
        new = arrival.outcome in (Outcome.DELIVERED, Outcome.PARKED)
        if source is Source.STORE:
            self.counters.received_from_store += 1
            self.counters.retrieved += new
        else:
            self.counters.received_live += 1
            waited_ms = arrival.missing_for_ms
            self.counters.repaired += new and waited_ms is not None and waited_ms >= REORDERED_MS


def _refusal(failure: StateError) -> StateError:
    """What a `send` raises that could not be written."""
    return type(failure)(f"nothing was sent, since the state cannot be written: {failure}")
