"""Datagram format: messages are cut into frames, and frames are joined to messages.

A frame is `magic ‖ topic tag ‖ message hash ‖ index ‖ count ‖ part`. The message hash names the
message of a part, and finally proves that all parts are true. Parts of two messages never mix, and
a forged part ruins only a message of its own sender's address.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from struct import Struct, error
from typing import Final

MAGIC: Final = b"RCM1"
DATAGRAM_BYTES: Final = 1_400
"""Maximum payload of a datagram in an Ethernet frame (1,500), less the headers of IPv6 (40), UDP
(8) and tunnels. If IP cuts a datagram, it is lost with any of its pieces."""
_HEADER: Final = Struct(">4s8s32sHH")
PART_BYTES: Final = DATAGRAM_BYTES - _HEADER.size
MAX_MESSAGE_BYTES: Final = 1024 * 1024 + 128
"""Longest `max_message_bytes`, with the fields besides the payload."""
MAX_FRAMES: Final = -(-MAX_MESSAGE_BYTES // PART_BYTES)
EXPIRES_S: Final = 5.0
"""Time that a message waits for its parts. The sender sends them in one go."""
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_MESSAGES: Final = 1_024
PART_COST_BYTES: Final = 128
"""Memory of a part besides its bytes, so that empty parts cannot avoid the limit."""


def topic_tag(topic: str) -> bytes:
    """Return the 8 bytes by which members of other channels in the same group skip a datagram
    early."""
    return sha256(topic.encode()).digest()[:8]


@dataclass(frozen=True, slots=True)
class MulticastFrame:
    """Part of a message that fits one datagram."""

    tag: bytes
    message_hash: bytes
    index: int
    count: int
    part: bytes

    def encode(self) -> bytes:
        header = _HEADER.pack(MAGIC, self.tag, self.message_hash, self.index, self.count)
        return header + self.part


def decode(datagram: bytes) -> MulticastFrame | None:
    """Decode a datagram, or return None for a foreign or invalid one."""
    try:
        magic, tag, message_hash, index, count = _HEADER.unpack_from(datagram)
    except error:
        return None
    if magic != MAGIC or not index < count <= MAX_FRAMES or len(datagram) > DATAGRAM_BYTES:
        return None
    return MulticastFrame(tag, message_hash, index, count, datagram[_HEADER.size :])


def frames(tag: bytes, message_hash: bytes, body: bytes) -> list[bytes]:
    """Cut a message into datagrams.

    Raises:
        ValueError: it is longer than others would put together.
    """
    if len(body) > MAX_MESSAGE_BYTES:
        raise ValueError(f"it has {len(body)} bytes; at most {MAX_MESSAGE_BYTES} are put together")
    parts = [body[i : i + PART_BYTES] for i in range(0, len(body), PART_BYTES)] or [b""]
    return [
        MulticastFrame(tag, message_hash, index, len(parts), part).encode()
        for index, part in enumerate(parts)
    ]


@dataclass(slots=True)
class _Partial:
    """A message of which some parts are here."""

    count: int
    since_s: float
    parts: dict[int, bytes] = field(default_factory=dict)
    cost_bytes: int = 0


class Reassembly:
    """Joins frames with limits of memory and time. The message that began first is evicted.

    Args:
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        max_bytes: int = MAX_BYTES,
        max_messages: int = MAX_MESSAGES,
        expires_s: float = EXPIRES_S,
    ) -> None:
        self._now_s = now_s
        self._max_bytes = max_bytes
        self._max_messages = max_messages
        self._expires_s = expires_s
        self._partial: OrderedDict[tuple[str, bytes], _Partial] = OrderedDict()
        self.held_bytes = 0
        self.given_up = 0
        """Messages of which a part did not come, or that had to make room."""

    def __len__(self) -> int:
        return len(self._partial)

    def add(self, source: str, frame: MulticastFrame) -> bytes | None:
        """Add a frame from an address. Return the message that it completes."""
        if frame.count == 1:
            return frame.part
        key = (source, frame.message_hash)
        partial = self._partial.get(key)
        if partial is None:
            partial = self._partial[key] = _Partial(frame.count, self._now_s())
        if frame.count != partial.count or frame.index in partial.parts:
            return None
        partial.parts[frame.index] = frame.part
        cost_bytes = len(frame.part) + PART_COST_BYTES
        partial.cost_bytes += cost_bytes
        self.held_bytes += cost_bytes
        if len(partial.parts) == partial.count:
            self._drop(key)
            return b"".join(partial.parts[index] for index in range(partial.count))
        while self.held_bytes > self._max_bytes or len(self._partial) > self._max_messages:
            self._give_up(next(iter(self._partial)))
        return None

    def expire(self) -> None:
        """Drop messages that waited too long."""
        limit_s = self._now_s() - self._expires_s
        while self._partial:
            key, partial = next(iter(self._partial.items()))
            if partial.since_s > limit_s:
                return
            self._give_up(key)

    def _give_up(self, key: tuple[str, bytes]) -> None:
        self.given_up += 1
        self._drop(key)

    def _drop(self, key: tuple[str, bytes]) -> None:
        self.held_bytes -= self._partial.pop(key).cost_bytes
