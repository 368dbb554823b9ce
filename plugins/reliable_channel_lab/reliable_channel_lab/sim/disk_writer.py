"""Writer of an engine's steps to a simulated disk, as `runtime/state_writer.py` writes to a
file."""

from typing import Any

from reliable_channel.engine.steps import WRITE_DELAY_MS, Wake
from reliable_channel.sds.changes import Changes
from reliable_channel.state import StateError

from .driving import SimulatedDriver
from .durability import Disk


class DiskWriter:
    """Writer of steps to the disk, with one write at a time. A write is on disk after half of its
    time. A process that dies in the second half finds the data on disk, although no step was
    released."""

    def __init__(self, driver: SimulatedDriver[Any], disk: Disk) -> None:
        self._driver, self._disk = driver, disk
        self._is_writing = self._is_on_disk = False
        self._wakes_at_ms: int | None = None
        driver.wakes[Wake.WRITE] = driver.wakes[Wake.WRITE_LATER] = self.wake

    def wake(self) -> None:
        """Write the waiting steps, at once if a task waits for them, otherwise a little later."""
        unwritten = self._driver.engine.unwritten
        assert unwritten is not None
        if not self._is_writing:
            self._wake_in(0 if unwritten.is_urgent else WRITE_DELAY_MS)

    def end(self) -> bool:
        """Note that the process dies. If data of released steps is lost, `end` returns True."""
        driver = self._driver
        if self._is_on_disk:
            driver.release(driver.engine.end_write(driver.now_ms(), tried=True))
        return driver.engine.unwritten is not None and driver.engine.unwritten.failure is not None

    def _wake_in(self, in_ms: int) -> None:
        at_ms = self._driver.world.timeline.now_ms + in_ms
        if self._wakes_at_ms is None or at_ms < self._wakes_at_ms:
            self._wakes_at_ms = at_ms
            self._driver.plan(in_ms, self._begin, at_ms)

    def _begin(self, at_ms: int) -> None:
        if at_ms != self._wakes_at_ms:
            return
        self._wakes_at_ms, self._is_writing = None, True
        driver = self._driver
        changes = driver.engine.begin_write(driver.now_ms())
        if changes is None:
            self._end(tried=False)
        elif commit_ms := driver.world.commit_ms:
            driver.plan(commit_ms - commit_ms // 2, self._write, changes, commit_ms // 2)
        else:
            self._write(changes, 0)

    def _write(self, changes: Changes, rest_ms: int) -> None:
        try:
            self._disk.commit(changes)
        except StateError as error:
            self._end(tried=True, failure=error)
            return
        if rest_ms:
            self._is_on_disk = True
            self._driver.plan(rest_ms, self._end)
        else:
            self._end()

    def _end(self, *, tried: bool = True, failure: StateError | None = None) -> None:
        driver = self._driver
        engine, now_ms = driver.engine, driver.now_ms()
        steps = engine.end_write(now_ms, tried=tried, failure=failure)
        self._is_writing = self._is_on_disk = False
        driver.written(steps)
        assert engine.unwritten is not None
        if engine.unwritten:
            self.wake()
        elif (retry_at_ms := engine.unwritten.retry_at_ms) is not None:
            self._wake_in(max(0, retry_at_ms - now_ms))
