"""Writes each step of a channel to its state store before anything of the step is let out.

Steps that end while a write is under way are written together in the next one. What is let out,
events and messages for the transport, keeps the order of the steps. A step that may be refused, as
that of an accepted message, is refused rather than let out where it could not be written.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar, TypeVarTuple, Unpack

import anyio
from anyio import from_thread

from ..events import StateDegraded, StateRecovered
from ..sds.changes import Changes
from ..state import ArchiveOverlay, Identity, Saved, StateError, StateStore
from .backoff import Backoff

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEPS_WAITING: Final = 2_000
"""Steps that may wait for the disk before receiving waits for it, too."""
ENTRIES_AT_RISK: Final = 200_000
"""Log entries that are kept for a disk that may come back; the oldest are given up beyond."""


@dataclass(frozen=True, slots=True)
class _Step:
    changes: Changes
    release: Callable[[], None]
    refuse: Callable[[StateError], None] | None


class StateKeeper:
    """Owns a state store and the one thread that uses it.

    A store that cannot be written to does not stop the channel: it goes on in memory, says so, and
    what was not written is tried again.
    """

    tell: Callable[[StateDegraded | StateRecovered], None]
    """Set by whoever owns the channel, before the first step."""

    def __init__(self, store: StateStore, now_ms: Callable[[], int], backoff: Backoff) -> None:
        self._store = store
        self._now_ms = now_ms
        self._backoff = backoff
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reliable_channel.state")
        self._waiting: deque[_Step] = deque()
        self._unwritten = Changes()
        self._archive: ArchiveOverlay | None = None
        self._submitted = 0
        self._released = 0
        self._came = anyio.Event()
        self._went = anyio.Event()
        self._degraded_since_ms: int | None = None
        self._retry_at_ms: int | None = None
        self._told_reading = False
        self._last_failure: StateError | None = None
        self._refused_through = 0
        """Later steps may refer to a refused one, so those that waited then are refused with it."""
        self.failure: StateError | None = None
        """Why the store cannot be written at the moment."""
        self.given_up = 0
        """Log entries that were never written, and no longer will be."""

    async def open(self, identity: Identity) -> tuple[Saved, ArchiveOverlay]:
        """Open the store.

        Raises:
            StateError: it cannot be used.
        """
        try:
            saved = await self._in_thread(self._store.open, identity)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        self._archive = ArchiveOverlay(self._store.archive())
        return saved, self._archive

    @property
    def at_risk(self) -> int:
        """Messages and rows that the store does not have."""
        return len(self._unwritten.entries) + len(self._unwritten.rows)

    def submit(
        self,
        changes: Changes,
        release: Callable[[], None],
        refuse: Callable[[StateError], None] | None = None,
    ) -> None:
        """Have a step written, then `release` called; or `refuse`, where there is one and the step
        could not be written."""
        self._submitted += 1
        if not changes and not self._waiting and self._released == self._submitted - 1:
            self._released += 1
            release()
            return
        assert self._archive is not None
        self._archive.add(changes)
        self._waiting.append(_Step(changes, release, refuse))
        self._came.set()

    async def written(self) -> None:
        """Wait until all that was submitted so far is written, or known to be at risk."""
        until = self._submitted
        while self._released < until:
            if self._went.is_set():
                self._went = anyio.Event()
            await self._went.wait()

    async def writable(self) -> None:
        """Wait while too much waits for the disk."""
        while len(self._waiting) > STEPS_WAITING:
            await self.written()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._wait()
            await self.flush()

    async def flush(self, *, at_once: bool = False) -> None:
        """Write what waits, and let it out; `at_once` even while a failing store is let rest."""
        steps = len(self._waiting)
        for step in self._waiting:
            self._unwritten.add(step.changes)
        if self._unwritten and not self._is_resting(at_once):
            await self._write()
        self._check_reading()
        for _ in range(steps):
            self._finish(self._waiting.popleft())
        self._went.set()

    def _finish(self, step: _Step) -> None:
        self._released += 1
        failure = self.failure or self._last_failure
        is_written = self.failure is None and self._released > self._refused_through
        if is_written or step.refuse is None or failure is None:
            step.release()
        else:
            step.refuse(failure)

    async def aclose(self) -> None:
        """Close the store; what is still at risk by then is lost."""
        assert self._archive is not None
        self._archive.close()
        await self._in_thread(self._store.close)
        self._thread.shutdown(wait=False)

    async def _wait(self) -> None:
        if self._waiting:
            await anyio.lowlevel.checkpoint()
            return
        self._came = anyio.Event()
        wait_s = None
        if self._retry_at_ms is not None:
            wait_s = max(0, self._retry_at_ms - self._now_ms()) / 1000
        with anyio.move_on_after(wait_s):
            await self._came.wait()

    def _is_resting(self, at_once: bool) -> bool:
        if self._degraded_since_ms is None:
            return False
        if self._retry_at_ms is None:
            return True
        return not at_once and self._now_ms() < self._retry_at_ms

    async def _write(self) -> None:
        changes, self._unwritten = self._unwritten, Changes()
        try:
            await self._in_thread(self._store.write, changes)
        except StateError as error:
            changes.add(self._unwritten)
            self._unwritten = changes
            self._failed(error)
            return
        assert self._archive is not None
        self._archive.remove(changes)
        if self._degraded_since_ms is not None:
            self.tell(StateRecovered(self._now_ms() - self._degraded_since_ms, self.given_up))
            self._degraded_since_ms = self._retry_at_ms = self.failure = None
        self._backoff.reset()

    def _check_reading(self) -> None:
        """Tell of look-ups that failed: what they did not find may be delivered again."""
        assert self._archive is not None
        if (error := self._archive.failure) is not None and not self._told_reading:
            self._told_reading = True
            self.tell(StateDegraded(str(error), self.at_risk, error.retryable))

    def _failed(self, error: StateError) -> None:
        assert self._archive is not None
        self.failure = self._last_failure = error
        self._refused_through = self._submitted
        entries = self._unwritten.entries
        while len(entries) > ENTRIES_AT_RISK:
            oldest = next(iter(entries))
            del entries[oldest]
            self._archive.give_up(oldest)
            self.given_up += 1
        now_ms = self._now_ms()
        if self._degraded_since_ms is None:
            self._degraded_since_ms = now_ms
            self.tell(StateDegraded(str(error), self.at_risk, error.retryable))
        # A damaged file does not mend itself: nothing more is written to it.
        self._retry_at_ms = now_ms + int(self._backoff.next_s() * 1000) if error.retryable else None

    async def _in_thread(self, call: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call in the store's thread; whoever waits is not let go before it is done."""
        if not self._store.blocking:
            return call(*arguments)
        done, token = anyio.Event(), anyio.lowlevel.current_token()

        def work() -> T:
            try:
                return call(*arguments)
            finally:
                from_thread.run_sync(done.set, token=token)

        future = self._thread.submit(work)
        with anyio.CancelScope(shield=True):
            await done.wait()
        return future.result()
