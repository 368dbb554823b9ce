"""Lines of one journal file, parsed one by one and kept as columns."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from reliable_channel.spi import Unpacker

from ..journals import MAX_LINE_BYTES, opened_file
from ..lines import LOGGED, OPENED, WIRE_IN, WIRE_OUT, Json, ids_in, line_of
from ..lines import Whole as Whole64
from .arrays import DIGEST_BYTES, Array, NeedsRowReader, digests
from .copies import Copies
from .gathered import (
    DIGESTS,
    FLAGS,
    IDS,
    MISSING,
    REPAIRED,
    REQUESTED,
    TABLES,
    WORDS,
    Emitted,
    Gathered,
    Log,
    Received,
    Repairs,
    Wire,
    concatenated,
    times_of,
)
from .messages import decoded

RECEIVED: Final = "message_received"
BLOCK_BYTES: Final = 1024 * 1024
"""Size of the text that is read at a time."""
MAX_MS: Final = 2**53
"""Latest time in columns (in 285,000 years), so that sums of times fit into 64 bits."""
ROWS_ONLY: Final = frozenset(
    {"message_forged", "message_lost", "message_rejected", "delivery_failed", "send_failed"}
    | {OPENED, LOGGED, RECEIVED, WIRE_IN, WIRE_OUT}
)
"""Events that need the row reader, unless they are frequent and have the usual fields."""
UNUSUAL: Final = "only the row reader can judge a line of this kind:"
FREQUENT: Final = tuple(
    f'{{"event":"{event}",'.encode() for event in (WIRE_IN, WIRE_OUT, LOGGED, RECEIVED)
)
"""Beginnings of the lines of frequent events, as the journal writes them."""
CONTENT_FIELD: Final = "ogE", "ogF", "ogG", "ogH"
"""Beginnings of a packed content, which are the tag of field 20 and two bits of its length."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Nothing = Annotated[list[str], msgspec.Meta(max_length=0)]
NO_HASH: Final = "00" * DIGEST_BYTES
"""Message hash of a participant's own messages in `Log`."""
Columns = TypeVar("Columns", Log, Wire, Received, Emitted, Repairs)


class _Frequent(
    msgspec.Struct, tag_field="event", forbid_unknown_fields=True, gc=False, kw_only=True
):
    """Line of a frequent event, with all of its fields."""

    at_ms: Whole64
    line: int = 0
    """Number of the line, which is set when it is read."""


class _WireOut(_Frequent, tag=WIRE_OUT, kw_only=True):
    is_in: ClassVar = False
    source: str
    message_hash: str
    timestamp_ns: Count
    packed: str
    fresh: bool = False


class _WireIn(_WireOut, tag=WIRE_IN, kw_only=True):
    is_in: ClassVar = True
    outcome: str


class _Logged(_Frequent, tag=LOGGED, kw_only=True):
    message_id: str
    sender_id: str
    lamport_timestamp: Count
    position: Count
    evicted: Count
    content_sha256: str
    first_segment_id: str | None
    message_hash: str | None
    missing: Nothing

    @property
    def is_own(self) -> bool:
        return self.first_segment_id is not None


class _Received(_Frequent, tag=RECEIVED, kw_only=True):
    message_id: str
    sender_id: str
    lamport_timestamp: Count
    position: Count
    missing: Nothing
    retrieval_hint: str
    redelivered: bool
    packed: str
    fresh: bool = False


class _Rare(Json):
    """Line of another event, with the fields that are read."""

    line: int = 0
    """Number of the line, which is set when it is read."""


_frequent: Final = msgspec.json.Decoder(_WireIn | _WireOut | _Logged | _Received).decode
_rare: Final = msgspec.json.Decoder(_Rare).decode


def gathered_part(path: Path, known: Copies) -> Gathered:
    """Return one file of a participant's journals. Ids and words become the numbers of `known`,
    and known copies of messages are not decoded.

    Raises:
        NeedsRowReader: lines that are not understood here.
    """
    known.begin()
    with opened_file(path) as file:
        opened = file.readline(MAX_LINE_BYTES)
        lines = _Lines(known, line_of(opened).at_ms or 0)
        while read := file.read(BLOCK_BYTES):
            lines.add(read + file.readline(MAX_LINE_BYTES))
    return lines.gathered(str(path), opened)


