"""Running channel, with an engine and the tasks around the engine."""

from collections.abc import Callable, Coroutine, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.abc import TaskGroup

from .._message_log import Log
from ..diagnostics import JournalDegraded, ReaderFellBehind
from ..engine.engine import Engine, is_restart, spent_in
from ..engine.rate_limit import Budget
from ..engine.requests import Accepted
from ..engine.segments import segmentation_of
from ..engine.statistics import ChannelStatistics
from ..engine.sync_core import CoreContext
from ..errors import StateCorrupt
from ..events import AnyEvent
from ..explanation import Explanation
from ..health import ChannelHealth
from ..sds.changes import NO_RECORDER, Recorder
from ..sds.log.archive import NO_ARCHIVE
from ..sds.message import LogEntry
from ..transport.base import Transport
from .backlog import Backlog
from .driver import Notes, RealTimeDriver
from .event_log import EventLog
from .event_stream import EventReader, EventStream
from .follower import Follower
from .health import Health, watch_nodes
from .listener import Intake, Listener
from .observers import Observers
from .publisher import Publisher
from .setup import ChannelSetup
from .state_writer import OpenState, StateWriter
from .store_client import StoreClient
from .task_context import TaskContext

if TYPE_CHECKING:
    from .journal import Journal

DAMAGE: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""Errors from a row that a disk damaged and SQLite did not notice."""
REDELIVERED_AT_ONCE: Final = 100
"""Number of unconfirmed events that are emitted at a start before other tasks have a turn."""


class Runtime:
    """Engine and transport of a channel, with the tasks between them. The owner opens the transport
    before `start` and closes it afterwards."""

    def __init__(
        self,
        setup: ChannelSetup,
        transport: Transport,
        *,
        state: OpenState | None = None,
        journal: "Journal | None" = None,
        observers: Observers | None = None,
    ) -> None:
        self._setup = setup
        self.options = options = setup.options
        self._transport = transport
        self._journal = journal
        self._contents = setup.contents
        self._state = state
        self._listen_from_ms = 0
        self._holds: Callable[[AnyEvent], bool] = lambda event: False
        clock, random = setup.clock(), setup.random
        now_ms = clock() // 1_000_000
        self._asks_store = options.asks_store and transport.has_store
        recorder = NO_RECORDER if state is None else Recorder()
        core = setup.make_core(
            CoreContext(
                setup.channel_id,
                setup.sender_id,
                options,
                now_ms=now_ms,
                random=random.random,
                recorder=recorder,
                archive=NO_ARCHIVE if state is None else state.archive,
                signing=setup.signing,
                require_signatures=options.require_signatures,
                policies=setup.policies,
                repair_on_demand=True,
                has_store=self._asks_store,
            )
        )
        budget_file = setup.budget_file if state is None else None
        if state is not None:
            spent = spent_in(state.saved.tables)
        else:
            spent = None if budget_file is None else budget_file.load()
        self.engine = Engine(
            core,
            options,
            setup.policies.repair,
            participant_id=setup.sender_id,
            now_ms=now_ms,
            random=random,
            has_store=self._asks_store,
            recorder=recorder,
            archive=None if state is None else state.archive,
            opens_contents=setup.contents is not None,
            notes_log=journal is not None,
            spent=spent,
        )
        self._stream = EventStream(
            options.limits.events,
            Backlog(self._content),
            confirm=None if state is None else self._confirm_read,
            fell_behind=self._fell_behind,
        )
        self._log = EventLog(setup.channel_id, setup.sender_id, setup.log_failures)
        self._driver = driver = RealTimeDriver(
            self.engine,
            self._stream,
            clock,
            journal=journal,
            observers=observers,
            log=self._log,
        )
        if journal is not None:
            journal.degraded = self._journal_degraded
        self.sync_status = driver.sync_status
        self._writer = writer = None if state is None else StateWriter(driver, state)
        self._health = health = Health(
            driver.now_ms,
            lambda event: driver.turn(self.engine.emit, event),
            ("send", "receive", "store") if self._asks_store else ("send", "receive"),
            content_topic=setup.content_topic,
            enough_nodes=options.redundancy,
        )
        self._signing, self._unopened = setup.signing, setup.unopened
        intake = Intake(driver, setup.stages, setup.unopened, self._log_unopened)
        wiring = TaskContext(driver, transport, health, writer, random.random)
        self._publisher = Publisher(
            wiring, setup.stages, wall_ns=setup.now_ns, budget_file=budget_file
        )
        self._store_client = StoreClient(wiring, intake)
        self._listener = Listener(wiring, intake)

    def begin(self) -> None:
        """Continue from the saved state, or join the conversation. Call `begin` before `start`.

        Raises:
            StateCorrupt: the state holds what this package does not write.
        """
        saved, now_ms = None if self._state is None else self._state.saved, self._driver.now_ms()
        try:
            self._listen_from_ms = self.engine.begin(saved, now_ms)
            self._open_journal(now_ms, goes_on=saved is not None and is_restart(saved))
            self._driver.finish()
        except DAMAGE as error:
            if saved is None or hasattr(error, "__notes__"):
                raise  # not damage, because only errors of given code have a note
            raise StateCorrupt(
                "the state is damaged: a row does not have the form that this package writes "
                f"({error!r}); move the state away and start without it, or restore a copy"
            ) from error

    def attach(self, notes: Notes, holds: Callable[[AnyEvent], bool]) -> None:
        """Call `notes` with the events of their types. An event for which `holds` returns
        True is confirmed only by `confirm`, not by reading it."""
        self._driver.notes, self._holds = notes, holds

    def start(self, tasks: TaskGroup) -> None:
        """Start all tasks of the channel. Cancel the task group to stop these tasks."""

        def start(
            task: Callable[..., Coroutine[Any, Any, None]], *arguments: object, name: str
        ) -> None:
            tasks.start_soon(task, *arguments, name=f"reliable_channel.{name}")

        if self._writer is not None:
            start(self._writer.run, name="state_writer")
            start(self._writer.keep_time, name="state_writer_timer")
        start(self._publisher.run, tasks, name="publisher")
        if self._contents is not None:
            start(self._contents.run, self._driver, self._content_tried, name="opener")
        start(self._driver.run, name="timer")
        start(watch_nodes, self._transport, self._health, name="node_watch")
        start(self._listen, tasks, name="redelivery")
        self._log.opened(self._setup.content_topic, self._transport.nodes())
        if self._signing is not None and self._signing.warning is not None:
            self._log.warn(self._signing.warning, "unsigned")

    async def _listen(self, tasks: TaskGroup) -> None:
        """Emit what is unconfirmed from before a restart, so that nothing new overtakes it; then
        start to listen and to ask Store."""
        if self._state is not None:
            now_ms = self._driver.now_ms()
            for number, step in enumerate(self.engine.redeliver(now_ms)):
                self._driver.end(step, now_ms)
                if number % REDELIVERED_AT_ONCE == 0:
                    await anyio.lowlevel.checkpoint()
        if self._asks_store:
            tasks.start_soon(self._store_client.fetch, name="reliable_channel.store_client")
            if self.options.query_on_connect:
                self._driver.catch_up(self._listen_from_ms)
            if self.options.confirm_interval_ms:
                tasks.start_soon(self._store_client.confirm, name="reliable_channel.confirmation")
        tasks.start_soon(self._listener.run, name="reliable_channel.listener")

    async def drained(self) -> None:
        """Wait until the transport has accepted all messages of the application. No other messages
        are sent meanwhile."""
        outbox = self.engine.outbox
        outbox.close()
        while not outbox.is_drained:
            await self._driver.drained.wait()

    @property
    def is_cut_off(self) -> bool:
        """True if no node is connected."""
        nodes = self._transport.nodes()
        return bool(nodes) and all(node.is_away for node in nodes)

    async def flush(self) -> None:
        """Write all waiting data to the state, even if the store failed a moment ago."""
        if self._writer is not None:
            await self._writer.flush(at_once=True)

    def close(self) -> None:
        """Let the readers of events finish.

        An accepted message that was never sent has failed, unless the state keeps it. A message
        that the state keeps is sent after the next start.
        """
        if self._state is None:
            for outgoing in self.engine.outbox.undispatched():
                reason = "the channel was closed before the transport took it"
                self._driver.turn(self.engine.refused, outgoing, reason)
        if self._journal is not None:
            self._journal.closed(self._driver.now_ms())
        self._log.closed()
        self._stream.close()
        self.sync_status.close()

    async def send(self, payload: bytes, idempotency_key: str | None = None) -> Accepted:
        """Accept a message, unless a message was already accepted under the idempotency key.

        Raises:
            StateError: it cannot be written, and is not accepted.
        """
        engine, driver = self.engine, self._driver
        accepted = None
        if idempotency_key is not None:
            accepted = engine.accepted_before(idempotency_key)
        if accepted is None:
            segments = engine.split(payload)
            if self._contents is None or not payload:
                accepted = driver.send(payload, segments, idempotency_key)
            else:
                async with self._contents.in_order:
                    segments = await self._contents.encrypt(segments)
                    accepted = driver.send(payload, segments, idempotency_key)
        if self._writer is None:
            await anyio.lowlevel.checkpoint()
        else:
            await self._writer.written()
        if accepted.failure is not None:
            raise accepted.failure
        return accepted

    async def send_ephemeral(self, content: bytes) -> str:
        """Accept an ephemeral message, or drop it with an event if the budget is almost spent."""
        if self._contents is not None and content:
            (content,) = await self._contents.encrypt([content])
        return self._driver.send_ephemeral(content)

    async def cancel(self, message_ids: Sequence[str]) -> bool:
        """Stop publishing and retrying the messages of a request. Return True if the request was
        pending."""
        was_pending = self._driver.cancel(message_ids)
        if self._writer is not None:
            await self._writer.written()
        return was_pending

    def events(self, *, confirm: bool = True) -> EventReader:
        """Return a reader of the events until the channel closes."""
        return self._stream.read(confirm=confirm)

    def follow(self, last: int | None, *, own: bool) -> Follower:
        """Return the log, or its newest entries, with a reader of the events after them."""
        log = self.engine.core.log
        return Follower(
            list(log if last is None else log.last(last)),
            self._stream.follow(),
            partial(segmentation_of, self.options, None if self._contents else log),
            None if self._contents is None else self._contents.open,
            log if own else None,
        )

    def emit(self, event: AnyEvent) -> None:
        """Emit an event at once that follows from other events."""
        self._driver.show(event, self._driver.now_ms())

    def now_ms(self) -> int:
        """Return the wall-clock time (ms since 1970)."""
        return self._driver.now_ms()

    async def confirm(self, event: AnyEvent) -> None:
        """Note that the application has handled an event. The method returns when the confirmation
        is written."""
        self._driver.confirm(event)
        if self._writer is not None:
            await self._writer.written()

    def log(self, last: int | None) -> Log:
        """Return the log, or its newest `last` entries. An entry with a whole payload in one
        segment is returned with its payload."""
        log = self.engine.core.log
        return Log(self._whole(entry) for entry in (log if last is None else log.last(last)))

    def explain(self, message_id: str) -> Explanation:
        """Return the history of a message, and the reason for its delay."""
        return self.engine.explain(message_id, self._driver.now_ms())

    def explain_budget(self) -> Budget:
        """Return the state of the rate limit, with the remaining budget, waiting messages and the
        epoch's end."""
        return self.engine.explain_budget(self._driver.now_ms())

    def statistics(self) -> ChannelStatistics:
        """Return the current counters and the sizes of the buffers."""
        return ChannelStatistics(
            sds=self.engine.sds_statistics(),
            transport=copy(self.engine.counters),
            waiting_to_be_sent=len(self.engine.outbox),
            events_dropped=self._stream.dropped,
            degraded=self._health.degraded,
            health=self._health.status,
            topic_health=self._health.topic,
            nodes=self._transport.nodes(),
            events_unread=self._stream.behind,
        )

    def health(self) -> ChannelHealth:
        """Return the health of the channel. The owner of the channel must add if the channel is
        open."""
        degraded, reasons = self._health.degraded, self._health.reasons
        problems = [why for name, why in zip(degraded, reasons, strict=True) if name != "store"]
        warnings = [why for name, why in zip(degraded, reasons, strict=True) if name == "store"]
        unwritten = self.engine.unwritten
        if unwritten is not None and unwritten.failure is not None:
            refuses = self.options.on_state_failure == "raise"
            (problems if refuses else warnings).append(f"state: {unwritten.failure}")
        if self._journal is not None and self._journal.gap is not None:
            warnings.append(f"journal: {self._journal.gap.reason}")
        if self._unopened is not None and self._unopened.warning is not None:
            warnings.append(self._unopened.warning)
        if self._signing is not None and self._signing.warning is not None:
            warnings.append(self._signing.warning)
        status, unread = self.sync_status.current(), self._stream.behind
        if unread > self.options.limits.events:
            warnings.append(f"a reader of events() is {unread} events behind")
        if status.different_from:
            lost = ", and no participant can repair that" if status.repair_failed else ""
            names = ", ".join(status.different_from)
            warnings.append(f"the log differs from that of {names}{lost}")
        return ChannelHealth(
            channel_id=self._setup.channel_id,
            sender_id=self._setup.sender_id,
            live=True,
            ready=not problems,
            problems=tuple(problems),
            warnings=tuple(warnings),
            connection=self._health.status,
            topic=self._health.topic,
            sync=status.state,
            missing=status.missing,
            lost=status.lost,
            unacknowledged=len(self.engine.core.unacknowledged),
            waiting_to_be_sent=len(self.engine.outbox),
            oldest_waiting_ms=self.engine.outbox.oldest_ms(self._driver.now_ms()),
            events_unread=unread,
            nodes=self._transport.nodes(),
        )

    def _open_journal(self, now_ms: int, *, goes_on: bool) -> None:
        if self._journal is None:
            return
        from ..config import flat  # most channels keep no journal

        log = self.engine.core.log
        self._journal.opened(
            at_ms=now_ms,
            wanted_from_ms=None if goes_on else self._listen_from_ms,
            log_length=len(log),
            options=flat(self.options),
            has_store=self._asks_store,
        )
        if goes_on:
            self._journal.restored(log, now_ms)

    def _confirm_read(self, event: AnyEvent) -> None:
        if not self._holds(event):
            self._driver.confirm(event)

    def _journal_degraded(self, error: OSError) -> None:
        self._driver.show(JournalDegraded(str(error)), self._driver.now_ms())

    def _fell_behind(self, readers: int, unread: int) -> None:
        self._driver.show(ReaderFellBehind(readers, unread), self._driver.now_ms())

    def _content_tried(self, message_id: str, opened: bool) -> None:
        if self._unopened is None:
            return
        if opened:
            self._unopened.note_opened()
        elif self._unopened.note_content(message_id):
            self._log_unopened()

    def _log_unopened(self) -> None:
        if self._unopened is not None and self._unopened.warning is not None:
            self._log.warn(self._unopened.warning, "unopened")

    def _content(self, message_id: str) -> bytes | None:
        """The payload of a message in the log, if it is whole in one segment."""
        entry = self.engine.core.log.get(message_id)
        return None if entry is None else self.engine.segmentation.whole(entry.content)

    def _whole(self, entry: LogEntry) -> LogEntry:
        content = self.engine.segmentation.whole(entry.content)
        if content is entry.content:
            return entry
        message_id, sender_id, lamport_timestamp, _, retrieval_hint = entry.row
        return LogEntry(message_id, sender_id, lamport_timestamp, content, retrieval_hint)
