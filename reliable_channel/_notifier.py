"""Wakes tasks that wait at the moment. It costs almost nothing if none waits."""

import asyncio
from collections.abc import Awaitable
from typing import Final

import anyio

FEW: Final = 8
"""Number of waits from which it is worth a look whether some were given up."""


class _TrioFuture:
    """Event of trio with the methods of a future that a notifier needs."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self.wait, self.done = self._event.wait, self._event.is_set

    def set_result(self, result: None) -> None:
        self._event.set()


class Notifier:
    """A condition without memory: a notification reaches the tasks that wait, and no later one."""

    def __init__(self) -> None:
        self.waiting: Final[list[_TrioFuture | asyncio.Future[None]]] = []
        """The tasks that wait, and some that were cancelled; open to read. A channel has dozens of
        these, and a deque takes ten times the memory of a list."""
        self._most = FEW
        """So many may wait until cancelled ones are looked for."""

    def notify(self) -> None:
        """Wake all tasks that wait."""
        for future in self.waiting:
            if not future.done():  # else its task was cancelled
                future.set_result(None)
        self.waiting.clear()

    def notify_one(self) -> None:
        """Wake the task that has waited longest."""
        while self.waiting:
            future = self.waiting.pop(0)
            if not future.done():
                future.set_result(None)
                return

    def wait(self, within_s: float | None = None) -> Awaitable[None]:
        """Wait for a notification, no longer than `within_s`. Await the result at once."""
        # A message takes half a dozen waits. On asyncio a future is a third of an event, and a
        # timer a fifth of a cancel scope.
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        if task is None:  # also in a loop of asyncio that has trio as its guest
            return self._wait_in_trio(within_s)
        waiting, loop = self.waiting, task.get_loop()
        if len(waiting) >= self._most:
            waiting[:] = [each for each in waiting if not each.done()]
            self._most = 2 * len(waiting) + FEW
        future = loop.create_future()
        waiting.append(future)
        return future if within_s is None else self._wait_within(within_s, future, loop)

    async def _wait_within(
        self, within_s: float, future: "asyncio.Future[None]", loop: asyncio.AbstractEventLoop
    ) -> None:
        timer = loop.call_later(within_s, _end, future)
        try:
            await future
        finally:
            timer.cancel()
            if future in self.waiting:  # it was not notified
                self.waiting.remove(future)

    async def _wait_in_trio(self, within_s: float | None) -> None:
        event = _TrioFuture()
        self.waiting.append(event)
        try:
            with anyio.move_on_after(within_s):
                await event.wait()
        finally:
            if event in self.waiting:
                self.waiting.remove(event)


def _end(future: asyncio.Future[None]) -> None:
    """End a wait that took its longest time."""
    if not future.done():
        future.set_result(None)
