"""Objects that the tasks between an engine and its transport share."""

from collections.abc import Callable
from dataclasses import dataclass

from ..engine.backoff import Backoff
from ..transport.base import Transport
from .driver import RealTimeDriver
from .health import Health
from .state_writer import StateWriter


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Driver, transport, health and state writer of a channel, as its tasks use them."""

    driver: RealTimeDriver
    transport: Transport
    health: Health
    writer: StateWriter | None
    random: Callable[[], float]
    """Function that returns a uniform random number in [0, 1)."""

    def backoff(self) -> Backoff:
        """Return a new backoff for the pauses between attempts."""
        return Backoff(self.random)
