"""Unsigned LEB128 numbers of libp2p, with at most nine bytes, and only in the shortest form.

The specification is https://github.com/multiformats/unsigned-varint.
"""

from __future__ import annotations

from typing import Final

from .errors import InvalidInput, LimitExceeded

__all__ = ["MAX_BYTES", "MessageReader", "decode", "encode", "prefixed"]

MAX_BYTES: Final = 9
_MORE: Final = 0x80

_SMALL: Final = tuple(bytes([n]) for n in range(_MORE))


def encode(value: int) -> bytes:
    """Encode `value`, which must be between 0 and 2^63 - 1."""
    if value < _MORE:
        return _SMALL[value]
    out = bytearray()
    while value >= _MORE:
        out.append(value & 0x7F | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data: bytes | bytearray | memoryview, offset: int = 0) -> tuple[int, int] | None:
    """Return the decoded value and the offset after it, or None if more bytes are needed.

    Raises:
        InvalidInput: longer than nine bytes, or not the shortest form.
    """
    size = len(data)
    if offset < size and (value := data[offset]) < _MORE:
        return value, offset + 1
    value = 0
    for count in range(MAX_BYTES):
        if offset + count >= size:
            return None
        byte = data[offset + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < _MORE:
            if not byte and count:
                raise InvalidInput("the varint is not in its shortest form")
            return value, offset + count + 1
    raise InvalidInput(f"the varint has more than {MAX_BYTES} bytes")


def prefixed(message: bytes) -> bytes:
    """Return `message` after its length, as in Waku's request and response streams."""
    return encode(len(message)) + message


class MessageReader:
    """Splitter of a byte stream into length-prefixed messages.

    The reader buffers at most one message. `feed` raises an error before more than `max_bytes` of a
    message are buffered.
    """

    def __init__(self, max_bytes: int, limit: str = "max_bytes") -> None:
        self._max_bytes = max_bytes
        self._limit = limit
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def next_message(self, max_bytes: int | None = None) -> bytes | None:
        """Return the next whole message, or None if it is incomplete. `max_bytes` replaces the
        limit of the reader.

        Raises:
            InvalidInput: the length is not a varint.
            LimitExceeded: the announced length is above the bound.
        """
        header = decode(self._buffer, self._start)
        if header is None:
            return None
        length, begin = header
        allowed = self._max_bytes if max_bytes is None else max_bytes
        if length > allowed:
            raise LimitExceeded(self._limit, allowed, f"a message of {length} bytes")
        end = begin + length
        if end > len(self._buffer):
            return None
        self._start = end
        return bytes(memoryview(self._buffer)[begin:end])

    @property
    def rest(self) -> bytes:
        """Return the bytes after the last whole message."""
        return bytes(memoryview(self._buffer)[self._start :])
