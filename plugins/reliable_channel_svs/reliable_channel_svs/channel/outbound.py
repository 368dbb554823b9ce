"""Own messages that no other member is known to have."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reliable_channel.spi import Recorder, Row, Table

from ..name import Name
from ..naming import PublicationName
from .timers import Timers
from .wire import Sync

UNACKNOWLEDGED: Final = Table(
    "svs_unacknowledged", (("message_id", "TEXT"), ("attempts", "INTEGER"))
)


@dataclass(slots=True)
class OwnMessage:
    """Own message that is not acknowledged."""

    place: PublicationName
    name: Name
    attempts: int = 0


class Outbound:
    """Keeps own messages until a member has them or their attempts are used up."""

    def __init__(self, recorder: Recorder, *, limit: int, interval_ms: int, attempts: int) -> None:
        self._recorder, self._interval_ms = recorder, interval_ms
        self.limit, self.max_attempts = limit, attempts
        self.waiting: OrderedDict[str, OwnMessage] = OrderedDict()
        self._timers: Timers[str] = Timers()

    def add(self, message_id: str, place: PublicationName, name: Name, attempts: int = 0) -> None:
        """Note that an own message is being sent."""
        self.waiting[message_id] = OwnMessage(place, name, attempts)
        self._recorder.put(UNACKNOWLEDGED, message_id, attempts)

    def dispatched(self, message_id: str, now_ms: int) -> None:
        """Note that a message was sent, and start the time until its next retry."""
        if (own := self.waiting.get(message_id)) is not None:
            own.attempts += 1
            self._recorder.put(UNACKNOWLEDGED, message_id, own.attempts)
            self._timers.set(message_id, now_ms + self._interval_ms)

    def remove(self, message_id: str) -> OwnMessage | None:
        own = self.waiting.pop(message_id, None)
        if own is not None:
            self._recorder.delete(UNACKNOWLEDGED, message_id)
            self._timers.cancel(message_id)
        return own

    def acknowledged(self, sync: Sync) -> Iterator[str]:
        """Yield the messages that the sender of a state vector newly acknowledges."""
        for message_id, own in list(self.waiting.items()):
            has = sync.received.seq(own.place.node, own.place.bootstrap_time)
            if own.place.seq <= has and own.name not in sync.lacking:
                self.remove(message_id)
                yield message_id

    def due(self, now_ms: int) -> Iterator[str]:
        """Yield the messages that must be sent again or given up."""
        yield from self._timers.take_due(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._timers.next_ms()

    def restore(self, rows: list[Row]) -> Iterator[tuple[str, int]]:
        """Yield the ids and the attempts of recorded messages after a restart."""
        for message_id, attempts in rows:
            assert isinstance(message_id, str) and isinstance(attempts, int)
            yield message_id, attempts
