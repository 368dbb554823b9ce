"""Wakes tasks that wait at the moment; costs next to nothing where none does."""

import asyncio
from collections import deque
from collections.abc import Awaitable

import anyio


class Notifier:
    """A condition without memory: a notification reaches those that wait, and no later one."""

    def __init__(self) -> None:
        self._waiting: deque[anyio.Event | asyncio.Future[None]] = deque()

    def notify(self) -> None:
        """Wake all that wait."""
        while self._waiting:
            _wake(self._waiting.popleft())

    def notify_one(self) -> None:
        """Wake the one that has waited longest."""
        while self._waiting and not _wake(self._waiting.popleft()):
            pass

    async def wait(self, within_s: float | None = None) -> None:
        """Wait for a notification, no longer than `within_s`."""
        # A message takes half a dozen waits. On asyncio a future is a third of an event, and a
        # timer a fifth of a cancel scope.
        if (loop := asyncio_loop()) is None:
            with anyio.move_on_after(within_s):
                event = anyio.Event()
                await self._until(event, event.wait())
            return
        future: asyncio.Future[None] = loop.create_future()
        timer = None if within_s is None else loop.call_later(within_s, _wake, future)
        try:
            await self._until(future, future)
        finally:
            if timer is not None:
                timer.cancel()

    async def _until(
        self, waiter: anyio.Event | asyncio.Future[None], woken: Awaitable[None]
    ) -> None:
        self._waiting.append(waiter)
        try:
            await woken
        finally:
            if waiter in self._waiting:  # it gave up
                self._waiting.remove(waiter)


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of the current task; None where that is one of trio."""
    try:
        return None if asyncio.current_task() is None else asyncio.get_running_loop()
    except RuntimeError:
        return None


def _wake(waiter: anyio.Event | asyncio.Future[None]) -> bool:
    """Wake a task; False where it was cancelled."""
    if isinstance(waiter, anyio.Event):
        waiter.set()
    elif waiter.done():
        return False
    else:
        waiter.set_result(None)
    return True
