"""Decoder of protobuf fields in many byte strings at once. Each step of the decoder reads one field
of every string."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
Whole: TypeAlias = Array
"""Array of whole numbers with 64 bits."""
Bytes: TypeAlias = Array
MAX_STEPS: Final = 2_000
"""Maximum number of fields in a byte string. With more fields, the steps would read too little data
to be efficient."""
MAX_VARINT_BYTES: Final = 9
"""Maximum length of a varint that fits into 63 bits (bytes)."""
_VARINT, _LENGTH_DELIMITED = 0, 2


class NeedsRowReader(Exception):
    """Error that the data cannot be read as columns, so it must be read row by row."""


class Fields(NamedTuple):
    """Fields of byte strings as columns, ordered by string and by place in the string."""

    owner: Whole
    """Number of the byte string that contains each field."""
    tag: Whole
    value: Whole
    """Value of a number field, or length of a bytes field."""
    begin: Whole
    """Offset at which the bytes of a field begin."""


def padded(data: bytes) -> Bytes:
    """Return bytes with padding, so that a varint may be read beyond their end."""
    return np.frombuffer(data + bytes(MAX_VARINT_BYTES + 1), np.uint8)


def fields(data: Bytes, begins: Whole, ends: Whole) -> Fields:
    """Return the top-level fields of the byte strings between `begins` and `ends`.

    Raises:
        NeedsRowReader: a string that is not numbers and length-delimited fields alone, written as
            short as can be.
    """
    owner, at = np.flatnonzero(begins < ends), begins[begins < ends]
    steps: list[Fields] = []
    while len(at):
        if len(steps) >= MAX_STEPS:
            raise NeedsRowReader("a message has too many fields")
        tag, at = varints(data, at)
        value, at = varints(data, at)
        kind = tag & 7
        is_bytes = kind == _LENGTH_DELIMITED
        end = at + np.where(is_bytes, np.minimum(value, len(data)), 0)
        if (end > ends[owner]).any() or not (is_bytes | (kind == _VARINT)).all():
            raise NeedsRowReader("the bytes are not protobuf, or have fields of another wire type")
        steps.append(Fields(owner, tag, value, at))
        goes_on = end < ends[owner]
        owner, at = owner[goes_on], end[goes_on]
    if not steps:
        none = np.zeros(0, np.int64)
        return Fields(none, none, none, none)
    every = Fields(*(np.concatenate(column) for column in zip(*steps, strict=True)))
    order = np.argsort(every.owner, kind="stable")
    return Fields(*(column[order] for column in every))


def varints(data: Bytes, at: Whole) -> tuple[Whole, Whole]:
    """Return the varints at the given offsets, and the offsets at which they end.

    Raises:
        NeedsRowReader: a number that does not fit 63 bits, or has more bytes than it needs.
    """
    value = data[at].astype(np.int64)
    end = at + 1
    longer = np.flatnonzero(value >= 0x80)
    value &= 0x7F
    for length in range(1, MAX_VARINT_BYTES):
        if not len(longer):
            return value, end
        byte = data[end[longer]].astype(np.int64)
        value[longer] |= (byte & 0x7F) << (7 * length)
        end[longer] += 1
        if not byte.all():
            raise NeedsRowReader("a number is not in its shortest form")
        longer = longer[byte >= 0x80]
    if len(longer):
        raise NeedsRowReader("a number has more than 63 bits")
    return value, end


def ramps(begins: Whole, counts: Whole) -> Whole:
    """Return joined ranges of numbers, each with a beginning and a count."""
    total = int(counts.sum())
    firsts = np.repeat(begins - (np.cumsum(counts) - counts), counts)
    return firsts + np.arange(total)
