"""Conversion of a part of a journal to tables, and back without loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import DIGEST_BYTES, Array, NeedsRowReader, Whole, rows_of
from ..columns.gathered import (
    DIGESTS,
    FLAGS,
    IDS,
    MISSING,
    WORDS,
    Emitted,
    Gathered,
    Log,
    Received,
    Repairs,
    Times,
    Wire,
)
from ..columns.messages import Ids, Messages
from ..log_order import Hour
from ..reception import TAKEN
from .layout import SCHEMAS

Tables = dict[str, pa.Table]
Columns = TypeVar("Columns", Log, Wire, Messages, Received, Emitted, Repairs)
HourRow = tuple[int, int, str, int, int]
"""Hour of a log, as the values of a row in the table `log_hour`."""
_OR_NULL: Final = frozenset({"lamport_timestamp", "timestamp_ns"})
"""Columns in which -1 stands for null."""


def tables_of(part: Gathered, participant_id: str) -> Tables:
    """Return the columns of a part as tables, by kind.

    Raises:
        NeedsRowReader: a message that entered the log twice.
    """
    return _Numbered(part, participant_id).tables()


class _Numbered:
    """A part with numbers for ids."""

    def __init__(self, part: Gathered, participant_id: str) -> None:
        self._part, self._whose = part, participant_id
        self._texts = list(part.ids)
        self._entries = len(part.log.line)
        self._numbers = np.full(len(self._texts), -1, np.int64)
        self._numbers[part.log.message_id] = np.arange(self._entries)
        if (self._numbers[part.log.message_id] != np.arange(self._entries)).any():
            raise NeedsRowReader("the journal lists one message twice")
        used = np.zeros(len(self._texts), bool)
        messages = part.messages
        used[messages.message_id] = used[messages.references] = True
        used[part.received.message_id] = True
        used[[code for code, _ in messages.hints]] = True
        self._named = np.flatnonzero(used & (self._numbers < 0))
        self._numbers[self._named] = self._entries + np.arange(len(self._named))

    def tables(self) -> Tables:
        part = self._part
        return {
            "delivery": self._table("delivery", **part.log._asdict(), **self._origins()),
            "wire": self._table("wire", **part.wire._asdict(), **self._contents()),
            "received": self._table("received", **part.received._asdict()),
            "acknowledgement": self._table("acknowledgement", **part.emitted._asdict()),
            "repair": self._table("repair", **part.repairs._asdict()),
            "name": self._table("name", number=self._numbers[self._named], id=self._named),
            "hint": self._table("hint", **self._hints()),
            "log_hour": hour_table(self._whose, part.hours),
        }

    def _table(self, kind: str, **columns: Any) -> pa.Table:
        """The table of a kind, with texts for the numbers in columns. A hash that is that of the
        message's log entry is null."""
        schema, log = SCHEMAS[kind], self._part.log
        absent = {"message_hash": columns.get("is_own")}
        if "message" in schema.names and "message_id" in columns:
            numbers = columns["message"] = self._numbers[columns["message_id"]]
            for name in columns.keys() & DIGESTS:
                absent[name] = _same(columns[name], getattr(log, name), numbers)
        rows = len(next(iter(columns.values())))
        columns["participant_id"] = self._few(np.zeros(rows, np.int64), [self._whose])
        arrays = [self._array(each, columns[each.name], absent.get(each.name)) for each in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _array(self, field: pa.Field, values: Any, absent: Array | None) -> pa.Array:
        """A column in its type; null where absent."""
        if isinstance(values, pa.Array):
            return values
        if field.name in DIGESTS:
            return _digests(values, absent)
        if pa.types.is_dictionary(field.type):
            return self._few(values, list(self._part.words) if field.name in WORDS else self._texts)
        if pa.types.is_string(field.type):
            return pa.array(map(self._texts.__getitem__, values.tolist()), field.type)
        if field.name in _OR_NULL:
            absent = values < 0
        return pa.array(values + 1 if field.name == "line" else values, field.type, mask=absent)

    def _few(self, codes: Whole, texts: Sequence[str]) -> pa.Array:
        """Codes as text with few values; null for -1."""
        is_used = np.zeros(len(texts) + 1, bool)
        is_used[codes] = True  # the last stands for -1
        values = np.flatnonzero(is_used).tolist()
        names = pa.array([texts[each] if each < len(texts) else "" for each in values])
        taken = pa.array((np.cumsum(is_used, dtype=np.int32) - 1)[codes], mask=codes < 0)
        return pa.DictionaryArray.from_arrays(taken, names.cast(pa.string()))

    def _origins(self) -> dict[str, Any]:
        """Sources of the log's messages, and since when other messages had waited for them."""
        part, log, wire, repairs = self._part, self._part.log, self._part.wire, self._part.repairs
        taken = np.flatnonzero(part.came_as(TAKEN))
        copies = rows_of(wire.message_hash[taken])
        source_of = dict(zip(copies, wire.source[taken].tolist(), strict=True))
        sources = [source_of.get(each, -1) for each in rows_of(log.message_hash)]
        missing = np.flatnonzero(part.is_repair(MISSING))[::-1]  # so that the first one counts
        codes, at_ms = repairs.message_id[missing], repairs.at_ms[missing]
        since_ms = dict(zip(codes.tolist(), at_ms.tolist(), strict=True))
        return {
            "source": np.where(log.is_own, -1, np.array(sources, np.int64)),
            "missing_since_ms": pa.array(map(since_ms.get, log.message_id.tolist()), pa.int64()),
        }

    def _contents(self) -> dict[str, Any]:
        """The columns of wire messages, with lists of references."""
        messages = self._part.messages
        ends = np.append(0, np.cumsum(messages.reference_counts)).astype(np.int32)
        numbers = self._numbers[messages.references].astype(np.int32)
        references = pa.ListArray.from_arrays(pa.array(ends), pa.array(numbers))
        return {**messages._asdict(), "references": references}

    def _hints(self) -> dict[str, Any]:
        """Hints without those that this part shows to be right."""
        part = self._part
        known = dict(
            zip(rows_of(part.wire.message_hash), part.messages.message_id.tolist(), strict=True)
        )
        rest = {(code, hint) for code, hint in part.messages.hints if known.get(hint) != code}
        kept = sorted((int(self._numbers[code]), hint) for code, hint in rest)
        return {
            "message": np.array([number for number, _ in kept], np.int32),
            "retrieval_hint": pa.array([hint for _, hint in kept], pa.binary()),
        }


def hour_table(participant_id: str, hours: Mapping[int, Hour]) -> pa.Table:
    """Return the hours of a log as a table."""
    schema = SCHEMAS["log_hour"]
    rows = [(participant_id, *row) for row in hour_rows(hours)]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def hour_rows(hours: Mapping[int, Hour]) -> list[HourRow]:
    """Return the hours of a log as rows, in order."""
    return [
        (hour_ms, hour.entries, f"{hour.total:032x}", hour.first_ms, hour.last_ms)
        for hour_ms, hour in sorted(hours.items())
    ]


def hours_in(rows: Iterable[HourRow]) -> dict[int, Hour]:
    """Return the hours of a log from their rows."""
    return {
        hour_ms: Hour(entries, int(total, 16), *span) for hour_ms, entries, total, *span in rows
    }


def part_from(row: dict[str, Any], tables: Tables, ids: Ids, words: Ids) -> Gathered:
    """Return the columns of a part, from its row of `part` and its tables. Ids and words are
    replaced by the numbers in `ids` and `words`."""
    return _Stored(tables, ids, words).part(row)


class _Stored:
    """Tables of a part."""

    def __init__(self, tables: Tables, ids: Ids, words: Ids) -> None:
        self._tables, self._ids, self._words = tables, ids, words
        self._log = self._columns(Log, "delivery")
        names = ids.codes(tables["name"]["id"].to_pylist())
        self._codes = np.append(self._log.message_id, names)
        """Ids by the numbers that stand for them in tables."""

    def part(self, row: dict[str, Any]) -> Gathered:
        hint, references = self._tables["hint"], self._tables["wire"]["references"]
        hinted = self._codes[_whole(hint["message"])].tolist()
        messages = self._columns(
            Messages,
            "wire",
            reference_counts=_whole(pc.list_value_length(references)),
            references=self._codes[_whole(pc.list_flatten(references))],
            hints=list(zip(hinted, hint["retrieval_hint"].to_pylist(), strict=True)),
        )
        hours = (self._tables["log_hour"][name].to_pylist() for name in SCHEMAS["log_hour"].names)
        return Gathered(
            path=row["path"],
            opened=row["opened"].encode(),
            lines=row["lines"],
            times=Times(*(row[name] for name in Times._fields)),
            log=self._log,
            wire=self._columns(Wire, "wire"),
            messages=messages,
            received=self._columns(Received, "received"),
            emitted=self._columns(Emitted, "acknowledgement"),
            repairs=self._columns(Repairs, "repair"),
            hours=hours_in(row[1:] for row in zip(*hours, strict=True)),
            ids=self._ids,
            words=self._words,
        )

    def _columns(self, columns: type[Columns], kind: str, **given: Any) -> Columns:
        names = [name for name in columns._fields if name not in given]
        return columns(**{name: self._array(self._tables[kind], name) for name in names}, **given)

    def _array(self, table: pa.Table, name: str) -> Array:
        is_numbered = "message" in table.column_names
        if name == "message_id" and is_numbered:
            return self._codes[_whole(table["message"])]
        column = table[name]
        if pa.types.is_string(column.type):
            return self._ids.codes(column.to_pylist())
        if name in DIGESTS:
            rows, absent = _bytes(column)
            if is_numbered:
                rows[absent] = getattr(self._log, name)[_whole(table["message"])[absent]]
            return rows
        if name in FLAGS:
            return column.to_numpy()
        if name in IDS | WORDS:
            return coded(column, self._words if name in WORDS else self._ids)
        return _whole(column) - 1 if name == "line" else _whole(column, -1)


def _digests(rows: Array, absent: Array | None = None) -> pa.Array:
    """Rows of 32 bytes as a column; null where absent."""
    bits = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(DIGEST_BYTES), len(rows), [bits, data])


