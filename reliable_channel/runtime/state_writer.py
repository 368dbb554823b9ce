"""Writer of a channel's steps into its saved state. The writer uses a thread of the store, unless
writes of the store do not block."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar, TypeVarTuple, Unpack

import anyio

from .._contracts.state_store import Identity, QuickStateStore, Saved, StateStore
from .._notifier import Notifier
from ..engine.archive_overlay import ArchiveOverlay
from ..engine.steps import WRITE_DELAY_MS
from ..errors import StateError
from ..sds.changes import Changes
from .driver import RealTimeDriver

SLOW_NS: Final = 50_000_000

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class StoreThread:
    """Thread that uses a state store alone."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._calls: SimpleQueue[_Work[Any] | None] = SimpleQueue()
        if store.blocking:
            # Not waited for at the end of the process: a channel that is open then has crashed.
            name = "reliable_channel.state"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    async def call(self, call: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call a function in the thread of the store. A cancelled caller waits until the function
        has returned."""
        if not self._store.blocking:
            return call(*arguments)
        work = _Work(partial(call, *arguments))
        self._calls.put(work)
        with anyio.CancelScope(shield=True):
            await work.done()
        return work.outcome()

    def end(self) -> None:
        """Refuse further calls in the thread of the store."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (work := self._calls.get()) is not None:
            work.run()


class _Work(Generic[T]):
    """A call that a thread makes for a task."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._call_in_loop = _caller_into_loop()
        self._done = Notifier()
        self._returned: list[T] = []
        self._raised: BaseException | None = None

    def run(self) -> None:
        """Make the call, in the thread."""
        try:
            self._returned.append(self._call())
        except BaseException as error:
            self._raised = error
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
            self._call_in_loop(self._done.notify)

    async def done(self) -> None:
        """Wait for the end of the call."""
        while not self._returned and self._raised is None:
            await self._done.wait()

    def outcome(self) -> T:
        """Return or raise what the call did."""
        if self._raised is not None:
            raise self._raised
        return self._returned[0]


@dataclass(frozen=True, slots=True)
class OpenState:
    """Open state store, with its contents at opening."""

    store: StateStore
    thread: StoreThread
    saved: Saved
    archive: ArchiveOverlay


@asynccontextmanager
async def open_state(store: StateStore, identity: Identity) -> AsyncIterator[OpenState]:
    """Open a state store until the end of the `async with` block.

    Raises:
        StateError: it cannot be used.
    """
    thread = StoreThread(store)
    try:
        saved = await thread.call(store.open, identity)
    except BaseException:
        thread.end()
        raise
    archive = ArchiveOverlay(store.archive())
    try:
        yield OpenState(store, thread, saved, archive)
    finally:
        archive.close()
        await thread.call(store.close)
        thread.end()


class StateWriter:
    """Writer of steps, which releases each step after it is written. Data that cannot be written
    before the end is lost."""

    def __init__(self, driver: RealTimeDriver, state: OpenState) -> None:
        assert driver.engine.unwritten is not None
        self._driver = driver
        self._steps = driver.engine.unwritten
        self._state = state
        self._progressed = Notifier()
        self._is_unfinished = False
        self._was_slow = False
        """True if the last write failed, or took longer than `SLOW_NS`: then the next one may."""
        self._quick_store = state.store if isinstance(state.store, QuickStateStore) else None

    async def written(self) -> None:
        """Wait until all accepted messages are written, or the write has failed. After a failed
        write, wait for one turn of the event loop."""
        steps, until = self._steps, self._steps.submitted
        self._hurry(until)
        await anyio.lowlevel.checkpoint()  # a quick write needs one turn
        while steps.ended < until:
            self._hurry(until)
            await self._progressed.wait()

    def _hurry(self, until: int) -> None:
        """Write soon what is waited for."""
        if self._steps.ended < until and self._steps and not self._steps.is_urgent:
            self._steps.is_urgent = True
            self._driver.to_write.notify()

    async def writable(self) -> None:
        """Wait while too many steps wait for the disk."""
        while self._steps.is_full:
            await self.written()

    async def run(self) -> None:
        """Write waiting steps until the task is cancelled."""
        while True:
            if self._steps.is_urgent:
                await anyio.lowlevel.checkpoint()
            else:
                await self._wait()
            await self.flush()

    async def keep_time(self) -> None:
        """Let steps that have time wait a little, for company, until the task is cancelled."""
        # Its own task, because a timer for each of these steps would cost more than their rows.
        while True:
            if not self._steps:
                await self._driver.to_write_later.wait()
            await anyio.sleep(WRITE_DELAY_MS / 1000)
            self._hurry(self._steps.submitted)

    async def flush(self, *, at_once: bool = False) -> None:
        """Write all waiting steps, and release them. With `at_once`, write even in the pause after
        a failed write.

        After an interrupted write, by a signal or a cancellation without AnyIO, the call does
        nothing. The next start of the channel shows if the interrupted write succeeded, as after a
        crash.
        """
        if self._is_unfinished:
            return
        self._is_unfinished = True
        driver, engine, failure = self._driver, self._driver.engine, None
        began_ns = driver.now_ns()
        changes = engine.begin_write(began_ns // 1_000_000, at_once=at_once)
        if changes is not None:
            was_slow, self._was_slow = self._was_slow, True
            try:
                await self._write(changes, may_be_slow=was_slow)
            except StateError as error:
                failure = error
        ended_ns = driver.now_ns()
        if changes is not None and failure is None:
            self._was_slow = ended_ns - began_ns > SLOW_NS
        now_ms = ended_ns // 1_000_000
        due = engine.end_write(now_ms, tried=changes is not None, failure=failure)
        self._is_unfinished = False
        for step in due:
            driver.end(step, now_ms)
        self._progressed.notify()

    async def _write(self, changes: Changes, *, may_be_slow: bool) -> None:
        """Write in the thread, or at once where that is quick and the last write was, too."""
        quick_store = None if may_be_slow else self._quick_store
        if quick_store is not None and quick_store.is_quick(changes):
            quick_store.write(changes)
        else:
            await self._state.thread.call(self._state.store.write, changes)

    async def _wait(self) -> None:
        """Wait for an urgent step, or for the next attempt after a failed write."""
        driver, retry_at_ms = self._driver, self._steps.retry_at_ms
        if self._steps:  # they came during the write
            driver.to_write_later.notify()
        await driver.to_write.wait(
            None if retry_at_ms is None else max(0, retry_at_ms - driver.now_ms()) / 1000
        )


def _caller_into_loop() -> Callable[[Callable[[], object]], object]:
    """What another thread calls to have this event loop call something, without waiting for it."""
    loop: Any = anyio.lowlevel.current_token().native_token
    in_loop: Callable[[Callable[[], object]], object]
    in_loop = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon  # else trio
    return in_loop
