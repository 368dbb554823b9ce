"""Engine of one participant, between its application and its transport.

Each input method takes the time and returns its step. The owner emits the events of a due step,
wakes the step's tasks, and broadcasts outgoing messages. In a channel with saved state, a step is
due when it is written. The owner writes the result of `begin_write` and then calls `end_write`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from .._contracts.repair_policies import RepairPolicy
from .._contracts.state_store import Saved
from ..diagnostics import MessageRejected, PendingEventsDropped, RejectionReason, SendingFellBehind
from ..errors import OutgoingBufferFull, StateError
from ..events import (
    AnyEvent,
    EphemeralDropped,
    MessageReceived,
    MessageStored,
    RateLimitReached,
    SendingMessage,
    StateRolledBack,
)
from ..explanation import Explanation
from ..options import ChannelOptions
from ..sds.changes import CHANNEL, NO_RECORDER, Changes, Recorder, Tables, Value
from ..sds.events import Outgoing, OutgoingKind, RepairRequested
from ..sds.ids import RecentSet
from ..sds.statistics import SdsStatistics
from .archive_overlay import ArchiveOverlay
from .backoff import Backoff
from .logged import Logged
from .message_traces import MessageTraces
from .outbox import SENT_TWICE, Growth, Item, Outbox
from .pending_events import PENDING_EVENTS, PendingEvents
from .rate_limit import Budget, RateLimit, Spent, no_budget
from .recovery import Confirmation, Repairs
from .requests import (
    REQUEST_PROGRESS,
    REQUESTS,
    SENDS,
    Accepted,
    Idempotency,
    Requests,
    random_uuid,
)
from .segments import FORM, segmentation_of
from .statistics import TransportCounters
from .steps import Step, UnwrittenSteps, Wake
from .store_queries import StoreQueries
from .sync_core import Acknowledging, Arrival, Outcome, SyncCore, Withdrawing
from .translation import EncryptedDelivery, Translation

LAST_LOOK: Final = "last_look_ms"
BUDGET_EPOCH: Final = "rate_limit_epoch_index"
BUDGET_SPENT: Final = "rate_limit_messages"
LOOKS_APART_MS: Final = 10_000
"""Minimum time (ms) from one saved look to the next. The margin below is far longer."""
RESTART_MARGIN_MS: Final = 600_000
"""Time (ms) before a restart that the catch-up query also covers. The margin finds messages that
were stored late or stamped by a slow clock."""
CANCELLED_REMEMBERED: Final = 10_000
"""Maximum number of remembered ids of cancelled messages, whose copies are not sent."""
JOINING_MS: Final = 60_000
"""Time (ms) in which a newcomer assumes that unknown references are older than its join. In this
time two rounds of sync messages show the history of each participant."""
CANCELLED: Final = "the application cancelled it"
HANDLED_HASHES: Final = 20_000
"""Number of remembered message hashes, by which repeated messages of Store are skipped."""
_FINAL: Final = (Outcome.DELIVERED, Outcome.DUPLICATE, Outcome.OWN, Outcome.UNWANTED)
"""Outcomes that do not change; a parked message may be evicted and come again."""
_NEW: Final = (Outcome.DELIVERED, Outcome.PARKED)
_REFUSED_FOREVER: Final = (
    RejectionReason.MALFORMED,
    RejectionReason.WRONG_CHANNEL,
    RejectionReason.MISSING_ID,
    RejectionReason.OTHER_DIALECT,
    RejectionReason.ID_ALREADY_USED,
    RejectionReason.OLDER_THAN_LOG,
)
"""Refusals that the same bytes will meet again: reported once, however often Store gives them."""
REORDERED_MS: Final = 200
"""Maximum time (ms) for which a missing message counts as late and not as repaired."""
NO_RETRY: Final = (OutgoingKind.CONTROL, OutgoingKind.EPHEMERAL)
"""Kinds of messages that are not sent again after a failed attempt. A sync message is sent again
until a newer sync message replaces it. The first attempt through a slow node rarely succeeds."""


class RandomSource(Protocol):
    """Source of random choices, such as a `random.Random`."""

    def random(self) -> float:
        """Return a random number in [0, 1)."""
        ...

    def getrandbits(self, k: int, /) -> int:
        """Return a random whole number of `k` bits."""
        ...


class Engine:
    """Engine of one participant, which processes messages between `send` and the transport. No
    method waits or reads a clock.

    Args:
        core: the sync protocol, made with the same `recorder`.
        participant_id: this participant's `sender_id`.
        archive: the log on disk, overlaid with what is not written yet; None without state.
        opens_contents: contents are encrypted inside SDS; see `to_decrypt`.
        notes_log: emit a `Logged` for each message that enters the log.
        spent: the spent budget of before, where the rate limit is enabled.
    """

    def __init__(
        self,
        core: SyncCore,
        options: ChannelOptions,
        policy: RepairPolicy,
        *,
        participant_id: str,
        now_ms: int,
        random: RandomSource,
        has_store: bool,
        recorder: Recorder = NO_RECORDER,
        archive: ArchiveOverlay | None = None,
        opens_contents: bool = False,
        notes_log: bool = False,
        spent: Spent | None = None,
    ) -> None:
        self.core = core
        self.agenda: Final = core.agenda
        """Agenda whose `next_ms` is the time for the next call of `on_deadline`."""
        self.counters = TransportCounters()
        self.outbox = Outbox()
        self._growth = Growth()
        self.has_news = False
        """True if the taken message has repair requests and no step ended since."""
        self._options = options
        self._random = random
        self._recorder = recorder
        self._notes_log = notes_log
        self._message_traces = MessageTraces(participant_id, proves_copies=options.proves_copies)
        self._refuses_unwritten = options.on_state_failure == "raise"
        self._can_withdraw = self._refuses_unwritten and isinstance(core, Withdrawing)
        self.unwritten: Final = (
            None
            if archive is None
            else UnwrittenSteps(
                archive,
                Backoff(random.random, first_ms=1_000, max_ms=10_000),
                core.bloom_filter if isinstance(core, Acknowledging) else b"",
                is_strict=self._refuses_unwritten,
            )
        )
        """The steps that wait to be written; None without state."""
        self._required = self.unwritten if self._refuses_unwritten else None
        """Steps whose failure ends accepting and acknowledging, or None."""
        # What was encrypted inside SDS stands encrypted in the log.
        self.segmentation: Final = segmentation_of(
            options, None if opens_contents else core.log, recorder, self.agenda
        )
        self._pending_events = None if archive is None else PendingEvents(recorder)
        self._requests = Requests(recorder)
        self._idempotency = Idempotency(recorder)
        self._translation = Translation(
            self._requests,
            self.segmentation,
            pending_events=self._pending_events,
            opens_contents=opens_contents,
        )
        self.to_decrypt: Final = self._translation.to_decrypt
        """Delivered contents to decrypt, in order, with `opens_contents`."""
        self._repairs = Repairs(
            core,
            policy,
            now_ms=now_ms,
            retrieve_frequency_ms=options.retrieve_frequency_ms,
            has_store=has_store,
            agenda=self.agenda,
        )
        self.queries: Final = StoreQueries(core, self._repairs, self._message_traces)
        """What to ask Store for; hand `receive` what it gives."""
        self.confirmation: Final = Confirmation(
            interval_ms=options.confirm_interval_ms if has_store else 0, now_ms=now_ms
        )
        self.limit: Final = (
            RateLimit(
                messages_per_epoch=options.rate_limit.messages_per_epoch,
                epoch_period_s=options.rate_limit.epoch_period_s,
                spent=spent,
                in_hand=lambda: self.outbox.in_hand,
            )
            if options.rate_limit.enabled
            else None
        )
        self._rate_limited_until_ms = self._saved_look_ms = 0
        self._handled = RecentSet[bytes](HANDLED_HASHES)
        self._events: list[AnyEvent | Logged] = []
        self._echoes = 0
        self._cancelled = RecentSet[str](CANCELLED_REMEMBERED)

    # -- the beginning -----------------------------------------------------------------------------

    def begin(self, saved: Saved | None, now_ms: int) -> int:
        """Continue from the saved state, or join the conversation. Return the time (ms) from which
        messages are wanted.

        Call `step` next and, after a restart, iterate over `redeliver`.
        """
        window_start_ms = now_ms - self._options.query_on_connect_window_ms
        if saved is not None:
            self.core.restore(saved.tables, saved.newest, now_ms)
            self.segmentation.restore(_value(saved.tables, FORM))
        if saved is not None and is_restart(saved):
            wanted_from_ms = _number(saved.tables, LAST_LOOK) - RESTART_MARGIN_MS
        elif self._options.history == "all":
            wanted_from_ms = window_start_ms
        else:
            is_new_only = self._options.history == "none"
            wanted_from_ms = now_ms if is_new_only else self._options.history_since_ms
            self.core.join(now_ms, wanted_from=wanted_from_ms, presume_ms=JOINING_MS)
        if saved is not None:
            if (lacks := saved.rolled_back) is not None:
                self._events.append(StateRolledBack(lacks.reason, lacks.missing_writes))
            self._requests.restore(
                saved.tables.get(REQUESTS.name, ()),
                saved.tables.get(REQUEST_PROGRESS.name, ()),
                self.core.unacknowledged,
            )
            self._idempotency.restore(saved.tables.get(SENDS.name, ()))
            if self._pending_events is not None:
                self._pending_events.restore(saved.tables.get(PENDING_EVENTS.name, ()))
        return max(window_start_ms, wanted_from_ms)

    def redeliver(self, now_ms: int) -> Iterator[Step]:
        """Emit again the events that were not confirmed before a restart, one step each."""
        for events in self._translation.again(self.core.log, now_ms):
            self._events += events
            yield self.step(now_ms)

    # -- from the application ----------------------------------------------------------------------

    def split(self, payload: bytes) -> list[bytes]:
        """Cut a payload into contents of messages, if the channel can accept and save them.

        Raises:
            StateUnavailable, StateCorrupt: the state cannot be written.
            ContentTooLong, OutgoingBufferFull: the channel cannot accept them.
        """
        if self._required is not None and (failure := self._required.failure) is not None:
            raise _refusal(failure)
        segments = self.segmentation.split(payload)
        messages = len(segments)
        if messages > 1 and messages > self.core.capacity_left:
            raise OutgoingBufferFull(
                f"the message has {messages} segments, but only {self.core.capacity_left} more "
                "own messages may wait for an acknowledgement; send again later, or raise "
                "limits.outgoing_messages"
            )
        return segments

    def accepted_before(self, idempotency_key: str) -> Accepted | None:
        """Return the request that was accepted earlier under this idempotency key, or None."""
        return self._idempotency.get(idempotency_key)

    def send(
        self, segments: Sequence[bytes], now_ns: int, idempotency_key: str | None = None
    ) -> tuple[Accepted, Step]:
        """Accept a message, unless a message was already accepted under the same idempotency key.

        `segments` is the result of `split`.
        """
        now_ms = now_ns // 1_000_000
        if idempotency_key is not None and (accepted := self._idempotency.get(idempotency_key)):
            return accepted, self.step(now_ms)
        message_ids: list[str] = []
        logged: list[Logged] = []
        try:
            for segment in segments:
                message_id = self.core.send(segment, now_ms, timestamp_ns=now_ns)
                message_ids.append(message_id)
                self._message_traces.accepted(message_id, now_ms)
                if self._notes_log:
                    logged += self._logged_own(message_id, message_ids[0])
        except BaseException:  # segments are useless without the segments after them
            self._take_back(message_ids)
            self.core.outgoing.clear()  # it was all that waited here
            raise
        request_id = random_uuid(self._random.getrandbits(128))
        accepted = Accepted(request_id, tuple(message_ids), idempotency_key)
        if idempotency_key is not None:
            self._idempotency.add(idempotency_key, accepted)
        self._requests.accepted(request_id, message_ids)
        if self.outbox.queued:
            self._note_backlog(now_ms)
        else:
            self._growth.since_ms = None
        self._events += (SendingMessage(message_ids[0], request_id), *logged)
        return accepted, self.step(now_ms, accepted if self._can_withdraw else None)

    def send_ephemeral(self, content: bytes, now_ns: int) -> tuple[str, Step]:
        """Accept an ephemeral message, or drop it with an event if the budget is almost spent."""
        now_ms = now_ns // 1_000_000
        message_id = self.core.send_ephemeral(content, now_ms, timestamp_ns=now_ns)
        refusal = None if self.limit is None else self.limit.refuses_ephemeral(now_ms)
        if refusal is not None:
            self.core.outgoing.clear()  # it was all that waited here
            self._events.append(EphemeralDropped(message_id, refusal))
        return message_id, self.step(now_ms)

    def cancel(self, message_ids: Sequence[str], now_ms: int) -> tuple[bool, Step]:
        """Stop publishing and retrying the messages of a request. Return True if the request was
        pending.

        The messages of a cancelled request stay in the log, because later messages refer to them.
        """
        pending = [message_id for message_id in message_ids if message_id in self._requests]
        for message_id in pending:
            self._cancelled.add(message_id)
            self.outbox.cancel(message_id)
            self._message_traces.refused(message_id, CANCELLED)
            self.core.abandon(message_id)
            self._events += self._translation.refused(message_id, CANCELLED)
        return bool(pending), self.step(now_ms)

    def confirm(self, event: AnyEvent) -> Step | None:
        """Note that the application has handled an event. Return None if the state does not
        change. Nothing is emitted or planned with the step, but a task may have to wake."""
        if self._pending_events is None or not self._pending_events.confirm(event):
            return None
        assert self.unwritten is not None
        step = Step(self.core.changes(), [], ())
        self.unwritten.add(step)
        return step

    def emit(self, event: AnyEvent, now_ms: int) -> Step:
        """Emit an event of the runtime, in order with the engine's events."""
        self._events.append(event)
        return self.step(now_ms)

    # -- from the transport and from Store ---------------------------------------------------------

    def receive(
        self,
        data: bytes,
        now_ms: int,
        *,
        message_hash: bytes,
        timestamp_ns: int,
        from_store: bool = False,
    ) -> tuple[Arrival, Step]:
        """Process a decrypted message from the transport or from Store.

        Call `repeated` first, because it filters most repetitions.
        """
        arrival = self.core.receive(
            data, now_ms, retrieval_hint=message_hash, sent_at_ns=timestamp_ns
        )
        if arrival.outcome in _FINAL or arrival.reason in _REFUSED_FOREVER:
            self._handled.add(message_hash)
        counters, is_new = self.counters, arrival.outcome in _NEW
        if is_new:
            self._message_traces.arrived(
                arrival.message_id,
                timestamp_ns,
                now_ms,
                from_store=from_store,
                is_parked=arrival.outcome is Outcome.PARKED,
            )
        if from_store:
            counters.received_from_store += 1
            counters.retrieved += is_new
        else:
            counters.received_live += 1
            waited_ms = arrival.missing_for_ms
            counters.repaired += is_new and waited_ms is not None and waited_ms >= REORDERED_MS
        self._repairs.received(arrival, len(data), now_ms, from_store=from_store)
        return arrival, self.step(now_ms)

    def repeated(self, message_hash: bytes, *, is_live: bool) -> Outcome | None:
        """Count a message that contains nothing new, and return its outcome. Return None for any
        other message, which `receive` must process.

        An own message that comes back live need not be decrypted. A journal records the message in
        any case.
        """
        if message_hash in self._handled:
            self.counters.repeated += 1
            return Outcome.DUPLICATE
        if not is_live or self._notes_log or message_hash not in self.confirmation.own:
            return None
        self._handled.add(message_hash)
        self.counters.received_live += 1
        self._echoes += 1
        return Outcome.OWN

    def decrypted(self, to_decrypt: EncryptedDelivery, content: bytes, now_ms: int) -> Step:
        """Add the decrypted content of a delivered message."""
        self._events += self._translation.decrypted(to_decrypt, content, now_ms)
        return self.step(now_ms)

    def undecryptable(self, to_decrypt: EncryptedDelivery, reason: str, now_ms: int) -> Step:
        """Note that the content of a delivered message cannot be decrypted."""
        rejected = MessageRejected(
            RejectionReason.UNDECRYPTABLE,
            reason,
            to_decrypt.event.message_id,
            to_decrypt.event.sender_id,
        )
        self._events += self._translation.undecryptable(rejected, to_decrypt)
        return self.step(now_ms)

    def listened(self, at_ms: int) -> None:
        """Note that the transport was listening until this time. The time is saved with the next
        step, because a quiet channel writes nothing, and not with every step."""
        if not 0 <= at_ms - self._saved_look_ms < LOOKS_APART_MS:  # the clock may be set back
            self._saved_look_ms = at_ms
            self._recorder.put(CHANNEL, LAST_LOOK, at_ms)

    def is_known(self, message_hash: bytes) -> bool:
        """Return True if a message in Store is an own message, arrived live, or was handled."""
        return self.confirmation.knows(message_hash) or message_hash in self._handled

    def in_store(self, message_hashes: Iterable[bytes], now_ms: int) -> Step:
        """Note that Store has the messages with these hashes."""
        for message_hash in message_hashes:
            if (message_id := self.confirmation.stored(message_hash)) is not None:
                self.counters.confirmed += 1
                self._events.append(MessageStored(message_id, message_hash))
        return self.step(now_ms)

    def store_checked(self, reached_ns: int, now_ms: int) -> Step:
        """Note that a confirmation query covered messages stamped up to `reached_ns`. Send each
        unacknowledged own message again that Store lacked in enough queries."""
        for message_id in self.confirmation.absent(reached_ns):
            if not self.core.resend_early(message_id, now_ms):
                self.confirmation.forget(message_id)
        return self.step(now_ms)

    # -- to the transport --------------------------------------------------------------------------

    def take(self, now_ms: int) -> Item | None:
        """Return the next message that may be sent now, and count the message in the rate limit.

        If `has_news` is True, end a step before this call. After this call, report the result with
        `dispatched`, `failed` or `refused`. Return None if no message waits, or if no message may
        be sent before `sends_at_ms`.
        """
        while self.outbox.queued and (outgoing := self.outbox.first) is not None:
            if self._is_obsolete(outgoing) or (outgoing.is_redundant and self._is_too_much(now_ms)):
                self.outbox.done(self.outbox.take())
                continue
            if self.limit is not None:
                if not self.limit.admits(outgoing.kind, now_ms):
                    self._rate_limited(self.limit.epoch_ends_at_ms(now_ms))
                    return None
                self._spend(self.limit.spend(now_ms))
            item = self.outbox.take()
            if (draft := outgoing.draft) is not None:
                written = None if self.unwritten is None else self.unwritten.older_filter
                data, self.has_news = draft.maker.leave(draft, now_ms, written)
                kind, message_id = outgoing.kind, outgoing.message_id
                item.outgoing = Outgoing(kind, message_id, data, outgoing.timestamp_ns)
            return item
        return None

    def sends_at_ms(self, now_ms: int) -> int | None:
        """Return the time (ms) at which waiting messages may be sent, if the rate limit forbids it
        now. Return None if no message waits."""
        if self.limit is None or self.outbox.first is None:
            return None
        return self.limit.epoch_ends_at_ms(now_ms)

    def dispatched(self, item: Item, message_hash: bytes, timestamp_ns: int, now_ms: int) -> Step:
        """Note that the transport accepted a message of `take`."""
        if self.limit is not None:
            self._count_epoch(now_ms)
        self.outbox.done(item)
        self.counters.published += 1
        outgoing = item.outgoing
        self.confirmation.dispatched(outgoing, message_hash, timestamp_ns)
        self._message_traces.dispatched(outgoing, now_ms)
        if outgoing.kind in SENT_TWICE:
            self.core.dispatched(outgoing.message_id, now_ms, message_hash)
            self._events += self._requests.sent(outgoing.message_id, message_hash)
        return self.step(now_ms)

    def failed(self, item: Item, now_ms: int) -> bool:
        """Note that a message was not sent, because the transport is away. Return True if the
        message waits to be sent later."""
        self._count_epoch(now_ms)
        if item.outgoing.kind in NO_RETRY:
            self.outbox.done(item)
            return False
        return self.outbox.put_back(item)

    def refused(self, outgoing: Outgoing, reason: str, now_ms: int) -> Step:
        """Note that an own message will never be sent."""
        if outgoing.kind in SENT_TWICE:
            self._message_traces.refused(outgoing.message_id, reason)
            self.core.abandon(outgoing.message_id)
            self._events += self._translation.refused(outgoing.message_id, reason)
        return self.step(now_ms)

    def sds_statistics(self) -> SdsStatistics:
        """Return the statistics of the core, with the own messages that the engine filtered."""
        statistics = self.core.statistics()
        statistics.counters.own_echoes += self._echoes
        return statistics

    def explain(self, message_id: str, now_ms: int) -> Explanation:
        """Return the history of a message, and the reason for its delay."""
        return self._message_traces.explain(message_id, self.core.log.get(message_id), now_ms)

    def explain_budget(self, now_ms: int) -> Budget:
        """Return the state of the rate limit, with the remaining budget, waiting messages and the
        epoch's end."""
        waiting = self.outbox.waiting()
        return no_budget(waiting) if self.limit is None else self.limit.explain(waiting, now_ms)

    # -- time --------------------------------------------------------------------------------------

    def on_deadline(self, now_ms: int) -> Step:
        """Do all work that is due by time."""
        self.core.on_deadline(now_ms)
        self._repairs.on_deadline(now_ms)
        self._events += self._translation.on_deadline(now_ms)
        return self.step(now_ms)

    # -- steps -------------------------------------------------------------------------------------

    def step(self, now_ms: int, accepted: Accepted | None = None) -> Step:
        """End a step and return its consequences. Every input method ends a step. The owner must
        end a step after `take` and after a query to Store.

        If the step `is_due`, emit its events and wake the sending task. If the step is not due yet,
        `end_write` returns it later. In any case, wake the tasks in `wakes`, and call `on_deadline`
        at `due_ms`.
        """
        core, events, unwritten = self.core, self._events, self.unwritten
        # Emptied before they are used: after an error, nothing of them may come again.
        wanted, told, outgoing = core.wanted.copy(), core.events.copy(), core.outgoing.copy()
        core.wanted.clear()
        core.events.clear()
        core.outgoing.clear()
        if wanted:
            self._repairs.notice(wanted, now_ms)
        notes = self._message_traces.notes
        for event in told:
            if (note := notes.get(type(event))) is not None:
                note(event, now_ms)
            if isinstance(event, RepairRequested):
                self._repairs.saw(event, now_ms)
            elif self._notes_log and isinstance(event, MessageReceived):
                events.append(Logged.delivered(event, core.log.evicted))
            events += self._translation.public(event, now_ms)
        if self._pending_events is not None and (dropped := self._pending_events.newly_dropped()):
            events.append(PendingEventsDropped(dropped))
        self._events, self.has_news = [], False
        if unwritten is None:
            step = Step(None, events, outgoing)
        else:
            step = Step(core.changes(), events, outgoing, accepted)
            unwritten.add(step)
        if step.is_due:
            for each in step.outgoing:
                self.outbox.put(each, now_ms)
        if self.to_decrypt:
            step.wakes.append(Wake.DECRYPT)
        if any(core.missing_tables) or self.queries.catch_up_from_ms is not None:
            step.wakes.append(Wake.FETCH)
        step.due_ms = self.agenda.next_ms
        return step

    def begin_write(self, now_ms: int, *, at_once: bool = False) -> Changes | None:
        """Return the data to write in one transaction, or None if there is nothing to write. If
        data are returned, call `end_write` afterwards, even after a failure."""
        assert self.unwritten is not None
        return self.unwritten.begin(now_ms, at_once=at_once)

    def end_write(
        self, now_ms: int, *, tried: bool, failure: StateError | None = None
    ) -> Sequence[Step]:
        """End a write that succeeded, failed or was not attempted. Return the steps that are due
        now."""
        unwritten = self.unwritten
        assert unwritten is not None
        reports: list[AnyEvent | None] = [unwritten.reading_failed()]
        if failure is not None:
            reports.append(unwritten.failed(failure, now_ms))
        elif tried:
            reports.append(unwritten.written(now_ms))
        due, refused = unwritten.finish()
        if (refusal := unwritten.failure) is not None:
            for accepted in refused:
                self._withdraw(accepted, refusal)
        for step in due:
            step.is_due, step.due_ms = True, None
            step.wakes.clear()
            for outgoing in step.outgoing:
                self.outbox.put(outgoing, now_ms)
        if refused or any(reports):
            self._events += filter(None, reports)
            if (step := self.step(now_ms)).is_due:
                due = (*due, step)
        return due

    # -- inside ------------------------------------------------------------------------------------

    def _withdraw(self, accepted: Accepted, failure: StateError) -> None:
        """Take back an own message that could not be written: it did not go out, nor did anything
        that refers to it. Of the steps that wait, sync messages may."""
        self._idempotency.discard(accepted.idempotency_key)
        self._requests.withdrawn(accepted.message_ids)
        self._take_back(accepted.message_ids)
        accepted.failure = _refusal(failure)

    def _take_back(self, message_ids: Sequence[str]) -> None:
        """Take back own messages, if no participant knows any of them."""
        take_back = self.core.withdraw if isinstance(self.core, Withdrawing) else self.core.abandon
        for message_id in message_ids:
            take_back(message_id)
            self._message_traces.withdrawn(message_id)

    def _note_backlog(self, now_ms: int) -> None:
        waiting = self.outbox.undispatched_count
        if self._growth.is_lasting(waiting, now_ms):
            oldest_ms = self.outbox.oldest_ms(now_ms)
            self._events.append(SendingFellBehind(waiting, oldest_ms))

    def _is_obsolete(self, outgoing: Outgoing) -> bool:
        """Return True if it was cancelled, or is a retry of a message that was acknowledged or
        given up meanwhile, or is a sync message that acknowledges unsaved messages."""
        if outgoing.kind is OutgoingKind.SYNC and self._required is not None:
            return self._required.failure is not None
        if outgoing.kind is OutgoingKind.CONTENT or outgoing.is_redundant:
            return outgoing.message_id in self._cancelled
        return (
            outgoing.kind is OutgoingKind.RETRY
            and outgoing.message_id in self.core.log
            and outgoing.message_id not in self.core.unacknowledged
        )

    def _is_too_much(self, now_ms: int) -> bool:
        """Return True if the budget is too short for a message that is redundant."""
        return self.limit is not None and self.limit.is_short(now_ms)

    def _rate_limited(self, epoch_ends_at_ms: int) -> None:
        """The budget is spent; reported once an epoch."""
        if epoch_ends_at_ms != self._rate_limited_until_ms:
            self._rate_limited_until_ms = epoch_ends_at_ms
            self._events.append(RateLimitReached(epoch_ends_at_ms, len(self.outbox)))

    def _count_epoch(self, now_ms: int) -> None:
        """Begin the epoch while a message is still in hand that may be out in it."""
        if self.limit is not None:
            self.limit.spent(now_ms)

    def _spend(self, spent: Spent) -> None:
        self._recorder.put(CHANNEL, BUDGET_EPOCH, spent.epoch_index)
        self._recorder.put(CHANNEL, BUDGET_SPENT, spent.messages)

    def _logged_own(self, message_id: str, first_segment_id: str) -> Iterable[Logged]:
        """What a journal notes of a message that was just accepted."""
        log = self.core.log
        if (entry := log.entries.get(message_id)) is not None:
            yield Logged.own(
                entry, log.position(entry), log.evicted, first_segment_id=first_segment_id
            )


def is_restart(saved: Saved) -> bool:
    """Return True if the saved state comes from an earlier start."""
    return any(saved.tables.values())


def spent_in(tables: Tables) -> Spent | None:
    """Return the part of the rate limit that was spent before a restart."""
    epoch_index = _number(tables, BUDGET_EPOCH)
    return Spent(epoch_index, _number(tables, BUDGET_SPENT)) if epoch_index else None


def _number(tables: Tables, name: str) -> int:
    """A single number, or 0."""
    value = _value(tables, name)
    return value if isinstance(value, int) else 0


def _value(tables: Tables, name: str) -> Value:
    values: dict[Value, Value] = {row[0]: row[1] for row in tables.get(CHANNEL.name, ())}
    return values.get(name)


def _refusal(failure: StateError) -> StateError:
    """What a `send` raises that could not be written."""
    return type(failure)(f"nothing was sent, since the state cannot be written: {failure}")
