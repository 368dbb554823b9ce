"""Encoding of a message as the difference from the previous message of its sender.

A message has 40 kB by default, and nearly all of it was in the previous one. Its causal history
loses entries at its start and gets some at its end. Its bloom filter gets some more bits. About 500
bytes remain.

A difference is a sequence of pieces. `=` has a length and these bytes. `@` has start and length of
a piece of the base. `^` has the same with some changed bytes: their number, places and values.
Numbers have 4 bytes.
"""

import struct
from collections.abc import Collection
from typing import Final, NamedTuple

_ONE: Final = struct.Struct(">I")
_TWO: Final = struct.Struct(">II")
_ANCHOR_BYTES: Final = 64
"""Bytes that a piece is looked for by: shorter than an entry of a causal history."""


class Assembled(NamedTuple):
    """Message with the parts that resemble those of the previous one."""

    data: bytes
    history: bytes
    bloom_filter: bytes
    changed: Collection[int] | None = ()
    """Places in the filter that may have changed since the previous message. None if they are
    unknown."""


class Base(NamedTuple):
    """Base of the difference of the next message."""

    data: bytes
    history: tuple[int, int]
    """Start and end of the causal history, as for the filter."""
    bloom_filter: tuple[int, int]


def base_of(message: Assembled) -> Base | None:
    """Return a message as a base, or None if its parts are not found in it."""
    data, history, words, _ = message
    start = data.find(history[:_ANCHOR_BYTES])
    end = start + len(history)
    filter_start = data.find(words[:_ANCHOR_BYTES], end)
    if start < 0 or filter_start < 0:
        return None
    if not (data.startswith(history, start) and data.startswith(words, filter_start)):
        return None
    return Base(data, (start, end), (filter_start, filter_start + len(words)))


def difference(base: Base, message: Base, changed: Collection[int]) -> bytes | None:
    """Return a message as a difference, or None if that saves little. `changed` are the places in
    the filter that may differ, or nothing if no message has a filter."""
    data, (base_start, base_end), (start, end) = message.data, base.history, message.history
    filter_start, filter_end = message.bloom_filter
    base_filter_start, base_filter_end = base.bloom_filter
    if base_filter_end - base_filter_start != filter_end - filter_start:
        return None
    old = base.data.find(data[start : start + _ANCHOR_BYTES], base_start, base_end)
    same = _common(base.data[old:base_end], data[start:end]) if old >= 0 else 0
    found = b"".join(
        (
            _literal(data[:start]),
            b"@%b" % _TWO.pack(max(old, 0), same),
            _literal(data[start + same : filter_start]),
            _changed(base_filter_start, data[filter_start:filter_end], changed),
            _literal(data[filter_end:]),
        )
    )
    # A restart broadcasts these bytes again: they must be the very same.
    is_worth_it = len(found) < len(data) // 4
    return found if is_worth_it and restored(base.data, found) == data else None


def restored(base: bytes, difference: bytes) -> bytes:
    """Return the message of its base and the difference."""
    pieces: list[bytes | bytearray] = []
    at = 0
    while at < len(difference):
        kind = difference[at : at + 1]
        if kind == b"=":
            (length,) = _ONE.unpack_from(difference, at + 1)
            at += 1 + _ONE.size
            pieces.append(difference[at : at + length])
            at += length
            continue
        start, length = _TWO.unpack_from(difference, at + 1)
        at += 1 + _TWO.size
        if kind == b"@":
            pieces.append(base[start : start + length])
        else:
            piece = bytearray(base[start : start + length])
            at = _change(piece, difference, at)
            pieces.append(piece)
    return b"".join(pieces)


def _change(piece: bytearray, difference: bytes, at: int) -> int:
    """Change the bytes of a piece that the difference has from a place on; return where they
    end."""
    count = int.from_bytes(difference[at : at + _ONE.size])
    places = struct.unpack_from(f">{count}I", difference, at + _ONE.size)
    values = at + _ONE.size * (count + 1)
    for place, value in zip(places, difference[values : values + count], strict=True):
        piece[place] = value
    return values + count


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    least, most = 0, min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _changed(start: int, words: bytes, places: Collection[int]) -> bytes:
    """A filter as the one of the base, which starts there, with some bytes changed."""
    count, values = len(places), bytes([words[place] for place in places])
    numbers = struct.pack(f">{count + 3}I", start, len(words), count, *places)
    return b"^%b%b" % (numbers, values)


def _literal(data: bytes) -> bytes:
    return b"=%b%b" % (_ONE.pack(len(data)), data)
