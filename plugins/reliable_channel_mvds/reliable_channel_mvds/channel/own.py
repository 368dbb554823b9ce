"""Own messages without an acknowledgement, and the times at which this participant announces
itself."""

from collections.abc import Iterable
from typing import Final

from reliable_channel.spi import Recorder, Row, Table

OWN: Final = Table("mvds_own", (("message_id", "TEXT"), ("dispatched", "INTEGER")))
FIRST_HELLO_INTERVAL_MS: Final = 5_000
LONGEST_HELLO_INTERVAL_MS: Final = 300_000


class OwnMessages:
    """Own messages without an acknowledgement, each with the number of its early repetitions."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.resent: dict[str, int] = {}
        self._undispatched: dict[str, None] = {}

    def add(self, message_id: str) -> None:
        self.resent[message_id] = 0
        self._undispatched[message_id] = None
        self._recorder.put(OWN, message_id, 0)

    def dispatched(self, message_id: str) -> None:
        if message_id in self._undispatched:
            del self._undispatched[message_id]
            self._recorder.put(OWN, message_id, 1)

    def settle(self, message_id: str) -> bool:
        """Note that a message is acknowledged or given up. If the message was waiting, `settle`
        returns True."""
        if self.resent.pop(message_id, None) is None:
            return False
        self._undispatched.pop(message_id, None)
        self._recorder.delete(OWN, message_id)
        return True

    def restore(self, rows: Iterable[Row]) -> list[str]:
        """Begin with the own messages that an earlier process recorded. `restore` returns the ids
        of messages that were never sent."""
        for message_id, dispatched in rows:
            assert isinstance(message_id, str)
            self.resent[message_id] = 0
            if not dispatched:
                self._undispatched[message_id] = None
        return list(self._undispatched)


class Hello:
    """Times of "I am here" messages, at the start and, while no other participant is known,
    repeatedly."""

    def __init__(self, now_ms: int) -> None:
        self.due_ms: int | None = now_ms
        self._interval_ms = FIRST_HELLO_INTERVAL_MS

    def said(self, now_ms: int, *, alone: bool) -> None:
        self.due_ms = now_ms + self._interval_ms if alone else None
        self._interval_ms = min(2 * self._interval_ms, LONGEST_HELLO_INTERVAL_MS)

    def heard_somebody(self) -> None:
        self._interval_ms = FIRST_HELLO_INTERVAL_MS

    def alone(self, now_ms: int) -> None:
        """Note that no other participant is known any more."""
        self.due_ms = now_ms + self._interval_ms
