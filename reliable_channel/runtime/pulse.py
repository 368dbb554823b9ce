"""Wakes whoever waits at the moment, and costs nothing where nobody does."""

import anyio


class Pulse:
    """An event that is over as soon as it has happened."""

    def __init__(self) -> None:
        self._waited_for: anyio.Event | None = None

    def fire(self) -> None:
        """Wake all who wait now."""
        if self._waited_for is not None:
            self._waited_for.set()
            self._waited_for = None

    async def wait(self) -> None:
        """Wait for the next time."""
        if self._waited_for is None:
            self._waited_for = anyio.Event()
        await self._waited_for.wait()
