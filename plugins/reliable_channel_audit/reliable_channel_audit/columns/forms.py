"""Reader of many lines of a `Journal` at once, without parsing JSON.

All lines of a frequent event have the same text between their values, which is the form of the
event. The quotes of a line therefore show where its values are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
import numpy as np

from ..lines import LOGGED, WIRE_IN, WIRE_OUT, Json, json_of
from .messages import DIGEST_BYTES
from .wire import Array, NeedsRowReader, Whole

RECEIVED: Final = "message_received"
MAX_DIGITS: Final = 19
"""Maximum length of a number with 63 bits."""
_SENT = '"source":"$source","message_hash":"$message_hash","timestamp_ns":$timestamp_ns,'
_ABOUT = (
    '"message_id":"$message_id","sender_id":"$sender_id",'
    '"lamport_timestamp":$lamport_timestamp,"position":$position,'
)
_ENTRY = _ABOUT + '"evicted":$evicted,"content_sha256":"$content_sha256",'
_HINT = '"missing":[],"retrieval_hint":"$message_hash","redelivered":false,'
_FRESH, _BYTES = '"fresh":true,', '"packed":"$packed"'
_FIELDS: Final = (
    *((WIRE_IN, f'{_SENT}"outcome":"$outcome",{fresh}{_BYTES}') for fresh in ("", _FRESH)),
    (LOGGED, _ENTRY + '"first_segment_id":null,"message_hash":"$message_hash","missing":[]'),
    *((RECEIVED, f"{_ABOUT}{_HINT}{fresh}{_BYTES}") for fresh in ("", _FRESH)),
    *((WIRE_OUT, f"{_SENT}{fresh}{_BYTES}") for fresh in ("", _FRESH)),
    (LOGGED, _ENTRY + '"first_segment_id":"$first_segment_id","message_hash":null,"missing":[]'),
)
"""Fields of frequent events as the journal writes them, with `$` before each value."""


class _Value(NamedTuple):
    name: str
    after: bytes
    """Text behind the value, up to the next one."""
    offset: int
    """Offset of the first quote in that text."""
    quotes: int
    """Number of quotes in that text."""


class Form(NamedTuple):
    """Text of an event's lines around their values."""

    event: str
    is_fresh: bool
    before: bytes
    """Text before the first value."""
    values: list[_Value]


def _form(event: str, fields: str) -> Form:
    line = f'{{"event":"{event}","at_ms":$at_ms,{fields}}}\n'.encode()
    before, *rest = re.split(rb"\$(\w+)", line)
    values = [
        _Value(name.decode(), after, after.index(b'"'), after.count(b'"'))
        for name, after in zip(rest[::2], rest[1::2], strict=True)
    ]
    return Form(event, _FRESH in fields, before, values)


FORMS: Final = [_form(event, fields) for event, fields in _FIELDS]
_NAMES: Final = {value.name for form in FORMS for value in form.values}
_IS_FRESH: Final = np.array([form.is_fresh for form in FORMS] + [False])
_PADDING: Final = bytes(256)
"""Bytes behind a text. A form has fewer bytes and fewer quotes between two values."""
_NEWLINE, _QUOTE, _ZERO, _SPACE = b'\n"0 '
_POWERS: Final = 10 ** np.arange(MAX_DIGITS - 1, -1, -1, dtype=np.int64)


