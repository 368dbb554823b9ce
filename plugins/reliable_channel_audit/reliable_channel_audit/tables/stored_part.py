"""Conversion of a part of a journal to tables, and back without loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import DIGEST_BYTES, Array, NeedsRowReader, Whole, rows_of
from ..columns.gathered import (
    MISSING,
    NOT_GIVEN,
    Emitted,
    Gathered,
    Log,
    Received,
    RepairEvent,
    Times,
    Wire,
)
from ..columns.messages import Ids, Messages
from ..log_order import Hour
from ..reception import TAKEN
from .layout import NAME, table_of

Tables = dict[str, pa.Table]


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
        made = {
            "delivery": self._deliveries(),
            "wire": self._wire(),
            "received": self._received(),
            "acknowledgement": self._acknowledgements(),
            "repair": self._repairs(),
            "name": self._names(),
            "hint": self._hints(),
            "log_hour": hour_columns(self._part.hours),
        }
        return {kind: table_of(kind, self._owned(columns)) for kind, columns in made.items()}

    def _owned(self, columns: dict[str, Any]) -> dict[str, Any]:
        rows = len(next(iter(columns.values())))
        if "line" in columns:
            columns["line"] = pa.array(columns["line"] + 1)
        whose = pa.array(np.zeros(rows, np.int32)), pa.array([self._whose])
        return {"participant_id": pa.DictionaryArray.from_arrays(*whose), **columns}

    def _ids(self, codes: Whole) -> pa.Array:
        return pa.array(list(map(self._texts.__getitem__, codes.tolist())), pa.string())

    def _few(self, codes: Whole, texts: Sequence[str], absent: Array | None = None) -> pa.Array:
        """Codes as text with few values; null where absent."""
        is_used = np.zeros(len(texts) + 1, bool)
        is_used[codes] = True  # the last stands for -1
        values = np.flatnonzero(is_used).tolist()
        names = pa.array([texts[each] if each < len(texts) else "" for each in values])
        taken = pa.array((np.cumsum(is_used, dtype=np.int32) - 1)[codes], mask=absent)
        return pa.DictionaryArray.from_arrays(taken, names.cast(pa.string()))

    def _deliveries(self) -> dict[str, Any]:
        log, wire = self._part.log, self._part.wire
        own = log.first_segment >= 0
        words = self._part.words
        is_taken = np.isin(wire.outcome, [words[word] for word in TAKEN if word in words])
        taken = np.flatnonzero(wire.is_in & is_taken)
        by_hash = dict(zip(rows_of(wire.message_hash[taken]), taken.tolist(), strict=True))
        copies = [by_hash.get(each, -1) for each in rows_of(log.message_hash)]
        copy = np.array(copies, np.int64)
        copy[own] = -1
        sources = np.append(wire.source, -1)[copy]
        since_ms: dict[str, int] = {}
        for each in self._part.of(MISSING):
            for message_id in each.message_ids:
                since_ms.setdefault(message_id, each.at_ms)
        ids = self._ids(log.message_id)
        missed = map(since_ms.get, ids.to_pylist()) if since_ms else [None] * self._entries
        return {
            "line": log.line,
            "at_ms": log.at_ms,
            "message_id": ids,
            "sender_id": self._few(log.sender, self._texts),
            "lamport_timestamp": log.lamport_timestamp,
            "position": log.position,
            "evicted": log.evicted,
            "is_own": own,
            "content_sha256": _digests(log.content_sha256),
            "message_hash": _digests(log.message_hash, own),
            "source": self._few(sources, list(self._part.words), sources < 0),
            "missing_since_ms": pa.array(list(missed), pa.int64()),
        }

    def _wire(self) -> dict[str, Any]:
        wire, messages, log = self._part.wire, self._part.messages, self._part.log
        numbers = self._numbers[messages.message_id]
        words = list(self._part.words)
        is_hash = _same(wire.message_hash, log.message_hash, numbers)
        is_content = _same(messages.content_sha256, log.content_sha256, numbers)
        ends = np.append(0, np.cumsum(messages.reference_counts)).astype(np.int32)
        references = self._numbers[messages.references].astype(np.int32)
        return {
            "line": wire.line,
            "at_ms": wire.at_ms,
            "is_in": wire.is_in,
            "source": self._few(wire.source, words),
            "outcome": self._few(wire.outcome, words, wire.outcome < 0),
            "timestamp_ns": pa.array(wire.timestamp_ns, mask=wire.timestamp_ns == NOT_GIVEN),
            "message_hash": _digests(wire.message_hash, is_hash),
            "message": numbers.astype(np.int32),
            "sender_id": self._few(messages.sender, self._texts),
            "lamport_timestamp": _or_null(messages.lamport_timestamp),
            "content_sha256": _digests(messages.content_sha256, is_content),
            "total_bytes": messages.total_bytes,
            "references": pa.ListArray.from_arrays(pa.array(ends), pa.array(references)),
        }

    def _received(self) -> dict[str, Any]:
        received = self._part.received
        numbers = self._numbers[received.message_id]
        is_content = _same(received.content_sha256, self._part.log.content_sha256, numbers)
        return {
            "line": received.line,
            "message": numbers.astype(np.int32),
            "sender_id": self._few(received.sender, self._texts),
            "lamport_timestamp": received.lamport_timestamp,
            "content_sha256": _digests(received.content_sha256, is_content),
        }

    def _acknowledgements(self) -> dict[str, Any]:
        emitted = self._part.emitted
        return {
            "line": emitted.line,
            "at_ms": emitted.at_ms,
            "message_id": self._ids(emitted.message_id),
            "source": self._few(emitted.source, list(self._part.words)),
            "acknowledged_by": self._few(emitted.acknowledged_by, self._texts),
        }

    def _repairs(self) -> dict[str, Any]:
        rows = [
            (each, message_id) for each in self._part.repairs for message_id in each.message_ids
        ]
        events = pa.array([each.event for each, _ in rows], pa.string())
        return {
            "line": np.array([each.line for each, _ in rows], np.int64),
            "at_ms": np.array([each.at_ms for each, _ in rows], np.int64),
            "event": events.cast(NAME),
            "message_id": pa.array([message_id for _, message_id in rows], pa.string()),
        }

    def _names(self) -> dict[str, Any]:
        numbers = self._numbers[self._named].astype(np.int32)
        return {"number": numbers, "id": self._ids(self._named)}

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


def hour_columns(hours: Mapping[int, Hour]) -> dict[str, Any]:
    """Return the columns of a table with a log's hours."""
    every = sorted(hours.items())
    return {
        "hour_ms": np.array([begin_ms for begin_ms, _ in every], np.int64),
        "deliveries": np.array([hour.entries for _, hour in every], np.int64),
        "digest": pa.array([f"{hour.total:032x}" for _, hour in every], pa.string()),
        "first_ms": np.array([hour.first_ms for _, hour in every], np.int64),
        "last_ms": np.array([hour.last_ms for _, hour in every], np.int64),
    }


