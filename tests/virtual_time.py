"""Event loops whose clock jumps: a wait of hours takes no time, and no result depends on how fast
the machine is.

Where every task waits, the clock jumps to the next deadline. While a thread is at work (the state
writer, say) it stands still, as in a world in which threads take no time. Where there are sockets,
the kernel has a moment to carry what was sent over loopback before each jump; a server in another
process belongs into real time.
"""

import asyncio
import math
import selectors
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from reliable_channel.runtime.state_writer import StoreThread

STEP_S: Final = 0.001
"""Real time after which it is looked again whether a thread is done."""

CARRYING_S: Final = 0.02
"""Real time in which the kernel carries bytes from one socket to the other."""

OWN_SOCKETS: Final = 1
"""By which signals and threads wake a loop."""

Backend = tuple[str, dict[str, Any]]


def backend(name: str) -> Backend:
    """What anyio's pytest plugin takes for a loop with virtual time."""
    if name == "asyncio":
        return name, {"loop_factory": VirtualLoop}
    return name, {"clock": _virtual_clock()}


def limit_s(within_s: float) -> float:
    """A limit in virtual time; none in real time, where a machine may take as long as it likes."""
    try:
        virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
    except RuntimeError:
        virtual = isinstance(trio.lowlevel.current_clock(), MockClock)
    return within_s if virtual else math.inf


class _Threads:
    """The jobs that threads are at work on."""

    def __init__(self) -> None:
        self._jobs: set[object] = set()

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the jobs of every executor and of every state store, made by then or later."""
        submit, call = ThreadPoolExecutor.submit, StoreThread.call

        def counting(executor: ThreadPoolExecutor, *work: Any, **keywords: Any) -> Future[Any]:
            future = submit(executor, *work, **keywords)
            self._jobs.add(future)
            future.add_done_callback(self._jobs.discard)
            return future

        async def counting_calls(thread: StoreThread, *work: Any) -> Any:
            self._jobs.add(job := object())
            try:
                return await call(thread, *work)
            finally:
                self._jobs.discard(job)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ThreadPoolExecutor, "submit", counting)
            patch.setattr(StoreThread, "call", counting_calls)
            yield


threads = _Threads()


def _virtual_clock() -> MockClock:
    """Trio's. Its class is final."""
    clock = MockClock(autojump_threshold=0)
    jump, has_waited = clock._autojump, False  # noqa: SLF001

    def jump_unless_busy() -> None:
        nonlocal has_waited
        io = trio.lowlevel.current_statistics().io_statistics
        sockets = io.tasks_waiting_read + io.tasks_waiting_write - OWN_SOCKETS
        if threads.busy:
            time.sleep(STEP_S)
        elif sockets > 0 and not has_waited:
            has_waited = True  # and the loop looks at its sockets again
            time.sleep(CARRYING_S)
        else:
            has_waited = False
            jump()

    clock._autojump = jump_unless_busy  # type: ignore[method-assign]  # noqa: SLF001
    return clock


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now_s

    def jump(self, seconds: float) -> None:
        self._now_s += seconds

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for its threads, which take real time; since Python 3.12 there is a limit of 300 s,
        which would be over at once here."""
        await super().shutdown_default_executor()


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        sockets = len(self.get_map()) - OWN_SOCKETS
        patience_s = STEP_S if threads.busy else CARRYING_S if sockets > 0 else 0
        if ready := super().select(patience_s):
            return ready
        if not threads.busy:
            self._loop.jump(timeout)
        return []