class Lines:
    """Lines of a block of text. Each line has a form, or is one of the others."""

    def __init__(self, block: bytes) -> None:
        """Find the form of each line.

        Raises:
            NeedsRowReader: a text that needs JSON to be parsed, or is not text.
        """
        self._is_plain = b"\\" not in block  # first, because two bytes are found far more slowly
        if not self._is_plain and (b'\\"' in block or b"\\\\" in block):
            raise NeedsRowReader("a value of the journal has a quote or a backslash")
        try:
            block.isascii() or block.decode()
        except UnicodeDecodeError as error:
            raise NeedsRowReader("a line of the journal is not UTF-8") from error
        self._block = block if block.endswith(b"\n") else block + b"\n"
        self._data = np.frombuffer(self._block + _PADDING, np.uint8)
        self._is_plain &= block.isascii()
        self._text = self._block.decode("latin-1")
        size = len(self._block)
        ends = np.flatnonzero(self._data[:size] < _SPACE)
        if (self._data[ends] != _NEWLINE).any():
            raise NeedsRowReader("a line of the journal has a control character")
        quotes = np.flatnonzero(self._data[:size] == _QUOTE)
        self._first_quote = np.searchsorted(quotes, np.append(0, ends))
        self._quotes = np.append(quotes, np.full(len(_PADDING), size))
        self._begins = np.append(0, ends + 1)
        self.form = np.full(len(ends), -1)
        self._spans = {name: np.zeros((2, len(ends)), np.int64) for name in _NAMES}
        for number, form in enumerate(FORMS):
            self._find(number, form)

    def __len__(self) -> int:
        return len(self.form)

    def _find(self, number: int, form: Form) -> None:
        lines = np.flatnonzero(self.form < 0)
        lines = lines[self._has(form.before, self._begins[lines])]
        if not len(lines):
            return
        place = self._begins[lines] + len(form.before)
        quote = self._first_quote[lines] + form.before.count(b'"')
        is_found = np.ones(len(lines), bool)
        spans = []
        for value in form.values:
            end = self._quotes[quote] - value.offset
            is_found &= self._has(value.after, end)
            spans.append(np.stack([place, end]))
            place, quote = end + len(value.after), quote + value.quotes
        is_found &= place == self._begins[lines + 1]
        lines = lines[is_found]
        self.form[lines] = number
        for value, span in zip(form.values, spans, strict=True):
            self._spans[value.name][:, lines] = span[:, is_found]

    def _has(self, text: bytes, places: Whole) -> Array:
        """True for each place where a text stands."""
        return self._cut(places, len(text)) == text

    def _cut(self, places: Whole, size: int) -> Array:
        count = len(self._data) - size + 1
        return np.ndarray((count,), f"S{size}", self._data, strides=(1,))[places]

    def of(self, *events: str) -> Whole:
        """Return the numbers of the lines with a form of some events."""
        wanted = np.array([form.event in events for form in FORMS] + [False])
        return np.flatnonzero(wanted[self.form])

    def fresh(self) -> Whole:
        """Return the numbers of the fresh lines that have a form."""
        return np.flatnonzero(_IS_FRESH[self.form])

    def others(self) -> Iterator[tuple[int, Json]]:
        """Yield the lines without a form, with their numbers.

        Raises:
            NeedsRowReader: a line that cannot be read.
        """
        for line in np.flatnonzero(self.form < 0).tolist():
            try:
                yield line, json_of(self._block[self._begins[line] : self._begins[line + 1]])
            except (ValueError, RecursionError) as error:
                raise NeedsRowReader("a line of the journal cannot be read") from error

    def has(self, name: str, lines: Whole) -> Array:
        """Return True for each of some lines that has a value."""
        ends: Whole = self._spans[name][1, lines]
        return ends > 0

    def texts(self, name: str, lines: Whole) -> list[str]:
        """Return a value of some lines as text. A line without the value has an empty text."""
        found = [*map(self._text.__getitem__, map(slice, *self._spans[name][:, lines].tolist()))]
        if self._is_plain:
            return found
        try:
            known = {each: _json_text(f'"{each}"'.encode("latin-1")) for each in set(found)}
        except ValueError as error:
            raise NeedsRowReader("a line of the journal is not JSON") from error
        return [*map(known.__getitem__, found)]

    def numbers(self, name: str, lines: Whole) -> Whole:
        """Return a value of some lines as whole numbers.

        Raises:
            NeedsRowReader: a value that is negative, or is not a number of 63 bits.
        """
        begins, ends = self._spans[name][:, lines]
        sizes = ends - begins
        if not len(sizes):
            return sizes
        longest = int(sizes.max())
        if sizes.min() < 1 or longest > MAX_DIGITS:
            raise NeedsRowReader("a number of the journal is negative or too large")
        digits = self._cut(ends - longest, longest).view(np.uint8).reshape(-1, longest) - _ZERO
        digits[np.arange(longest) < (longest - sizes)[:, None]] = 0
        found = digits @ _POWERS[-longest:]
        is_short = (sizes > 1) & (self._data[begins] == _ZERO)
        if (digits > 9).any() or is_short.any() or (found < 0).any():
            raise NeedsRowReader("a number of the journal is not a whole number with 63 bits")
        return found

    def hashes(self, name: str, lines: Whole) -> Array:
        """Return a value of some lines as rows of 32 bytes.

        Raises:
            NeedsRowReader: a value that is not a hash in hexadecimal digits.
        """
        begins, ends = self._spans[name][:, lines]
        if (ends - begins != 2 * DIGEST_BYTES).any():
            raise NeedsRowReader("a hash has a wrong number of digits")
        return hashed(self._cut(begins, 2 * DIGEST_BYTES).tobytes().decode("latin-1"))


_json_text: Final = msgspec.json.Decoder(str).decode


def hashed(digits: str) -> Array:
    """Return hashes from their joined hex texts, as rows of 32 bytes.

    Raises:
        NeedsRowReader: something else.
    """
    try:
        found = bytes.fromhex(digits)
    except ValueError as error:
        raise NeedsRowReader("a hash has other characters than hexadecimal digits") from error
    if 2 * len(found) != len(digits):
        raise NeedsRowReader("a hash has other characters than hexadecimal digits")
    return np.frombuffer(found, np.uint8).reshape(-1, DIGEST_BYTES)
