"""Base58 in Bitcoin's alphabet: how peer ids are written.

The cost is quadratic in the length, so `decode` takes no more than peer ids have.
"""

from __future__ import annotations

from typing import Final

__all__ = ["decode", "encode"]

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES: Final = {character: value for value, character in enumerate(_ALPHABET)}
MAX_CHARACTERS: Final = 128


def encode(data: bytes) -> str:
    """Encode bytes; each leading zero byte becomes a `1`."""
    number = int.from_bytes(data, "big")
    digits = []
    while number:
        number, digit = divmod(number, 58)
        digits.append(_ALPHABET[digit])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return "1" * zeros + "".join(reversed(digits))


def decode(text: str) -> bytes:
    """Decode a text.

    Raises:
        ValueError: it is empty, too long, or has a character outside the alphabet.
    """
    if not 0 < len(text) <= MAX_CHARACTERS:
        raise ValueError(
            f"the base58 text has {len(text)} characters; 1 to {MAX_CHARACTERS} are allowed"
        )
    number = 0
    for character in text:
        value = _VALUES.get(character)
        if value is None:
            raise ValueError(f"{character!r} is not a character of base58 (in {text!r})")
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
