"""What answers to repair requests are made of."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from .changes import NO_RECORDER, Recorder, Row, Table

REPAIR_CACHE: Final = Table(
    "repair_cache", (("message_id", "TEXT"), ("number", "INTEGER"), ("data", "BLOB"))
)


class RepairCache:
    """The newest messages as they were on the wire, to answer requests with; bounded by bytes.

    Args:
        evicted: called with the id of each message that leaves.
    """

    def __init__(
        self,
        limit_bytes: int,
        recorder: Recorder = NO_RECORDER,
        evicted: Callable[[str], object] = lambda message_id: None,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._recorder = recorder
        self._evicted = evicted
        # Not a dict: taking the first key of one is linear in the keys deleted before it.
        self._messages: OrderedDict[str, bytes] = OrderedDict()
        self._recorded: set[str] = set()
        self._number = 0
        self.size_bytes = 0

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages

    def add(self, message_id: str, data: bytes, *, durably: bool = False) -> bool:
        """Keep a message, beyond a restart where `durably`; the oldest ones make room.

        Return whether it is kept and was not there yet.
        """
        if len(data) > self._limit_bytes or message_id in self._messages:
            return False
        self._messages[message_id] = data
        self.size_bytes += len(data)
        if durably:
            self._number += 1
            self._recorded.add(message_id)
            self._recorder.put(REPAIR_CACHE, message_id, self._number, data)
        while self.size_bytes > self._limit_bytes:
            self.discard(next(iter(self._messages)))
        return True

    def discard(self, message_id: str) -> None:
        """Let go of a message."""
        self.size_bytes -= len(self._messages.pop(message_id, b""))
        if message_id in self._recorded:
            self._recorded.remove(message_id)
            self._recorder.delete(REPAIR_CACHE, message_id)
        self._evicted(message_id)

    def get(self, message_id: str) -> bytes | None:
        """The bytes of a message, or None where they had to make room."""
        return self._messages.get(message_id)

    def restore(self, rows: Iterable[Row]) -> None:
        """Begin with what was kept before a restart."""
        for message_id, number, data in sorted(rows, key=lambda row: int(row[1] or 0)):
            assert isinstance(message_id, str) and isinstance(number, int)
            assert isinstance(data, bytes)
            self._recorded.add(message_id)
            self.add(message_id, data)
            self._number = number
