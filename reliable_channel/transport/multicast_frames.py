"""Datagram format of the multicast transport, in which messages are cut into frames.

A frame is `magic ‖ topic tag ‖ message hash ‖ index ‖ count ‖ part`. The message hash tells to
which message a part belongs, and finally proves that all parts are true. Parts of two messages
never mix, and a forged part spoils only messages from its own address.
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
(8) and tunnels. If IP cuts a datagram into pieces, the loss of one piece loses the datagram."""
_HEADER: Final = Struct(">4s8s32sHH")
PART_BYTES: Final = DATAGRAM_BYTES - _HEADER.size
MAX_MESSAGE_BYTES: Final = 1024 * 1024 + 128
"""Maximum length of a message with all its fields (bytes)."""
MAX_FRAMES: Final = -(-MAX_MESSAGE_BYTES // PART_BYTES)
EXPIRES_S: Final = 5.0
"""Time for which an incomplete message waits for its parts (s). A sender sends all parts of a
message at once."""
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_MESSAGES: Final = 1_024
PART_COST_BYTES: Final = 128
"""Memory (bytes) that is counted for a part besides its content, so that empty parts count too."""


def topic_tag(topic: str) -> bytes:
    """Return 8 bytes of a topic's hash, by which receivers skip datagrams of other channels
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
    """Decode a datagram, or return None if it is foreign or invalid."""
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
        raise ValueError(
            f"the message has {len(body)} bytes; receivers in a multicast group reassemble at "
            f"most {MAX_MESSAGE_BYTES}"
        )
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
    """Joiner of frames to messages, with limits of memory and time. If memory is short, the message
    that began first is dropped.

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
        """Add a frame that came from an address. Return the message that the frame completes, or
        None."""
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
        """Drop incomplete messages that waited too long."""
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
