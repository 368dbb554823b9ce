"""Compact form of bytes in a journal, with numbers for repeated fields and differences for bloom
filters.

A packed payload is text with spaces between its tokens.

| token | bytes |
|---|---|
| `=AAEC` | these bytes, as base64 |
| `12=AAEC` | these bytes, which are field 12 from now on |
| `12`, `12-40` | field 12; fields 12 to 40 |
| `13=12^AAEC` | field 12 with these bits flipped (zlib), which is field 13 from now on |
| `~12` | the value of field 12, without its tag and length |

A payload that is not a protobuf message counts as one field. Each field number is written beside
its field, so a lost line affects only lines that refer to it. All numbers end before a line that is
`fresh`.
"""

import zlib
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

REMEMBERED_BYTES: Final = 24
"""Minimum length of a field that gets a number (bytes). A number would not make a shorter field
smaller."""
SIMILAR_BYTES: Final = 256
"""Minimum length of a field that may be written as a difference from a similar field (bytes)."""
MAX_NAME: Final = 100
"""Usual maximum length of participant ids and channel ids."""
FAR_BYTES: Final = 512
"""Length of a difference from which its field becomes the base of later differences (bytes)."""
MAX_FIELDS: Final = 8_192
MAX_REMEMBERED_BYTES: Final = 4 * 1024 * 1024
MAX_PACKED_BYTES: Final = 1024 * 1024
"""Maximum size of fields and of text before the numbers start again. A reader that starts inside a
file therefore needs few earlier lines."""
MAX_UNPACKED_BYTES: Final = 32 * 1024 * 1024
"""Maximum size of one unpacked payload (bytes), against small lines that unpack to a huge
payload."""


