"""The way in: from what arrived, live or from Store, to the core."""

from ..sds import Arrival, Outcome
from ..transport.base import Received
from .engine import Engine
from .stages import Foreign, Parcel, Stages


class Intake:
    """Opens what arrives and hands it to the core."""

    def __init__(self, engine: Engine, stages: Stages) -> None:
        self._engine = engine
        self._stages = stages

    async def take(self, received: Received) -> Arrival:
        """Take one message. Equal hashes are equal bytes: what was handled has nothing new to
        say."""
        if self._engine.was_handled(received.message_hash):
            self._engine.counters.repeated += 1
            return Arrival(Outcome.DUPLICATE)
        try:
            parcel = await self._stages.inward(Parcel(received.payload, received.meta))
        except Foreign:
            self._engine.counters.foreign += 1
            # Not remembered: a key that opens it may yet come (rotation), and Store give it again.
            return Arrival(Outcome.REJECTED)
        return self._engine.receive(parcel.payload, received)
