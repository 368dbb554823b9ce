"""One channel at work: the core, its timer, and the tasks around it."""

import logging
from collections.abc import Callable
from copy import copy
from dataclasses import asdict
from random import Random
from time import monotonic_ns, time_ns
from typing import Final

import anyio
from anyio.abc import TaskGroup

from ..engine.idempotency import Accepted
from ..engine.repairs import Repairs
from ..engine.segments import NoSegmentation, Segmentation, Segments
from ..events import Event, ReaderFellBehind, StateRolledBack, UnconfirmedDropped
from ..options import ChannelOptions
from ..policies import Policies
from ..sds.archive import NO_ARCHIVE
from ..sds.changes import NO_RECORDER, Recorder
from ..sds.log import MessageLog
from ..sds.log_entry import LogEntry
from ..segmentation import LAYOUTS, SegmentLayout
from ..signing import Signing
from ..state import StateCorrupt
from ..steady_clock import SteadyClock
from ..sync_core import SyncCore, SyncSetting
from ..transport.base import Transport, has_store, nodes_of
from .backlog import Backlog
from .backoff import Backoff
from .confirmation import Confirmation
from .dispatcher import CONCURRENCY, Dispatcher
from .engine import Engine
from .event_stream import EventReader, EventStream
from .follower import Follower
from .health import Health, watch_nodes
from .inner_stages import InnerStages
from .intake import Intake
from .journal import RENOTED, Journal
from .kept import Kept, StateBudget
from .observers import Observers
from .outbox import Outbox
from .rate_limit import Budget, BudgetStore, RateLimitManager, no_budget
from .receiver import Receiver
from .retrieval import Retriever
from .stages import Stages
from .statistics import ChannelStatistics
from .sync_status import SyncState, SyncStatus, SyncStatusWatch

RESTART_MARGIN_MS: Final = 600_000
"""How far before its last look a participant that starts again asks Store: what was on its way then
may have been stored later, or stamped by a clock that is behind."""
DAMAGE: Final = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""What rows raise that a disk changed in a way that SQLite cannot notice."""
OWED_AT_ONCE: Final = 100
"""Unconfirmed events that are emitted at a start before other tasks have their turn."""
JOINING_MS: Final = 60_000
"""How long a newcomer takes unknown references for messages from before it joined: two rounds of
sync messages, in which everybody's history is heard."""

_LOG: Final = logging.getLogger("reliable_channel")


