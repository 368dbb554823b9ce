"""Encoding of a message as its difference from the previous message of the same sender.

A draft has 20 kB by default, nearly all of which also is in the previous draft. A causal history
loses entries at its start and gets new entries at its end. The difference has about 500 bytes.

A difference is a sequence of pieces. A piece `=` has a length and new bytes. A piece `@` has start
and length of a part of the base. A piece `^` also has the number, places and values of changed
bytes. Only the saved states of earlier versions contain `^`, for bloom filters. Numbers in a piece
have 4 bytes.
"""

import struct
from typing import Final, NamedTuple

_ONE: Final = struct.Struct(">I")
_TWO: Final = struct.Struct(">II")
_ANCHOR_BYTES: Final = 64
"""Bytes that a piece is looked for by: shorter than an entry of a causal history."""


class Assembled(NamedTuple):
    """Message, and its part that resembles the previous message."""

    data: bytes
    history: bytes


def difference(base: Assembled, message: Assembled) -> bytes | None:
    """Return a message as a difference, or None if the difference saves few bytes."""
    data, history = message
    anchor = history[:_ANCHOR_BYTES]
    old, start = base.history.find(anchor), data.find(anchor)
    first = base.data.find(base.history[:_ANCHOR_BYTES])
    if not anchor or min(old, start, first) < 0:
        return None
    part, piece = base.history[old:], first + old  # the one copy of 20 kB
    if not history.startswith(part):
        part = part[: _common(part, history)]
    # A restart must find the very same bytes.
    if not (data.startswith(part, start) and base.data.startswith(part, piece)):
        return None
    where, rest = _TWO.pack(piece, len(part)), data[start + len(part) :]
    found = b"".join((_literal(data[:start]), b"@", where, _literal(rest)))
    return found if len(found) < len(data) // 2 else None


def restored(base: bytes, difference: bytes) -> bytes:
    """Return the message that the base and the difference give."""
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


def _literal(data: bytes) -> bytes:
    return b"=%b%b" % (_ONE.pack(len(data)), data)