def part_from(row: dict[str, Any], tables: Tables, ids: Ids, words: Ids) -> Gathered:
    """Return the columns of a part, from its row of `part` and its tables. Ids and words are
    replaced by the numbers in `ids` and `words`."""
    delivery, wire, received = tables["delivery"], tables["wire"], tables["received"]
    texts = delivery["message_id"].to_pylist() + tables["name"]["id"].to_pylist()
    codes = ids.codes(texts)
    log = _log(delivery, codes, ids)
    numbers = _whole(wire["message"])
    messages = Messages(
        sender=coded(wire["sender_id"], ids),
        message_id=codes[numbers],
        lamport_timestamp=_whole(wire["lamport_timestamp"], -1),
        content_sha256=_filled(wire["content_sha256"], log.content_sha256, numbers),
        total_bytes=_whole(wire["total_bytes"]),
        reference_counts=_whole(pc.list_value_length(wire["references"])),
        references=codes[_whole(pc.list_flatten(wire["references"]))],
        hints=list(
            zip(
                codes[_whole(tables["hint"]["message"])].tolist(),
                tables["hint"]["retrieval_hint"].to_pylist(),
                strict=True,
            )
        ),
    )
    of_received = _whole(received["message"])
    emitted = tables["acknowledgement"]
    return Gathered(
        path=row["path"],
        opened=row["opened"].encode(),
        lines=row["lines"],
        times=Times(*(row[name] for name in Times._fields)),
        log=log,
        wire=Wire(
            line=_whole(wire["line"]) - 1,
            at_ms=_whole(wire["at_ms"]),
            is_in=wire["is_in"].to_numpy(),
            source=coded(wire["source"], words),
            outcome=coded(wire["outcome"], words),
            timestamp_ns=_whole(wire["timestamp_ns"], NOT_GIVEN),
            message_hash=_filled(wire["message_hash"], log.message_hash, numbers),
        ),
        messages=messages,
        received=Received(
            line=_whole(received["line"]) - 1,
            message_id=codes[of_received],
            sender=coded(received["sender_id"], ids),
            lamport_timestamp=_whole(received["lamport_timestamp"]),
            content_sha256=_filled(received["content_sha256"], log.content_sha256, of_received),
        ),
        emitted=Emitted(
            line=_whole(emitted["line"]) - 1,
            at_ms=_whole(emitted["at_ms"]),
            message_id=ids.codes(emitted["message_id"].to_pylist()),
            source=coded(emitted["source"], words),
            acknowledged_by=coded(emitted["acknowledged_by"], ids),
        ),
        repairs=_repair_events(tables["repair"]),
        hours=hours_in(tables["log_hour"]),
        ids=ids,
        words=words,
    )


