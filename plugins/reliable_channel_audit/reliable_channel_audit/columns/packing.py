"""Packed bytes of many lines at once (`reliable_channel.runtime.journal_packing`): tokens become
numbers of pieces, and each piece is decoded once."""

from __future__ import annotations

import zlib
from binascii import a2b_base64
from collections.abc import Sequence
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np

from reliable_channel.runtime.journal_packing import MAX_FIELDS

from .wire import Array, Bytes, Odd, Whole, padded, ramps

MAX_PIECES: Final = 2 * MAX_FIELDS
"""Numbered fields of which an `Unpacker` takes no more."""
MAX_DIGITS: Final = 9


class Pieces(NamedTuple):
    """The bytes of which payloads are put together, each once."""

    text: bytes
    data: Bytes
    """The same, padded."""
    begins: Whole
    ends: Whole

    def piece(self, number: int) -> bytes:
        """The bytes of one."""
        return self.text[int(self.begins[number]) : int(self.ends[number])]

    @property
    def sizes(self) -> Whole:
        """Their lengths."""
        return self.ends - self.begins


class Unpacked(NamedTuple):
    """What so many texts are made of."""

    pieces: Pieces
    uses: Whole
    """Pieces, those of the first text first."""
    counts: Whole
    """How many each text has."""
    is_value: Array
    """Whether a text is the value of its piece, without tag and length."""


def whole(payloads: Sequence[bytes]) -> Unpacked:
    """Payloads that are not packed: a piece each."""
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    pieces = _pieces(b"".join(payloads), sizes)
    one_each = np.ones(len(payloads), np.int64)
    return Unpacked(pieces, np.arange(len(payloads)), one_each, np.zeros(len(payloads), bool))


def unpacked(texts: Sequence[str]) -> Unpacked:
    """Texts that need nothing of texts before them.

    Raises:
        Odd: bytes that are missing, or are not written as a `Packer` does.
    """
    tokens = " ".join(texts).split(" ")
    token_counts = np.array([text.count(" ") for text in texts], np.int64) + 1
    given: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if "=" in token:
            given.setdefault(token, place)
    parts = [token.partition("=") for token in given]
    encoded = [text for _, _, text in parts]
    names = [name for name, _, _ in parts]
    has_differences = "^" in "".join(encoded)
    pieces = _with_differences(names, encoded) if has_differences else _decoded(encoded)
    if not pieces.sizes.all():
        raise Odd("an empty piece")
    numbered = [piece for piece, name in enumerate(names) if name]
    names = list(filter(None, names))
    table = _table(_numbers(names), numbered)
    known = dict(zip(given, range(len(given)), strict=True))
    known.update(zip(names, numbered, strict=True))
    found = np.fromiter(map(known.get, tokens, repeat(-1)), np.int64, len(tokens))
    given_at = np.fromiter(given.values(), np.int64, len(given))
    return _resolved(tokens, token_counts, found, table, given_at, pieces)


def _resolved(
    tokens: list[str],
    token_counts: Whole,
    firsts: Whole,
    table: Whole,
    given_at: Whole,
    pieces: Pieces,
) -> Unpacked:
    """Pieces of tokens, where those are found that are one each; ranges and values are not."""
    lengths = np.ones(len(tokens), np.int64)
    text_of = np.repeat(np.arange(len(token_counts)), token_counts)
    is_value = np.zeros(len(token_counts), bool)
    others = np.flatnonzero(firsts < 0)
    rest = [tokens[place] for place in others.tolist()]
    of_value = np.array([token[:1] == "~" for token in rest], bool)
    at = others[of_value]
    if (token_counts[text_of[at]] != 1).any():
        raise Odd("a value among other bytes")
    is_value[text_of[at]] = True
    firsts[at] = _of_numbers(table, _numbers([token[1:] for token in rest if token[:1] == "~"]))
    at = others[~of_value]
    firsts[at], lengths[at] = _ranges([token for token in rest if token[:1] != "~"], len(table))
    uses = ramps(firsts, lengths)
    in_range = np.repeat(lengths > 1, lengths)
    uses[in_range] = table[uses[in_range]]
    used_at = np.repeat(np.arange(len(tokens)), lengths)
    if (uses < 0).any() or (given_at[uses] > used_at).any():
        raise Odd("refers to a line that could not be read")
    ends = np.cumsum(lengths)[np.cumsum(token_counts) - 1]
    return Unpacked(pieces, uses, np.diff(ends, prepend=0), is_value)


