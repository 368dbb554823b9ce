"""Reading JSON of nodes that do not agree how to write it.

Each function takes a value of `json.loads` and returns what it means or raises `ValueError` with a
sentence. They accept both nodes' ways: camel and snake case, null and absent, numbers as strings,
base64 of either alphabet with or without padding.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_STANDARD_ALPHABET = str.maketrans("-_", "+/")


def object_of(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {kind(value)}")
    return value


def list_of(value: object, read: Callable[[object], T]) -> tuple[T, ...]:
    """Return a list with every item read; null and absent are the empty list."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found {kind(value)}")
    return tuple(read(item) for item in value)


def field(fields: Mapping[str, object], camel: str, snake: str) -> object:
    """Return a field by its camel-case name (nwaku) or else its snake-case one (go-waku)."""
    value = fields.get(camel)
    return fields.get(snake) if value is None else value


def text(value: object) -> str:
    """Return a string that can be written as UTF-8."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {kind(value)}")
    if not value.isascii():
        value.encode()  # a lone surrogate raises UnicodeEncodeError, a ValueError
    return value


def optional_text(value: object) -> str | None:
    """Return a string, or None for null and absent."""
    return None if value is None else text(value)


def integer(value: object) -> int:
    """Return an integer, also from its decimal text (go-waku's store writes timestamps so)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    raise ValueError(f"expected an integer, found {kind(value)}")


def boolean(value: object) -> bool:
    """Return a boolean; null and absent are false."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {kind(value)}")
    return value


def base64_bytes(value: object) -> bytes:
    """Return the bytes of a base64 text; null and absent are empty."""
    if value is None:
        return b""
    if not isinstance(value, str):
        raise ValueError(f"expected base64, found {kind(value)}")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        standard = value.translate(_STANDARD_ALPHABET).rstrip("=")
        try:
            padded = standard + "=" * (-len(standard) % 4)
            return binascii.a2b_base64(padded, strict_mode=True)
        except ValueError as error:
            raise ValueError(f"not base64: {error}") from error


def base64_text(data: bytes) -> str:
    """Return padded base64 in the standard alphabet, which every node reads."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def kind(value: object) -> str:
    """Return the JSON name of a value's type."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")
