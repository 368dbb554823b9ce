"""Own messages until they leave.

Id, Lamport timestamp, content and references are fixed when a message is sent. Its bloom filter and
repair requests are those of the moment at which it leaves: a message may wait for hours, and others
are to learn what is true then. Without both it is whole as well, so the state has it in this form.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from .message import Message

SHARED_BYTES: Final = 128 * 1024
"""From this length on, histories begin to share other bytes, so that the old ones go."""
_ANCHOR_BYTES: Final = 64
"""Bytes that the start of a history is looked for by: shorter than an entry."""


class History(NamedTuple):
    """The bytes of a causal history, as a part of those that several messages share."""

    shared: bytearray
    start: int
    end: int

    def __bytes__(self) -> bytes:
        return bytes(memoryview(self.shared)[self.start : self.end])


class Histories:
    """Causal histories of own messages. Each usually continues the previous one."""

    def __init__(self) -> None:
        self._newest = History(bytearray(), 0, 0)

    def share(self, history: bytes) -> History:
        """Return a history as a part of the shared bytes."""
        shared, start, _ = self._newest
        start = shared.find(history[:_ANCHOR_BYTES], start)
        goes_on = start >= 0 and history.startswith(memoryview(shared)[start:])
        if not goes_on or len(shared) > SHARED_BYTES:
            shared, start = bytearray(), 0
        shared += history[len(shared) - start :]
        self._newest = History(shared, start, start + len(history))
        return self._newest


class Maker(Protocol):
    """The sender of a draft."""

    def bare(self, draft: "Draft") -> bytes:
        """Encode a draft as it is."""
        ...

    def leave(
        self, draft: "Draft", now_ms: int, bloom_filter: bytes | None = None
    ) -> tuple[bytes, bool]:
        """Encode a message that leaves now, with the requests of now, and the filter of now or an
        older one: a message must not acknowledge what the state does not have yet.

        Return True with it if it has requests: then there is an event. A draft that has left gives
        the same bytes again.
        """
        ...


@dataclass(slots=True, eq=False)
class Draft:
    """Own message that was not sent since the last restart. `bytes` encodes its fixed part."""

    maker: Maker
    message: Message
    """Without causal history, bloom filter and repair requests."""
    history: History
    has_filter: bool
    """True if it leaves with a bloom filter."""
    signature: bytes
    """Signature of the encoded fixed part. Empty in a channel without signatures."""
    size_bytes: int
    """Length of the encoded fixed part, with its signature."""

    def __len__(self) -> int:
        return self.size_bytes

    def __bytes__(self) -> bytes:
        return self.maker.bare(self)
