"""Driver of a channel's engine, which the tasks of the channel share."""

from collections.abc import Callable, Mapping
from logging import DEBUG
from typing import TYPE_CHECKING, Any, Final

import anyio

from .._notifier import Notifier
from ..engine import driver
from ..engine.engine import Engine
from ..engine.logged import Logged
from ..engine.steps import Wake
from ..engine.sync_core import Arrival
from ..events import AnyEvent
from ..transport.base import Received
from .event_log import LEVELS, LOGGER, EventLog
from .event_stream import EventStream
from .observers import Observers
from .sync_status import SyncStatusWatch

if TYPE_CHECKING:
    from .journal import Journal

FAR_S: Final = 10.0
TICK_S: Final = 0.5
"""Grid of the deadlines that are further away than `FAR_S` (s). The many channels of a process then
wake together, which takes fewer turns of the event loop and fewer packets."""

Notes = Mapping[type, Callable[[Any, int], None]]
"""Functions by type of event. They take the event and its time (ms)."""


class RealTimeDriver(driver.Driver[Received]):
    """Driver that runs an engine in real time. Only the method `run` waits."""

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
        super().__init__(engine, now_ns)
        self.sync_status = SyncStatusWatch(self)
        self.to_send: Final = Notifier()
        self.to_write: Final = Notifier()
        self.to_write_later: Final = Notifier()
        """A step waits that has time."""
        self.to_decrypt: Final = Notifier()
        self.to_fetch: Final = Notifier()
        self.to_catch_up: Final = Notifier()
        """There is something to ask Store for at once."""
        self.notes: Notes = {}
        """Called when readers can get an event. Most events have none, and cost one look-up."""
        self.drained: Final = Notifier()
        """The outbox is empty."""
        self._stream = stream
        self.journal = journal
        self._observers = observers
        self._log = log
        self.wakes |= {
            Wake.SEND: self.to_send.notify_one,
            Wake.WRITE: self.to_write.notify,
            Wake.WRITE_LATER: self.to_write_later.notify,
            Wake.DECRYPT: self.to_decrypt.notify,
            Wake.FETCH: self.to_fetch.notify,
        }
        self._earlier_deadline = Notifier()
        if journal is not None:
            self.note_received = self._journal_received

    def catch_up(self, since_ms: int) -> None:
        """Fetch all messages stored since a time, as soon as Store answers."""
        self.engine.queries.catch_up(since_ms)
        self.to_fetch.notify()
        self.to_catch_up.notify()

    def show(self, event: AnyEvent | Logged, now_ms: int) -> None:
        """Show an event at once to the journal, the observers and the readers. An event about a
        log entry goes only to the journal."""
        if self.journal is not None:
            if isinstance(event, Logged):
                return self.journal.logged(event, now_ms)
            self.journal.event(event, now_ms)
        assert not isinstance(event, Logged)  # only a journal asks for these
        if type(event) in LEVELS or LOGGER.isEnabledFor(DEBUG):
            self._log.event(event)
        if self._observers is not None:
            for failure in self._observers.emit(event, now_ms):
                self.show(failure, now_ms)
        self._stream.emit(event)
        if (note := self.notes.get(type(event))) is not None:
            note(event, now_ms)

    def ring_at(self, due_ms: int, now_ms: int) -> None:
        """Wake the timer task, whose deadline is later."""
        self._earlier_deadline.notify()

    def _journal_received(
        self, data: bytes, arrived: Received, arrival: Arrival, now_ms: int, from_store: bool
    ) -> None:
        assert self.journal is not None
        self.journal.came(data, arrived, arrival.outcome.value, now_ms)

    async def run(self) -> None:
        """Call the engine at its deadlines, until the task is cancelled."""
        while True:
            self.rings_at_ms = self.engine.agenda.next_ms
            wait_ns = self._rings_in_ns()
            if wait_ns is not None and wait_ns <= 0:
                self.turn(self.engine.on_deadline)
                await anyio.lowlevel.checkpoint()
            # A deadline that was put off rings all the same: each message puts off some.
            while wait_ns is None or wait_ns > 0:
                within_s = None if wait_ns is None else wait_ns / 1_000_000_000
                if within_s is not None and within_s > FAR_S:
                    within_s += -(anyio.current_time() + within_s) % TICK_S
                await self._earlier_deadline.wait(within_s)
                wait_ns = self._rings_in_ns()

    def _rings_in_ns(self) -> int | None:
        # In whole nanoseconds: a float of this size can reach the deadline before the clock.
        at_ms = self.rings_at_ms
        return None if at_ms is None else at_ms * 1_000_000 - self.now_ns()
