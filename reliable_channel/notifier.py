"""Wakes tasks that wait at the moment; costs next to nothing where none does."""

from collections import deque

import anyio


class Notifier:
    """A condition without memory: a notification reaches those that wait, and no later one."""

    def __init__(self) -> None:
        self._waiting: deque[anyio.Event] = deque()

    def notify(self) -> None:
        """Wake all that wait."""
        while self._waiting:
            self._waiting.popleft().set()

    def notify_one(self) -> None:
        """Wake the one that has waited longest."""
        if self._waiting:
            self._waiting.popleft().set()

    async def wait(self) -> None:
        """Wait for a notification."""
        event = anyio.Event()
        self._waiting.append(event)
        try:
            await event.wait()
        finally:
            if not event.is_set():
                self._waiting.remove(event)