class Runtime:
    """Drives one core over one transport. The owner opens the transport before `start` and closes
    it after."""

    def __init__(
        self,
        transport: Transport,
        *,
        content_topic: str,
        channel_id: str,
        sender_id: str,
        make_core: Callable[[SyncSetting], SyncCore],
        options: ChannelOptions,
        journal: Journal | None,
        now_ns: Callable[[], int],
        random: Random,
        stages: Stages | None = None,
        inner: InnerStages | None = None,
        signing: Signing | None = None,
        require_signatures: bool = False,
        budget: BudgetStore | None = None,
        kept: Kept | None = None,
        observers: Observers | None = None,
        policies: Policies | None = None,
    ) -> None:
        self.options = options
        self._journal = journal
        self._listen_from_ms = 0
        self._kept = kept
        self._transport = transport
        self._wall_ns = now_ns
        # Somebody's own clock, such as virtual time, need not keep pace with the computer's.
        elapsed_ns = monotonic_ns if now_ns is time_ns else lambda: 0
        self._now_ns = now_ns = SteadyClock(now_ns, elapsed_ns)
        self._random = random.random
        self._name = f"channel {channel_id!r}, participant {sender_id!r}"
        self._stream = EventStream(
            options.event_buffer_limit,
            Backlog(self._content),
            confirm=lambda event: self.engine.confirm(event),
            fell_behind=lambda readers, unread: self.engine.emit(ReaderFellBehind(readers, unread)),
        )
        self._outbox = Outbox()
        self._deadline_changed = anyio.Event()
        recorder = NO_RECORDER if kept is None else Recorder()
        policies = policies or Policies()
        asks_store = self._asks_store = options.asks_store and has_store(transport)
        core = make_core(
            SyncSetting(
                channel_id,
                sender_id,
                options,
                now_ms=now_ns() // 1_000_000,
                random=random.random,
                recorder=recorder,
                archive=NO_ARCHIVE if kept is None else kept.archive,
                signing=signing,
                require_signatures=require_signatures,
                policies=policies,
                asks_when_told=True,
                has_store=asks_store,
            )
        )
        repairs = Repairs(
            core,
            lambda: now_ns() // 1_000_000,
            policies.repair,
            retrieve_frequency_ms=options.retrieve_frequency_ms,
            has_store=asks_store,
        )
        # What was sealed inside SDS stands sealed in the log.
        self.segmentation = _segmentation(options, None if inner else core.log)
        self.engine = Engine(
            core,
            repairs,
            now_ns=now_ns,
            random=random,
            stream=self._stream,
            outbox=self._outbox,
            segmentation=self.segmentation,
            journal=journal,
            wake=self._wake,
            deliver=None if inner is None else inner.delivered,
            keeper=None if kept is None else kept.keeper,
            on_state_failure=options.on_state_failure,
            recorder=recorder,
            observers=observers,
            warn=self._warn,
        )
        self._inner = inner
        self._recorder = recorder
        if kept is not None:
            kept.keeper.tell = self.engine.emit
            budget = StateBudget(recorder, kept.saved.tables)
        self.sync_status = SyncStatusWatch(self._sync_status)
        used = ("send", "receive", "store") if asks_store else ("send", "receive")
        self._health = Health(
            self.engine.now_ms,
            self.engine.emit,
            used,
            content_topic=content_topic,
            enough_nodes=options.redundancy,
        )
        self._stages = stages or Stages()
        self._limits = self._rate_limit(budget)
        self._intake = Intake(self.engine, self._stages)
        self._retriever = Retriever(
            self.engine,
            self._intake,
            transport,
            self._health,
            Backoff(random.random),
            repairs,
        )
        self._confirmation = Confirmation(
            self.engine,
            self._intake,
            transport,
            self._health,
            interval_ms=options.confirm_interval_ms if asks_store else 0,
        )

    def begin(self) -> None:
        """Go on as before a restart, or join the conversation; call it before `start`.

        Raises:
            StateCorrupt: what was kept is not what this package writes.
        """
        if self._kept is None:
            self._enter()
            return
        saved = self._kept.saved
        try:
            self.engine.core.restore(saved.tables, saved.newest, self.engine.now_ms())
            self._enter()
            if (lacks := saved.rolled_back) is not None:
                self.engine.emit(StateRolledBack(lacks.reason, lacks.missing_writes))
            self.engine.restore(saved.tables)
        except DAMAGE as error:
            raise StateCorrupt(
                f"the state is damaged: a row is not what this package writes ({error!r}); move it "
                "away and start without it, or bring back a copy"
            ) from error

    def _enter(self) -> None:
        """Know from when on to listen, and let the journal begin with that."""
        now_ms = self.engine.now_ms()
        is_restart = self._kept is not None and self._kept.is_restart
        self._listen_from_ms = self._rejoin(now_ms) if is_restart else self._join(now_ms)
        if self._journal is not None:
            self._journal.opened(
                at_ms=now_ms,
                wanted_from_ms=None if is_restart else self._listen_from_ms,
                log_length=len(self.engine.core.log),
                options=asdict(self.options),
            )
            if is_restart:
                self._journal.restored(self.engine.core.log.last(RENOTED), now_ms)

    def start(self, tasks: TaskGroup) -> None:
        """Start all tasks; cancel the group to stop them."""
        if self._kept is not None:
            tasks.start_soon(self._kept.keeper.run, name="reliable_channel.keeper")
        dispatcher = Dispatcher(
            self.engine,
            self._outbox,
            self._transport,
            self._stages,
            self._limits,
            self._health,
            self._confirmation,
            self._wall_ns,  # Store refuses what is stamped otherwise
            self._random,
        )
        for _ in range(CONCURRENCY):
            tasks.start_soon(dispatcher.run, name="reliable_channel.dispatcher")
        if self._inner is not None:
            tasks.start_soon(self._inner.run, self.engine, name="reliable_channel.opener")
        tasks.start_soon(self._keep_time, name="reliable_channel.timer")
        tasks.start_soon(
            watch_nodes, self._transport, self._health, name="reliable_channel.node_watch"
        )
        tasks.start_soon(self._listen, tasks, name="reliable_channel.listener")

    async def _listen(self, tasks: TaskGroup) -> None:
        """Emit what is unconfirmed from before a restart, so that nothing new overtakes it; then
        listen and ask Store."""
        if self._kept is not None:
            for number, _ in enumerate(self.engine.owed(self._kept.saved.tables)):
                if number % OWED_AT_ONCE == 0:
                    await anyio.lowlevel.checkpoint()
        receiver = Receiver(
            self.engine,
            self._intake,
            self._transport,
            self._health,
            self._retriever,
            self._confirmation,
            self._random,
        )
        if self._asks_store:
            tasks.start_soon(self._retriever.run, name="reliable_channel.retriever")
            if self.options.query_on_connect:
                self._retriever.catch_up(self._listen_from_ms)
            if self.options.confirm_interval_ms:
                tasks.start_soon(self._confirmation.run, name="reliable_channel.confirmation")
        await receiver.run()

    async def drained(self) -> None:
        """Wait until the transport has taken all that was accepted."""
        await self._outbox.drained()

    def events(self, *, confirm: bool = True) -> EventReader:
        """Iterate over events until the channel closes."""
        return self._stream.read(confirm=confirm)

    def follow(self, last: int | None) -> Follower:
        """The log, or its newest entries, and the events after it."""
        log = self.engine.core.log
        return Follower(
            list(log if last is None else log.last(last)),
            self._stream.follow(),
            _segmentation(self.options, None if self._inner else log),
            None if self._inner is None else self._inner.open,
        )

    def close(self) -> None:
        """Let the readers of events finish.

        What was accepted and never went out is told as failed, unless it outlives the process: then
        it goes after the next start.
        """
        for outgoing in () if self._kept else self._outbox.undispatched():
            self.engine.refused(outgoing, "the channel was closed before the transport took it")
        if self._journal is not None:
            self._journal.closed(self.engine.now_ms())
        self._stream.close()
        self.sync_status.close()

    def log(self, last: int | None) -> list[LogEntry]:
        """The log, or its newest entries; what is whole in one segment as the payload that it
        is."""
        log = self.engine.core.log
        return [self._whole(entry) for entry in (log if last is None else log.last(last))]

    def _content(self, message_id: str) -> bytes | None:
        """The payload of a message in the log, if it is whole in one segment."""
        entry = self.engine.core.log.get(message_id)
        return None if entry is None else self.segmentation.whole(entry.content)

    def _warn(self, event: Event) -> None:
        """Log what the application should know even where it does not look at events."""
        match event:
            case ReaderFellBehind(readers=readers, unread=unread):
                text = (
                    f"{readers} reader(s) of events() fell behind, the slowest by {unread} events "
                    f"(event_buffer_limit is {self.options.event_buffer_limit}); the channel goes "
                    "on, and messages follow from the log. Handle events faster, or close readers "
                    "that you left: `async with channel.events() as events`"
                )
            case UnconfirmedDropped(count=count):
                text = (
                    f"{count} messages and reports were never confirmed, and will not be emitted "
                    "again after a restart. Read events(), or open the channel without state"
                )
            case _:
                return
        _LOG.warning("%s: %s", self._name, text)

    def _whole(self, entry: LogEntry) -> LogEntry:
        content = self.segmentation.whole(entry.content)
        if content is entry.content:
            return entry
        message_id, sender_id, lamport_timestamp, _, retrieval_hint = entry.row
        return LogEntry(message_id, sender_id, lamport_timestamp, content, retrieval_hint)

    def statistics(self) -> ChannelStatistics:
        """A snapshot."""
        return ChannelStatistics(
            sds=self.engine.core.statistics(),
            transport=copy(self.engine.counters),
            waiting_to_be_sent=len(self._outbox),
            events_dropped=self._stream.dropped,
            degraded=self._health.degraded,
            health=self._health.status,
            topic_health=self._health.topic,
            nodes=nodes_of(self._transport),
            events_unread=self._stream.behind,
        )

    def _rejoin(self, now_ms: int) -> int:
        """From when (ms) something may have been missed before a restart."""
        assert self._kept is not None
        window_start_ms = now_ms - self.options.query_on_connect_window_ms
        return max(window_start_ms, self._kept.last_look_ms - RESTART_MARGIN_MS)

    def _join(self, now_ms: int) -> int:
        """Take the part in the conversation that the options ask for; return from when (ms)."""
        options = self.options
        window_start_ms = now_ms - options.query_on_connect_window_ms
        if options.history == "all":
            return window_start_ms
        wanted_from_ms = now_ms if options.history == "none" else options.history_since_ms
        self.engine.core.join(now_ms, wanted_from=wanted_from_ms, presume_ms=JOINING_MS)
        return max(window_start_ms, wanted_from_ms)

    async def send(self, payload: bytes, idempotency_key: str | None = None) -> Accepted:
        """Accept a message, unless one was under this key before.

        Raises:
            StateError: it cannot be written, and is not accepted.
        """
        accepted = self.engine.accepted_before(idempotency_key)
        if accepted is None:
            segments = self.engine.split(payload)
            self.engine.check_writable()
            if self._inner is None or not payload:
                accepted = self.engine.send(segments, idempotency_key)
            else:
                async with self._inner.in_order:
                    sealed = await self._inner.seal(segments)
                    accepted = self.engine.send(sealed, idempotency_key)
        await self.engine.recorded()
        if accepted.failure is not None:
            raise accepted.failure
        return accepted

    async def send_ephemeral(self, content: bytes) -> str:
        """Accept an ephemeral message, or drop it with an event where the budget runs short."""
        refusal = None if self._limits is None else self._limits.refuses_ephemeral()
        if self._inner is not None and content:
            (content,) = await self._inner.seal([content])
        return self.engine.send_ephemeral(content, refusal)

    def explain_budget(self) -> Budget:
        """What the rate limit lets out, what waits, and when that goes."""
        waiting = self._outbox.waiting()
        return no_budget(waiting) if self._limits is None else self._limits.explain(waiting)

    def _rate_limit(self, store: BudgetStore | None) -> RateLimitManager | None:
        if not self.options.rate_limit_enabled:
            return None
        return RateLimitManager(
            messages_per_epoch=self.options.rate_limit_messages_per_epoch,
            epoch_period_s=self.options.rate_limit_epoch_period_s,
            now_ms=self.engine.now_ms,
            store=store,
        )

    def _sync_status(self) -> SyncStatus:
        progress = self.engine.core.progress()
        if progress.missing:
            state: SyncState = "syncing"
        else:
            state = "different" if progress.different_from else "synced"
        return SyncStatus(
            state=state,
            received=progress.received,
            missing=progress.missing,
            lost=progress.lost,
            different_from=progress.different_from,
        )

    def _wake(self) -> None:
        self.sync_status.notify()
        self._deadline_changed.set()
        if self.engine.core.is_missing_something:
            self._retriever.wake()

    async def _keep_time(self) -> None:
        while True:
            self._deadline_changed = anyio.Event()
            deadline_ms = self.engine.next_deadline_ms()
            # In whole nanoseconds: a float of this size can reach the deadline before the clock.
            wait_ns = None if deadline_ms is None else deadline_ms * 1_000_000 - self._now_ns()
            if wait_ns is not None and wait_ns <= 0:
                self.engine.on_deadline()
                await anyio.lowlevel.checkpoint()
                continue
            with anyio.move_on_after(None if wait_ns is None else wait_ns / 1_000_000_000):
                await self._deadline_changed.wait()


def _segmentation(options: ChannelOptions, log: MessageLog | None) -> Segmentation:
    def content_of(message_id: str) -> bytes | None:
        entry = None if log is None else log.get(message_id)
        return None if entry is None else entry.content

    layout = options.segment_layout
    if isinstance(layout, str):
        layout = next((known for known in LAYOUTS if known.name == layout), None)
    if not isinstance(layout, SegmentLayout):
        return NoSegmentation()
    return Segments(
        layout,
        every_payload=options.segments_every_payload,
        segment_size_bytes=options.segment_size_bytes,
        max_payload_bytes=options.max_payload_bytes,
        reconstruction_timeout_ms=options.segment_reconstruction_timeout_ms,
        content_of=None if log is None else content_of,
    )