def _bytes(column: pa.ChunkedArray) -> tuple[Array, Array]:
    """Rows of 32 bytes, zeros where null; and where they are null."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    rows = np.zeros((len(array), DIGEST_BYTES), np.uint8)
    absent = array.is_null().to_numpy(zero_copy_only=False)
    if len(array):
        data = np.frombuffer(array.buffers()[1], np.uint8)
        begin = array.offset * DIGEST_BYTES
        rows[:] = data[begin : begin + rows.size].reshape(rows.shape)
        rows[absent] = 0
    return rows, absent


def _same(rows: Array, entries: Array, numbers: Whole) -> Array:
    """True where a row is that of its log entry."""
    found = np.zeros(len(rows), bool)
    at = np.flatnonzero(numbers < len(entries))
    found[at] = (rows[at] == entries[numbers[at]]).all(axis=1)
    return found


def _whole(column: pa.ChunkedArray, missing: int = 0) -> Whole:
    filled = pc.fill_null(column, pa.scalar(missing, column.type)) if column.null_count else column
    return filled.to_numpy().astype(np.int64, copy=False)


def coded(column: pa.ChunkedArray, names: Ids) -> Whole:
    """Return a text column with few values as numbers (-1 for null)."""
    array = column.combine_chunks()
    array = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    codes = np.append(names.codes(array.dictionary.to_pylist()), -1)
    return codes[pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False)]