def hours_in(table: pa.Table) -> dict[int, Hour]:
    """Return the hours of a log, from the rows of one part."""
    names = "hour_ms", "deliveries", "digest", "first_ms", "last_ms"
    columns = (table[name].to_pylist() for name in names)
    return {
        begin_ms: Hour(entries, int(total, 16), *span)
        for begin_ms, entries, total, *span in zip(*columns, strict=True)
    }


def _log(delivery: pa.Table, codes: Whole, ids: Ids) -> Log:
    own, mine = delivery["is_own"].to_numpy(), codes[: delivery.num_rows]
    return Log(
        line=_whole(delivery["line"]) - 1,
        at_ms=_whole(delivery["at_ms"]),
        message_id=mine,
        sender=coded(delivery["sender_id"], ids),
        lamport_timestamp=_whole(delivery["lamport_timestamp"]),
        position=_whole(delivery["position"]),
        evicted=_whole(delivery["evicted"]),
        first_segment=np.where(own, mine, -1),
        content_sha256=_bytes(delivery["content_sha256"])[0],
        message_hash=_bytes(delivery["message_hash"])[0],
    )


def _repair_events(table: pa.Table) -> list[RepairEvent]:
    columns = (table[name].to_pylist() for name in ("line", "at_ms", "event", "message_id"))
    return [
        RepairEvent(line - 1, at_ms, event, [row[3] for row in rows])
        for (line, at_ms, event), rows in groupby(zip(*columns, strict=True), lambda row: row[:3])
    ]


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


def _filled(column: pa.ChunkedArray, entries: Array, numbers: Whole) -> Array:
    """Rows of 32 bytes; those of the log entry where null."""
    rows, absent = _bytes(column)
    rows[absent] = entries[numbers[absent]]
    return rows


def _same(rows: Array, entries: Array, numbers: Whole) -> Array:
    """True where a row is that of its log entry."""
    found = np.zeros(len(rows), bool)
    at = np.flatnonzero(numbers < len(entries))
    found[at] = (rows[at] == entries[numbers[at]]).all(axis=1)
    return found


def _or_null(values: Whole) -> pa.Array:
    return pa.array(values, mask=values < 0)


def _whole(column: pa.ChunkedArray, missing: int = 0) -> Whole:
    filled = pc.fill_null(column, pa.scalar(missing, column.type)) if column.null_count else column
    return filled.to_numpy().astype(np.int64, copy=False)


def coded(column: pa.ChunkedArray, names: Ids) -> Whole:
    """Return a text column with few values as numbers (-1 for null)."""
    array = column.combine_chunks()
    array = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    codes = np.append(names.codes(array.dictionary.to_pylist()), -1)
    return codes[pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False)]