def _ranges(tokens: list[str], end: int) -> tuple[Whole, Whole]:
    """The first number of each range, and how many there are."""
    if {token.count("-") for token in tokens} - {1}:
        raise Odd("not a token")
    bounds = _numbers("-".join(tokens).split("-") if tokens else []).reshape(-1, 2)
    first, last = bounds[:, 0], bounds[:, 1]
    if (last <= first).any() or (last >= end).any():
        raise Odd("a range of fields that are not all there")
    return first, last - first + 1


def _of_numbers(table: Whole, numbers: Whole) -> Whole:
    if (numbers >= len(table)).any():
        raise Odd("refers to a line that could not be read")
    return table[numbers]


def _table(numbers: Whole, pieces: list[int]) -> Whole:
    """Pieces by number; -1 where there is none."""
    if len(numbers) > MAX_PIECES or (numbers > 4 * MAX_PIECES).any():
        raise Odd("too many fields, or too large a number of one")
    table = np.full(int(numbers.max()) + 1 if len(numbers) else 0, -1, np.int64)
    table[numbers] = pieces
    if (table[numbers] != pieces).any():
        raise Odd("a number for two fields")
    return table


def _numbers(texts: list[str]) -> Whole:
    """Numbers that are written as no other text is."""
    if max(map(len, texts), default=0) > MAX_DIGITS:
        raise Odd("a large number")
    try:
        numbers = list(map(int, texts))
    except ValueError as error:
        raise Odd("not a number") from error
    if list(map(str, numbers)) != texts or min(numbers, default=0) < 0:
        raise Odd("a number that is written otherwise")
    return np.array(numbers, np.int64)


def _with_differences(names: list[str], encoded: list[str]) -> Pieces:
    """The pieces of definitions some of which are differences from one before."""
    plain = _decoded(["" if "^" in text else text for text in encoded])
    parts: list[bytes | Bytes] = []
    numbered: dict[str, int] = {}
    for piece, (name, text) in enumerate(zip(names, encoded, strict=True)):
        if "^" in text:
            base, _, packed = text.rpartition("^")
            if base not in numbered:
                raise Odd("refers to a line that could not be read")
            parts.append(_flipped(parts[numbered[base]], packed))
        else:
            parts.append(plain.piece(piece))
        if name:
            numbered[name] = piece
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    return _pieces(b"".join(parts), sizes)


def _flipped(base: bytes | Bytes, packed: str) -> Bytes:
    """As long as its base, with some bits of it flipped."""
    try:
        flips = a2b_base64(packed, strict_mode=True)
        bits = zlib.decompressobj().decompress(flips, len(base) + 1)
    except (ValueError, zlib.error) as error:
        raise Odd("not a difference") from error
    if len(bits) != len(base):
        raise Odd("a difference of another length")
    return np.frombuffer(base, np.uint8) ^ np.frombuffer(bits, np.uint8)


def _decoded(encoded: list[str]) -> Pieces:
    """The pieces of definitions, all at once."""
    joined = "".join(encoded)
    padding = [text.endswith("=") + text.endswith("==") for text in encoded]
    if joined.count("=") != sum(padding) or any(len(text) % 4 for text in encoded):
        raise Odd("not base64")
    try:
        text = a2b_base64(joined.replace("=", "A"), strict_mode=True)
    except ValueError as error:
        raise Odd("not base64") from error
    sizes = np.fromiter(map(len, encoded), np.int64, len(encoded)) // 4 * 3
    begins = np.cumsum(sizes) - sizes
    return Pieces(text, padded(text), begins, begins + sizes - np.array(padding, np.int64))


def _pieces(text: bytes, sizes: Whole) -> Pieces:
    ends = np.cumsum(sizes)
    return Pieces(text, padded(text), ends - sizes, ends)
