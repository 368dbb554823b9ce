"""Event loop whose time passes only when nothing is left to do. An hour of sleep in the virtual
loop takes no real time.

The loop is only for programs without I/O, because its time would not wait for a socket.
"""

import asyncio
import selectors
from typing import Any


class NothingWillHappen(RuntimeError):
    """Error that every task waits for another task, and no timer is left."""


class _Jumping(selectors.DefaultSelector):
    """Takes what is there, and otherwise jumps instead of waiting."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found and timeout is None:
            raise NothingWillHappen("all tasks wait, and no timer is due")
        if not found and timeout is not None and timeout > 0:
            self.now_s += timeout
        return found


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Event loop of asyncio with virtual time, which begins at 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


async def over(task: "asyncio.Task[None]") -> None:
    """Wait for the end of a task, even if the task fails."""
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def ended(task: "asyncio.Task[None]") -> None:
    """Wait for the end of a task, and raise its error."""
    try:
        await task
    except asyncio.CancelledError:
        return
