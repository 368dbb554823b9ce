"""The one owner of an engine: ends its steps, emits what is due, and keeps its time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import anyio

from .._notifier import Notifier
from ..engine.engine import Engine
from ..engine.logged import Logged
from ..engine.outbox import Item
from ..engine.steps import Step
from ..engine.sync_core import Arrival
from ..events import Event
from ..transport.base import Envelope, Received, Source
from .event_log import EventLog
from .event_stream import EventStream
from .observers import Observers
from .sync_status import SyncStatusWatch

if TYPE_CHECKING:
    from .journal import Journal


class Driver:
    """What the tasks of a channel share. No method but `run` waits, so that a step is whole between
    two awaits of any task."""

    def __init__(
        self,
        engine: Engine,
        stream: EventStream,
        now_ns: Callable[[], int],
        *,
        journal: "Journal | None",
        observers: Observers | None,
        log: EventLog,
    ) -> None:
        self.engine = engine
        self.now_ns = now_ns
        self.sync_status = SyncStatusWatch(engine.core)
        self.to_send: Final = Notifier()
        """Messages wait for the transport."""
        self.to_write: Final = Notifier()
        """Steps wait for the state writer."""
        self.to_open: Final = Notifier()
        """Delivered contents wait to be decrypted."""
        self.to_fetch: Final = Notifier()
        """There is something to ask Store for."""
        self.to_catch_up: Final = Notifier()
        """There is, and it does not wait until what was asked for last is looked for again."""
        self.notice: Callable[[Event, int], None] = lambda event, now_ms: None
        """Called with each event and the time (ms) after its readers can get it."""
        self.drained: Final = Notifier()
        """The outbox is empty."""
        self._stream = stream
        self._journal = journal
        self._observers = observers
        self._log = log
        self._earlier_deadline = Notifier()
        self._rings_at_ms: int | None = None

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds."""
        return self.now_ns() // 1_000_000

    def finish(self, now_ms: int | None = None) -> None:
        """End a step of the engine."""
        engine = self.engine
        if now_ms is None:
            now_ms = self.now_ms()
        if steps := engine.end_step(now_ms):
            self.release(steps, now_ms)
        if engine.unwritten and engine.unwritten.wakes_writer:
            self.to_write.notify()
        if engine.to_decrypt:
            self.to_open.notify()
        if engine.core.is_missing_something:
            self.to_fetch.notify()
        self.sync_status.notify()
        due_ms = engine.next_deadline_ms()
        if due_ms is not None and (self._rings_at_ms is None or due_ms < self._rings_at_ms):
            self._rings_at_ms = due_ms
            self._earlier_deadline.notify()

    def received(self, data: bytes, received: Received) -> Arrival:
        """Hand the engine a message that arrived, decrypted."""
        now_ms, from_store = self.now_ms(), received.source is Source.STORE
        arrival = self.engine.receive(
            data,
            now_ms,
            message_hash=received.message_hash,
            timestamp_ns=received.timestamp_ns,
            from_store=from_store,
        )
        if self._journal is not None:
            self._journal.came(data, received, arrival.outcome.value, now_ms)
        self.finish(now_ms)
        return arrival

    def published(self, item: Item, envelope: Envelope) -> None:
        """Note that the transport took a message."""
        now_ms, outgoing = self.now_ms(), item.outgoing
        if self._journal is not None:
            self._journal.went(outgoing.data, envelope, outgoing.kind.value, now_ms)
        self.engine.dispatched(item, envelope.message_hash, envelope.timestamp_ns, now_ms)
        self.finish(now_ms)

    def catch_up(self, since_ms: int) -> None:
        """Fetch all that was stored since then, as soon as Store answers."""
        self.engine.queries.catch_up(since_ms)
        self.to_fetch.notify()
        self.to_catch_up.notify()

    def emit(self, event: Event) -> None:
        """Emit an event of the runtime's own, after those that wait to be written."""
        self.engine.emit(event)
        self.finish()

    def release(self, steps: Sequence[Step], now_ms: int) -> None:
        """Emit the events of steps, and have their messages sent."""
        for step in steps:
            for event in step.events:
                if isinstance(event, Logged):
                    assert self._journal is not None
                    self._journal.logged(event, now_ms)
                else:
                    self.emit_now(event, now_ms)
            if step.outgoing:
                self.to_send.notify_one()

    def emit_now(self, event: Event, now_ms: int) -> None:
        """Show an event to the journal, the observers and the readers, at once."""
        if self._journal is not None:
            self._journal.event(event, now_ms)
        self._log.event(event)
        if self._observers is not None:
            for failure in self._observers.emit(event, now_ms):
                self.emit_now(failure, now_ms)
        self._stream.emit(event)
        self.notice(event, now_ms)

    async def run(self) -> None:
        """Call the engine at its deadlines, for ever."""
        while True:
            self._rings_at_ms = self.engine.next_deadline_ms()
            if (wait_ns := self._rings_in_ns()) is not None and wait_ns <= 0:
                self.engine.on_deadline(self.now_ms())
                self.finish()
                await anyio.lowlevel.checkpoint()
            else:
                await self._until_it_rings()

    async def _until_it_rings(self) -> None:
        """Wait for the deadline, or for an earlier one that came up meanwhile.

        A deadline that was put off rings all the same: each message puts off some.
        """
        while (wait_ns := self._rings_in_ns()) is None or wait_ns > 0:
            within_s = None if wait_ns is None else wait_ns / 1_000_000_000
            await self._earlier_deadline.wait(within_s)

    def _rings_in_ns(self) -> int | None:
        # In whole nanoseconds: a float of this size can reach the deadline before the clock.
        at_ms = self._rings_at_ms
        return None if at_ms is None else at_ms * 1_000_000 - self.now_ns()