class _Lines:
    """Collector of the lines of one file, in order."""

    def __init__(self, known: Copies, at_ms: int) -> None:
        self._known = known
        self._at_ms = [at_ms]
        self._columns: dict[str, list[Any]] = {name: [] for name in TABLES if name != "messages"}
        self._places: list[int] = []
        """Places of the wire messages among those that are known."""
        self._hints: list[tuple[int, bytes]] = []
        # Lines up to the next fresh one:
        self._log: list[_Logged] = []
        self._wire: list[_WireOut] = []
        self._received: list[_Received] = []
        self._emitted: list[_Rare] = []
        self._repairs: list[_Rare] = []
        """Repair events, one for each message that a line is about."""
        self._others: list[tuple[int, str, None]] = []
        """Other lines with packed bytes."""
        self._hashes: list[str] = []
        """Hashes that are not needed here, but must be valid."""

    def add(self, block: bytes) -> None:
        """Parse a block of whole lines."""
        try:
            if not block.isascii():
                block.decode()  # fields that nobody reads are not checked otherwise
            for text in block.removesuffix(b"\n").split(b"\n"):
                if text.startswith(FREQUENT):
                    self._add(_frequent(text))
                else:
                    self._add_rare(_rare(text))
        except (ValueError, RecursionError) as error:
            raise NeedsRowReader("a line of the journal cannot be read") from error

    def _add(self, row: _WireOut | _Logged | _Received) -> None:
        row.line = len(self._at_ms)
        if isinstance(row, _Logged):
            if (row.message_hash is None) == (row.first_segment_id is None):
                raise NeedsRowReader(f"{UNUSUAL} {LOGGED}")
            if row.first_segment_id not in (None, row.message_id):
                raise NeedsRowReader("a payload has several segments")
            if row.message_hash is None:
                row.message_hash = NO_HASH
            self._log.append(row)
        else:
            if row.fresh:
                self._end()
            if isinstance(row, _WireOut):
                self._wire.append(row)
            elif row.redelivered:
                raise NeedsRowReader(f"{UNUSUAL} {RECEIVED}")
            else:
                self._received.append(row)
        self._at_ms.append(row.at_ms)

    def _add_rare(self, row: _Rare) -> None:
        if row.event in ROWS_ONLY or row.redelivered or row.payload is not None:
            raise NeedsRowReader(f"{UNUSUAL} {row.event}")
        if row.fresh:
            self._end()
        row.line = len(self._at_ms)
        self._at_ms.append(row.at_ms)
        given = row.message_hash, row.retrieval_hint, row.content_sha256
        self._hashes += [each for each in given if each is not None]
        if row.packed is not None:
            if row.packed[:1] not in ("=", "~"):  # it gives numbers to fields
                raise NeedsRowReader(f"{UNUSUAL} {row.event}")
            self._others.append((row.line, row.packed, None))
        if row.event == "message_acknowledged":
            if None in (row.message_id, row.source, row.acknowledged_by) or row.outcome is not None:
                raise NeedsRowReader(f"{UNUSUAL} {row.event}")
            self._emitted.append(row)
        elif row.event in (MISSING, REQUESTED):
            self._repairs += [replace(row, message_id=each) for each in ids_in(row) or ()]
        elif row.event == REPAIRED:
            self._repairs.append(replace(row, message_id=row.message_id or ""))

    def _end(self) -> None:
        """Keep the lines before a fresh line as columns."""
        known, received = self._known, self._received
        hashed([*self._hashes, *(row.retrieval_hint for row in received)])  # which are not kept
        outcomes = [
            known.words[row.outcome] if isinstance(row, _WireIn) else -1 for row in self._wire
        ]
        ended = {
            "log": _columns(Log, self._log, known),
            "wire": _columns(Wire, self._wire, known, outcome=np.array(outcomes, np.int64)),
            "emitted": _columns(Emitted, self._emitted, known),
            "repairs": _columns(Repairs, self._repairs, known),
        }
        contents = digests(self._decoded())  # which needs the hashes of `wire` to be valid
        ended["received"] = _columns(Received, received, known, content_sha256=contents)
        for name, columns in ended.items():
            self._columns[name].append(columns)
        every: list[list[Any]] = [self._log, self._wire, received, self._emitted, self._repairs]
        for rows in [*every, self._others, self._hashes]:
            rows.clear()

    def _decoded(self) -> list[bytes]:
        """Decode what is not known, and return the hashes (sha256) of received contents.

        Raises:
            NeedsRowReader: bytes that are missing or damaged.
        """
        contents = self._known_contents()
        if contents is not None:
            return contents
        contents, unpacker = [], Unpacker()
        wire = [(row.line, row.packed, row) for row in self._wire]
        received = [(row.line, row.packed, row) for row in self._received]
        for _, packed, row in sorted([*wire, *received, *self._others], key=itemgetter(0)):
            try:
                payload = unpacker.unpack(packed)
            except (LookupError, ValueError) as error:
                raise NeedsRowReader("packed bytes are missing or damaged") from error
            if isinstance(row, _Received):
                contents.append(sha256(payload).digest())
            elif isinstance(row, _WireOut):
                self._places.append(self._place(row.message_hash, payload))
        return contents

    def _place(self, message_hash: str, payload: bytes) -> int:
        known = self._known
        place = known.places.get(message_hash, -1)
        if place < 0 or known.sizes[place] != len(payload):
            message = decoded(payload, known.ids)
            self._hints += message.hints
            place = known.add(message_hash, message)
        return place

    def _known_contents(self) -> list[bytes] | None:
        """The same without decoding; None unless all messages are known by their hashes, and each
        content that was received is the last field of one of them, where that has its number."""
        known, fields = self._known, dict[str, bytes]()
        places = [known.places.get(row.message_hash, -1) for row in self._wire]
        if -1 in places:
            return None
        for row, place in zip(self._wire, places, strict=True):
            others, _, last = row.packed.rpartition(" ")
            field, _, text = last.partition("=")
            # A token alone may be a whole message.
            if others and field and text.startswith(CONTENT_FIELD):
                content = known.contents[place]
                if fields.setdefault(field, content) != content:
                    return None
        found = [
            fields.get(row.packed[1:]) if row.packed[:1] == "~" else _content(row.packed)
            for row in self._received
        ]
        contents = [each for each in found if each is not None]
        if len(contents) < len(found):
            return None
        self._places += places
        return contents

    def gathered(self, path: str, opened: bytes) -> Gathered:
        """Return the columns of all lines."""
        self._end()
        at_ms = np.array(self._at_ms)
        if at_ms.min() < -MAX_MS or at_ms.max() > MAX_MS:
            raise NeedsRowReader("the time of a line is out of range")
        known = self._known
        tables = {name: concatenated(parts) for name, parts in self._columns.items()}
        return Gathered(
            path,
            opened,
            len(at_ms),
            times_of(at_ms),
            messages=known.messages(self._places, self._hints),
            **tables,
            hours=known.hours_in(tables["log"]),
            ids=known.ids,
            words=known.words,
        )


