"""Process of a simulated participant, with an engine and its tasks."""

from collections.abc import Callable
from typing import Generic

from reliable_channel.engine.engine import is_restart
from reliable_channel.engine.requests import Accepted
from reliable_channel.events import AnyEvent
from reliable_channel.state import Saved

from .disk_writer import DiskWriter
from .driving import SimulatedDriver
from .durability import Disk
from .network import Packet
from .publishing import Publisher
from .searching import Searcher
from .world import C


class Process(Generic[C]):
    """Process in the simulation, which corresponds to `runtime/runtime.py`. `end` can kill the
    process at any moment."""

    def __init__(self, driver: SimulatedDriver[C], disk: Disk | None) -> None:
        self.driver = driver
        self._publisher = Publisher(driver)
        store = driver.world.store
        self._searcher = None if store is None else Searcher(driver, store)
        self._writer = None if disk is None else DiskWriter(driver, disk)

    def begin(self, saved: Saved | None, begin: Callable[[], None]) -> None:
        """Start the process from the saved state, or without a state. `begin` is called before the
        first step is released."""
        driver = self.driver
        engine, now_ms = driver.engine, driver.now_ms()
        listen_from_ms = engine.begin(saved, now_ms)
        begin()
        if driver.journal is not None:
            goes_on = saved is not None and is_restart(saved)
            driver.journal.opened(driver.core, None if goes_on else listen_from_ms, now_ms)
        driver.finish()
        if saved is not None:
            for step in engine.redeliver(now_ms):
                driver.end(step, now_ms)
            driver.when_written(driver.watch.repeated)
        self.catch_up(listen_from_ms)

    def end(self) -> bool:
        """End the process of the participant. If data of released steps is lost, `end` returns
        True."""
        self.driver.is_over = True
        if self.driver.journal is not None:
            self.driver.journal.ended()
        return self._writer is not None and self._writer.end()

    def send(self, payload: bytes, key: str | None, answer: Callable[[Accepted], None]) -> None:
        """Send a message of the application. `answer` is called when the message is on disk or was
        refused.

        Raises:
            StateError: it cannot be written.
        """
        driver, engine = self.driver, self.driver.engine
        accepted = None if key is None else engine.accepted_before(key)
        if accepted is None:
            segments = engine.split(payload)
            accepted = driver.send(payload, segments, key)
        driver.when_written(self._answer, answer, accepted)

    def confirm(self, event: AnyEvent) -> None:
        """Note that the application has handled an event."""
        self.driver.confirm(event)

    def hear(self, arrived: Packet) -> None:
        """Receive a message from the network."""
        driver, engine = self.driver, self.driver.engine
        engine.confirmation.came_live(arrived.message_hash, driver.take(arrived))
        engine.listened(driver.now_ms())

    def catch_up(self, since_ms: int) -> None:
        """Fetch all messages that Store has received since the given time."""
        if self._searcher is not None:
            self.driver.engine.queries.catch_up(since_ms)
            self._searcher.wake()

    def close_journal(self) -> None:
        """Write into the journal that the process ends regularly."""
        if self.driver.journal is not None:
            self.driver.journal.ended(self.driver.now_ms())

    @property
    def is_behind(self) -> bool:
        """True if some data of the process is not on disk yet."""
        return bool(self.driver.engine.unwritten)

    @property
    def is_searching(self) -> bool:
        """True if a Store query for missing messages is running."""
        return self._searcher is not None and self._searcher.is_busy

    def _answer(self, answer: Callable[[Accepted], None], accepted: Accepted) -> None:
        if accepted.failure is None:
            self.driver.watch.answered(accepted)
        answer(accepted)
