"""Messages that are too long for a publication, which are cut into parts and joined again.

A part consists of one byte of flags and a piece of the message. The flags say whether the part is
the first or the last of its message. The parts of a message are consecutive publications of one
node and bootstrap time.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from .events import PublicationReceived, PublicationUnavailable

BEGINS: Final = 1
ENDS: Final = 2
MAX_MESSAGE_BYTES: Final = 1024 * 1024 + 128
"""Maximum value of `max_message_bytes`, with room for everything besides the payload."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of the parts that wait for the rest of their messages. Beyond the maximum, the
message that began first is given up."""


def cut(message: bytes, size: int) -> list[bytes]:
    """Return the parts of a message, each of at most `size` bytes.

    Raises:
        ValueError: the message is longer than other members would join.
    """
    if len(message) > MAX_MESSAGE_BYTES:
        raise ValueError(
            f"the message has {len(message)} bytes; members of an NDN group reassemble at most "
            f"{MAX_MESSAGE_BYTES}"
        )
    step = size - 1
    starts = range(0, len(message), step) or range(1)
    return [
        bytes([BEGINS * (at == 0) | ENDS * (at + step >= len(message))]) + message[at : at + step]
        for at in starts
    ]


@dataclass(slots=True)
class _Begun:
    """A message of which parts are there."""

    next_seq: int
    data: bytearray = field(default_factory=bytearray)


class Joiner:
    """Joins the parts of each node's messages, in limited memory."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._begun: OrderedDict[object, _Begun] = OrderedDict()
        self.held_bytes = 0
        self.given_up = 0
        """Messages that were begun and will not end, and parts that belong to none."""

    def take(self, publication: PublicationReceived) -> bytes | None:
        """Accept the next part of a message. If the part is the last of its message, `take` returns
        the message."""
        stream, part = (publication.name, publication.bootstrap_time), publication.content
        flags = part[0] if part else 0
        if flags & BEGINS:
            self._give_up(stream)
            self._begun[stream] = _Begun(publication.seq)
        message = self._begun.get(stream)
        if message is None or message.next_seq != publication.seq:
            # The end of one message behind the beginning of another would pass for a message.
            self._give_up(stream)
            self.given_up += 1
            return None
        message.next_seq += 1
        message.data += part[1:]
        self.held_bytes += len(part) - 1
        if len(message.data) > MAX_MESSAGE_BYTES:
            self._give_up(stream)
        elif flags & ENDS:
            return self._drop(stream)
        while self.held_bytes > self._max_bytes:
            self._give_up(next(iter(self._begun)))
        return None

    def skip(self, publication: PublicationUnavailable) -> None:
        """Note that a part of a message cannot be fetched."""
        self._give_up((publication.name, publication.bootstrap_time))

    def _give_up(self, stream: object) -> None:
        if stream in self._begun:
            self.given_up += 1
            self._drop(stream)

    def _drop(self, stream: object) -> bytes:
        message = self._begun.pop(stream).data
        self.held_bytes -= len(message)
        return bytes(message)
