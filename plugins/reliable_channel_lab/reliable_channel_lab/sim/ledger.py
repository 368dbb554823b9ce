"""True state of a simulated group, with all messages, their references, and their receivers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import NoReturn

from reliable_channel.sds import Message

from .sometimes import Reached

Fail = Callable[[str, str, str], NoReturn]
"""Function that reports a broken promise, with its name, the message and the event."""


class InvariantViolated(Exception):
    def __init__(
        self, invariant: str, participant: str, at_ms: int, message_id: str, detail: str
    ) -> None:
        super().__init__(invariant, participant, at_ms, message_id, detail)
        self.invariant = invariant
        self.participant = participant
        self.at_ms = at_ms
        self.message_id = message_id
        self.detail = detail

    def __str__(self) -> str:
        about = f" about {self.message_id}" if self.message_id else ""
        return f"{self.invariant}: {self.participant} at {self.at_ms} ms{about}: {self.detail}"


@dataclass(slots=True)
class Record:
    """Message as it was first broadcast."""

    message_id: str
    sender_id: str
    lamport_timestamp: int
    content: bytes
    dependencies: frozenset[str]
    token: int
    """Random number of the message. The XOR of the numbers of several messages identifies the set
    of these messages."""
    holders: int = 0
    """Participants except the sender that have the message now, as the bits of a number."""
    sender_knew: int | None = None
    """Messages that the sender knew when it sent this message (`Watch.knowledge`)."""
    received: bool = False
    """True if a participant other than the sender has ever had the message."""


class Ledger:
    """Messages of the whole group, by message id and content. A message with a forged id counts as
    a separate message."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.reached = Reached()
        """The situations that the group came to."""
        self._records: dict[tuple[str, bytes], Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def enter(self, message: Message) -> Record | None:
        """Note a message that was broadcast. For a message without application content, `enter`
        returns None."""
        content = message.content
        if not content or message.lamport_timestamp is None:
            return None
        key = message.message_id, content
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = Record(
                message.message_id,
                message.sender_id,
                message.lamport_timestamp,
                content,
                frozenset(message.causal_ids) - {message.message_id, ""},
                int.from_bytes(sha256(message.message_id.encode() + content).digest()[:8]),
            )
        return record

    def get(self, message_id: str, content: bytes) -> Record | None:
        """Return the record of a message, or None."""
        return self._records.get((message_id, content))

    def forget_holder(self, number: int) -> None:
        """Note that a participant has lost its whole state."""
        for record in self._records.values():
            record.holders &= ~(1 << number)
