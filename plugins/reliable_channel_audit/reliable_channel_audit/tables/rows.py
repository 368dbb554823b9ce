"""Tables of a journal file that cannot be read as columns, made line by line.

Verdicts do not use tables made line by line, because such journals are judged from their lines. The
tables contain neither decoded wire messages nor contents for the application.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..columns.gathered import MISSING, REPAIRED, REQUESTED, Times, times_of
from ..journals import Participant, lines_of
from ..lines import LOGGED, SET_ASIDE, WIRE_IN, WIRE_OUT, Line
from ..log_order import hours_of
from .layout import SCHEMAS, plain, table_of
from .stored_part import Tables, hour_columns

KINDS: Final = {
    LOGGED: "delivery",
    WIRE_IN: "wire",
    WIRE_OUT: "wire",
    "message_acknowledged": "acknowledgement",
    MISSING: "repair",
    REQUESTED: "repair",
    REPAIRED: "repair",
}
Row = dict[str, Any]


def tables_by_rows(participant: Participant, path: Path) -> tuple[int, Times, Tables]:
    """Return the number of lines in a file, their times, and tables by kind."""
    rows: dict[str, list[Row]] = {"delivery": [], "wire": [], "acknowledgement": [], "repair": []}
    at_ms, number = [], 0
    for number, line in lines_of(participant.channel_id, participant.participant_id, str(path)):
        if line.event == SET_ASIDE or line.at_ms is None:
            continue
        at_ms.append(line.at_ms)
        kind = KINDS.get(line.event)
        if kind is not None and line.outcome != "restored":
            place = {"participant_id": participant.participant_id, "line": number}
            rows[kind] += ({**place, **row} for row in _rows(line, line.at_ms))
    tables = {kind: _table(kind, found) for kind, found in rows.items()}
    for name in ("received", "name", "hint"):
        tables[name] = SCHEMAS[name].empty_table()
    tables["log_hour"] = _hours(participant.participant_id, rows["delivery"])
    return number, times_of(np.array(at_ms or [0], np.int64)), tables


def _rows(line: Line, at_ms: int) -> Iterable[Row]:
    match KINDS[line.event]:
        case "delivery":
            yield {
                **{name: getattr(line, name) for name in _LOGGED},
                "at_ms": at_ms,
                "is_own": line.message_hash is None,
            }
        case "wire":
            yield {
                **{name: getattr(line, name) for name in _WIRE},
                "at_ms": at_ms,
                "is_in": line.event == WIRE_IN,
                "total_bytes": len(line.payload or b""),
            }
        case "acknowledgement":
            yield {**{name: getattr(line, name) for name in _TOLD}, "at_ms": at_ms}
        case "repair":
            about = [line.message_id] if line.message_ids is None else line.message_ids
            yield from ({"at_ms": at_ms, "event": line.event, "message_id": each} for each in about)


_LOGGED: Final = (
    *("message_id", "sender_id", "lamport_timestamp", "position", "evicted", "content_sha256"),
    "message_hash",
)
_WIRE: Final = ("source", "outcome", "timestamp_ns", "message_hash")
_TOLD: Final = ("message_id", "source", "acknowledged_by")


def _table(kind: str, rows: Sequence[Row]) -> pa.Table:
    schema = SCHEMAS[kind]
    return table_of(
        kind,
        {
            field.name: pa.array([row.get(field.name) for row in rows], plain(field.type)).cast(
                field.type
            )
            for field in schema
        },
    )


def _hours(participant_id: str, rows: Sequence[Row]) -> pa.Table:
    known = [row for row in rows if row["lamport_timestamp"] is not None]
    names = "lamport_timestamp", "message_id", "sender_id"
    entries = [(*(row[name] for name in names), row["content_sha256"] or b"") for row in known]
    hours = hours_of(entries, [row["at_ms"] for row in known])
    owned = {"participant_id": [participant_id] * len(hours), **hour_columns(hours)}
    return table_of("log_hour", owned)
