"""What the tasks between an engine and its transport share."""

from collections.abc import Callable
from dataclasses import dataclass

from ..engine.backoff import Backoff
from ..transport.base import Transport
from .driver import RealTimeDriver
from .health import Health
from .state_writer import StateWriter


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The place of a task in a channel."""

    driver: RealTimeDriver
    transport: Transport
    health: Health
    writer: StateWriter | None
    random: Callable[[], float]
    """Uniform in [0, 1)."""

    def backoff(self) -> Backoff:
        """A new pause between attempts, which grows."""
        return Backoff(self.random)

    async def writable(self) -> None:
        """Wait while too much waits for the disk."""
        if self.writer is not None:
            await self.writer.writable()