def _content(packed: str) -> bytes | None:
    """The hash of a received content, if it needs no bytes of other lines."""
    try:
        return sha256(Unpacker().unpack(packed)).digest()
    except (LookupError, ValueError):
        return None


def hashed(texts: Sequence[str]) -> Array:
    """Return hashes from their hex texts, as rows of 32 bytes.

    Raises:
        NeedsRowReader: something else.
    """
    if {*map(len, texts)} - {2 * DIGEST_BYTES}:
        raise NeedsRowReader("a hash has a wrong number of digits")
    try:
        found = bytes.fromhex("".join(texts))
    except ValueError as error:
        raise NeedsRowReader("a hash has other characters than hexadecimal digits") from error
    if DIGEST_BYTES * len(texts) != len(found):
        raise NeedsRowReader("a hash has other characters than hexadecimal digits")
    return np.frombuffer(found, np.uint8).reshape(-1, DIGEST_BYTES)


def _columns(kind: type[Columns], rows: Sequence[object], known: Copies, **given: Array) -> Columns:
    """Columns of the values in rows, which have the names of the columns."""
    names = [name for name in kind._fields if name not in given]
    return kind(**{name: _column(name, rows, known) for name in names}, **given)


def _column(name: str, rows: Sequence[object], known: Copies) -> Array:
    values: list[Any] = [*map(attrgetter(name), rows)]
    if name in IDS:
        return known.ids.codes(values)
    if name in WORDS:
        return known.words.codes(values)
    if name in DIGESTS:
        return hashed(values)
    return np.fromiter(values, bool if name in FLAGS else np.int64, len(values))
