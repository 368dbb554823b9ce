"""Own messages from `send` until they are broadcast.

The id, Lamport timestamp, content and references of a message are fixed when it is sent. The bloom
filter and the repair requests are added when the message leaves, perhaps hours later. The saved
state has the message without a filter and without requests.
"""

from dataclasses import dataclass
from typing import Protocol

from .message import Message
from .references.causal_history import History


class Maker(Protocol):
    """Encoder of drafts, which the sender of the messages implements."""

    def bare(self, draft: "Draft") -> bytes:
        """Encode the fixed part of a draft."""
        ...

    def leave(
        self, draft: "Draft | SavedDraft", now_ms: int, bloom_filter: bytes | None = None
    ) -> tuple[bytes, bool]:
        """Encode a message that leaves now, with the current requests and the given or current
        filter.

        Return the bytes, and True if the message carries repair requests. A given older filter
        acknowledges only saved messages, and a draft that has left gives the same bytes again.
        """
        ...


@dataclass(slots=True, eq=False)
class Draft:
    """Own message that `send` accepted since the last restart. `bytes` encodes its fixed part."""

    maker: Maker
    message_id: str
    message: Message
    """Fixed part of the message, without causal history, bloom filter and repair requests."""
    history: History
    signature: bytes
    """Signature of the encoded fixed part, empty in a channel without signatures."""
    size_bytes: int
    """Length of the encoded fixed part with its signature (bytes)."""

    def __bytes__(self) -> bytes:
        return self.maker.bare(self)


@dataclass(slots=True, eq=False)
class SavedDraft:
    """Own message of before a restart. It is decoded only when it leaves, because 10,000 messages
    may wait at a restart."""

    maker: Maker
    message_id: str
    lamport_timestamp: int
    """Time of `send` (ms), or more if a clock ran ahead."""
    data: bytes
    """Saved bytes, signed as they are."""

    def __bytes__(self) -> bytes:
        return self.data