class Packer:
    """Packer of the payloads in one file, in their order."""

    def __init__(self) -> None:
        self._start()
        self.is_fresh = True
        """The next payload needs nothing from earlier lines: its line must say so."""

    def _start(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._values: dict[bytes, int] = {}
        self._short: set[bytes] = set()
        self._similar: dict[tuple[bytes, int], tuple[int, bytes]] = {}
        self._remembered_bytes = self._packed_bytes = 0
        self._next = 1

    def begins(self) -> bool:
        """Return True if the numbers start again with the next payload. Call the method once before
        each payload."""
        begins, self.is_fresh = self.is_fresh, False
        if begins:
            self._start()
        return begins

    def pack(self, payload: bytes) -> str:
        """Return the packed form of a wire message."""
        tokens: list[str] = []
        known: list[int] = []
        small = bytearray()
        fields = _fields(payload)
        speaker = self._speaker(fields)
        for tag, field, value in fields:
            number = self._numbers.get(field)
            if number is not None:
                _flush_small(small, tokens)
                known.append(number)
                continue
            _flush_numbers(known, tokens)
            if len(field) < REMEMBERED_BYTES:
                small += field
            else:
                _flush_small(small, tokens)
                tokens.append(self._new(speaker + tag, field, value))
        _flush_small(small, tokens)
        _flush_numbers(known, tokens)
        return self._counted(" ".join(tokens))

    def pack_value(self, content: bytes) -> str:
        """Return the packed form of a value that may be a field."""
        number = self._values.get(content)
        return self._counted(f"={_text(content)}" if number is None else f"~{number}")

    def _speaker(self, fields: Sequence[tuple[bytes, bytes, bytes]]) -> bytes:
        """What messages of one sender have in common: short fields that came before."""
        times = Counter(tag for tag, _, _ in fields)
        short = [field for tag, field, _ in fields if times[tag] == 1 and len(field) < MAX_NAME]
        common = b"".join(field for field in short if field in self._short)
        self._short.update(short)
        return common

    def _new(self, like: bytes, field: bytes, value: bytes) -> str:
        number = self._next
        self._next += 1
        self._numbers[field] = number
        self._values.setdefault(value, number)
        self._remembered_bytes += len(field)
        if len(field) < SIMILAR_BYTES:
            return f"{number}={_text(field)}"
        kind = like, len(field)
        base = self._similar.get(kind)
        if base is not None:
            flipped = zlib.compress(_flip(field, base[1]), 1)
            if len(flipped) < len(field) // 4:
                if len(flipped) > FAR_BYTES:
                    self._similar[kind] = number, field
                return f"{number}={base[0]}^{_text(flipped)}"
        self._similar[kind] = number, field
        return f"{number}={_text(field)}"

    def _counted(self, text: str) -> str:
        self._packed_bytes += len(text)
        self.is_fresh = (
            self._next > MAX_FIELDS
            or len(self._short) > MAX_FIELDS
            or self._remembered_bytes > MAX_REMEMBERED_BYTES
            or self._packed_bytes > MAX_PACKED_BYTES
        )
        return text


class Unpacker:
    """Unpacker of the texts that a `Packer` made, line by line of one file."""

    def __init__(self) -> None:
        self._fields: dict[str, bytes] = {}
        """By the text of their numbers: most tokens are one, and need not be read as such."""

    def begin(self) -> None:
        """Delete all numbers, because a line is fresh or a session begins."""
        self._fields.clear()

    def unpack(self, packed: str) -> bytes:
        """Return the bytes that a packed text stands for.

        Raises:
            LookupError: they need a line that could not be read.
            ValueError: these are not packed bytes.
        """
        known = self._fields.get
        parts: list[bytes] = []
        size = 0
        for token in packed.split(" ") if packed else ():
            part = known(token)
            if part is None:
                name, equals, text = token.partition("=")
                if equals:
                    part = self._given(name, text)
                elif name.startswith("~"):
                    part = _value(self._field(name[1:]))
                else:
                    for part in self._range(name):
                        parts.append(part)
                        size += len(part)
                        if size > MAX_UNPACKED_BYTES:
                            raise _too_long()
                    continue
            parts.append(part)
            size += len(part)
            if size > MAX_UNPACKED_BYTES:
                raise _too_long()
        return b"".join(parts)

    def _given(self, name: str, text: str) -> bytes:
        try:
            if "^" in text:
                field = self._flipped(*text.rsplit("^", 1))
            else:
                field = a2b_base64(text, strict_mode=True)
        except (zlib.error, ValueError) as error:
            raise ValueError(f"packed bytes are damaged: {error}") from None
        if name:
            if len(self._fields) >= 2 * MAX_FIELDS:
                raise ValueError(f"packed bytes have more than {2 * MAX_FIELDS} numbered fields")
            self._fields[str(_number(name))] = field
        return field

    def _flipped(self, base: str, packed: str) -> bytes:
        like = self._field(base)
        flips = zlib.decompressobj().decompress(a2b_base64(packed, strict_mode=True), len(like) + 1)
        return _flip(like, flips)

    def _range(self, name: str) -> Iterator[bytes]:
        first, dash, last = name.partition("-")
        begin = _number(first)
        for number in range(begin, (_number(last) if dash else begin) + 1):
            yield self._field(str(number))

    def _field(self, number: str) -> bytes:
        field = self._fields.get(number) or self._fields.get(str(_number(number)))
        if field is None:
            raise LookupError("packed bytes refer to a journal line that could not be read")
        return field


def _too_long() -> ValueError:
    return ValueError(f"packed bytes are longer than {MAX_UNPACKED_BYTES}")


def _value(field: bytes) -> bytes:
    """The value of a field, without its tag and length; of what is none, all of it."""
    tag, at = _varint(field, 0)
    if tag & 7 == 2:
        length, at = _varint(field, at)
        if at + length == len(field):
            return field[at:]
    return _fields(field)[0][2]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"packed bytes: {text[:20]!r} is not a field number")
    return int(text)


def _fields(payload: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The top-level fields of a protobuf message: tag, whole field, value; or all as one field."""
    found, at, end = [], 0, len(payload)
    while at < end:
        begin = at
        tag, at = _varint(payload, at)
        wire_type = tag & 7
        value_at, after = at, at
        if wire_type == 0:
            _, after = _varint(payload, at)
        elif wire_type == 2:
            length, value_at = _varint(payload, at)
            after = value_at + length
        if at > end or not at < after <= end or wire_type not in (0, 2):
            return [(b"", payload, payload)]
        found.append((payload[begin:at], payload[begin:after], payload[value_at:after]))
        at = after
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number, and where it ends: beyond the data where it breaks off."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, len(data) + 1


def _flip(one: bytes, other: bytes) -> bytes:
    if len(one) != len(other):
        raise ValueError("packed bytes hold a difference that is not as long as its base")
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(
        len(one), "little"
    )


def _text(value: bytes) -> str:
    return b2a_base64(value, newline=False).decode()


def _flush_small(small: bytearray, tokens: list[str]) -> None:
    if small:
        tokens.append(f"={_text(bytes(small))}")
        small.clear()


def _flush_numbers(known: list[int], tokens: list[str]) -> None:
    """Numbers in a row become ranges."""
    at = 0
    while at < len(known):
        first = at
        while at + 1 < len(known) and known[at + 1] == known[at] + 1:
            at += 1
        tokens.append(str(known[first]) if first == at else f"{known[first]}-{known[at]}")
        at += 1
    known.clear()
