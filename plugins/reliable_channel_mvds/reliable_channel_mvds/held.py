"""Messages that a node holds, and the ids of messages that it held before.

A message is held while a peer waits for it. Other messages are held while there is room, because a
peer that lost its state may request them. Of messages that are no longer held, the ids are kept, to
recognize duplicates.
"""

from collections.abc import Callable, Iterator
from typing import Final

from reliable_channel.spi import Recorder, Row, Table

from .message import GroupId, Message, MessageId
from .options import Limits

MESSAGES: Final = Table(
    "mvds_messages",
    (
        ("message_id", "BLOB"),
        ("number", "INTEGER"),
        ("group_id", "BLOB"),
        ("timestamp", "INTEGER"),
        ("body", "BLOB"),
        ("unknown_fields", "BLOB"),
    ),
)
"""Table of messages, in which a row without a group has only an id. The number in a row shows which
of two messages is older."""


class HeldMessages:
    """Held messages and ids, each up to a limit.

    Args:
        limits: numbers and bytes of what is held.
        recorder: gets a row for each message.
        forgotten: is called with the limit and the id of each message that makes room.
    """

    def __init__(
        self, limits: Limits, recorder: Recorder, forgotten: Callable[[str, MessageId], None]
    ) -> None:
        self._limits, self._recorder, self._forgotten = limits, recorder, forgotten
        self._messages: dict[MessageId, Message] = {}
        self._idle: dict[MessageId, None] = {}
        self._remembered: dict[MessageId, None] = {}
        self._number = 0
        self._wanted_bytes = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, message_id: MessageId) -> bool:
        """Return True if a message with this id was here, held whole or not."""
        return message_id in self._messages or message_id in self._remembered

    def get(self, message_id: MessageId) -> Message | None:
        """Return a message that is held whole, or None."""
        return self._messages.get(message_id)

    def of_group(self, group_id: GroupId) -> list[MessageId]:
        """Return the ids of a group's messages that are held whole, the oldest first."""
        return [i for i, message in self._messages.items() if message.group_id == group_id]

    def make_room(self, message: Message) -> str | None:
        """Forget old messages to make room for a new message. If there is no room, `make_room`
        returns the limit that is reached, otherwise None."""
        limits = self._limits
        size = _size(message)
        while len(self._messages) + 1 > limits.messages:
            if not self._forget_one("messages"):
                return "messages"
        while self.size_bytes + size > limits.message_bytes:
            if not self._forget_one("message_bytes"):
                return "message_bytes"
        return None

    def relay_limit(self) -> str | None:
        """Return the limit of which half is used by messages that peers wait for, or None. At half
        of a limit, the node no longer forwards messages of others."""
        if 2 * (len(self._messages) - len(self._idle)) >= self._limits.messages:
            return "messages"
        if 2 * self._wanted_bytes >= self._limits.message_bytes:
            return "message_bytes"
        return None

    def add(self, message_id: MessageId, message: Message) -> None:
        """Hold a message for which there is room. No peer waits for the new message yet."""
        self._messages[message_id] = message
        self._idle[message_id] = None
        self.size_bytes += _size(message)
        self._record(
            message_id, message.group_id, message.timestamp, message.body, message.unknown_fields
        )

    def wanted(self, message_id: MessageId) -> None:
        """Note that a peer waits for a message."""
        if message_id in self._idle:
            del self._idle[message_id]
            self._wanted_bytes += _size(self._messages[message_id])

    def idle(self, message_id: MessageId) -> None:
        """Note that no peer waits for a message any more."""
        if message_id in self._messages and message_id not in self._idle:
            self._idle[message_id] = None
            self._wanted_bytes -= _size(self._messages[message_id])

    def restore(self, rows: Iterator[Row]) -> None:
        """Hold the messages that an earlier process recorded. A restored message is idle until a
        record needs it."""
        for row in sorted(rows, key=_row_number):
            key, number, group_id, timestamp, body, unknown_fields = row
            assert isinstance(key, bytes) and isinstance(number, int)
            message_id = MessageId(key)
            self._number = number + 1
            if group_id is None:
                self._remembered[message_id] = None
                continue
            assert isinstance(group_id, bytes) and isinstance(timestamp, int)
            assert isinstance(body, bytes) and isinstance(unknown_fields, bytes)
            message = Message(GroupId(group_id), timestamp, body, unknown_fields)
            self._messages[message_id] = message
            self._idle[message_id] = None
            self.size_bytes += _size(message)

    def _forget_one(self, limit: str) -> bool:
        """Let the message go that was idle longest; its id stays."""
        if (message_id := next(iter(self._idle), None)) is None:
            return False
        del self._idle[message_id]
        self.size_bytes -= _size(self._messages.pop(message_id))
        self._remembered[message_id] = None
        self._record(message_id, None, None, None, None)
        self._forgotten(limit, message_id)
        if len(self._remembered) > self._limits.remembered_ids:
            oldest = next(iter(self._remembered))
            del self._remembered[oldest]
            self._recorder.delete(MESSAGES, oldest)
            self._forgotten("remembered_ids", oldest)
        return True

    def _record(
        self,
        message_id: MessageId,
        group_id: GroupId | None,
        timestamp: int | None,
        body: bytes | None,
        unknown_fields: bytes | None,
    ) -> None:
        self._recorder.put(
            MESSAGES, message_id, self._number, group_id, timestamp, body, unknown_fields
        )
        self._number += 1


def _size(message: Message) -> int:
    return len(message.body) + len(message.unknown_fields)


def _row_number(row: Row) -> int:
    assert isinstance(row[1], int)
    return row[1]
