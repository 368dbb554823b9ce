"""Wakes tasks that wait at the moment; costs next to nothing where none does."""

import asyncio
from collections import deque

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

    async def wait(self) -> None:
        """Wait for a notification."""
        # A message takes half a dozen waits. On asyncio a future is a third of an event.
        loop = asyncio_loop()
        waiter = anyio.Event() if loop is None else loop.create_future()
        self._waiting.append(waiter)
        try:
            await (waiter.wait() if isinstance(waiter, anyio.Event) else waiter)
        except BaseException:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            raise


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
