"""Event loops whose clock jumps: a wait of hours takes no time, and no result depends on how fast
the machine is.

Where every task waits, the clock jumps to the next deadline. While a thread is at work (the state
writer, say) it stands still, as in a world in which threads take no time. Real sockets have what
was sent over loopback at once; what needs longer belongs into real time.
"""

import asyncio
import selectors
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import pytest
from trio.testing import MockClock

STEP_S: Final = 0.001
"""Real time after which it is looked again whether a thread is done."""

Backend = tuple[str, dict[str, Any]]


def backend(name: str) -> Backend:
    """What anyio's pytest plugin takes for a loop with virtual time."""
    if name == "asyncio":
        return name, {"loop_factory": VirtualLoop}
    return name, {"clock": _virtual_clock()}


class _Threads:
    """The jobs that threads are at work on."""

    def __init__(self) -> None:
        self._jobs: set[Future[Any]] = set()

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the jobs of every executor made by then or later."""
        submit = ThreadPoolExecutor.submit

        def counting(executor: ThreadPoolExecutor, *work: Any, **keywords: Any) -> Future[Any]:
            future = submit(executor, *work, **keywords)
            self._jobs.add(future)
            future.add_done_callback(self._jobs.discard)
            return future

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ThreadPoolExecutor, "submit", counting)
            yield


threads = _Threads()


def _virtual_clock() -> MockClock:
    """Trio's. Its class is final."""
    clock = MockClock(autojump_threshold=0)
    jump = clock._autojump

    def jump_unless_busy() -> None:
        if threads.busy:
            time.sleep(STEP_S)
        else:
            jump()

    clock._autojump = jump_unless_busy  # type: ignore[method-assign]
    return clock


class VirtualLoop(asyncio.SelectorEventLoop):
    """Asyncio's."""

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now_s

    def jump(self, seconds: float) -> None:
        """Let time go by."""
        self._now_s += seconds


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if ready := super().select(STEP_S if threads.busy else 0):
            return ready
        if not threads.busy:
            self._loop.jump(timeout)
        return []
