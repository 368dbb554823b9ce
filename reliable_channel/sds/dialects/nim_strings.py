"""Conversion of the byte ids of nim-sds to text, and the string hash of Nim 2.2.

nim-sds accepts any bytes as an id. In this package an id is text, for the log, the journals and the
`spec` dialect. A byte that is not UTF-8 becomes a private-use character, and is encoded as that
byte again.
"""

from typing import Final

from .farmhash import fingerprint64

_ESCAPES: Final = 0x10FE00
"""Byte `b` stands as U+10FE00 + b, in the last private-use plane."""
_SURROGATES: Final = 0xDC00
"""Where Python's `surrogateescape` puts it."""
_ESCAPE: Final = {_SURROGATES + byte: _ESCAPES + byte for byte in range(0x80, 0x100)}
_UNESCAPE: Final = {after: before for before, after in _ESCAPE.items()}


def text(data: bytes) -> str:
    """Decode an id from bytes to text.

    Raises:
        ValueError: it holds the UTF-8 of a character that stands for a byte, so that two ids would
            become one.
    """
    try:
        decoded = data.decode()
    except UnicodeDecodeError:
        decoded = data.decode("utf-8", "surrogateescape")
    if decoded.isascii():
        return decoded
    escaped = decoded.translate(_ESCAPE)
    if raw(escaped) != data:
        raise ValueError("an id holds a private-use character from U+10FE80 to U+10FEFF")
    return escaped


def raw(text: str) -> bytes:
    """Encode an id from text to bytes."""
    if text.isascii():
        return text.encode()
    return text.translate(_UNESCAPE).encode("utf-8", "surrogateescape")


def string_hash(text: str) -> int:
    """Return Nim's `hash` of a string, as a signed 64-bit number."""
    fingerprint = fingerprint64(raw(text))
    return fingerprint - (1 << 64) if fingerprint >> 63 else fingerprint


def magnitude(number: int) -> int:
    """Return the absolute value as Nim computes it, without overflow checks. The lowest 64-bit
    number stays negative."""
    return number if number == -(1 << 63) else abs(number)
