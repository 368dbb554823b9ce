"""Tables of a journal file that cannot be read as columns, made line by line.

Verdicts do not use tables made line by line, because such journals are judged from their lines. The
tables contain neither decoded wire messages nor contents for the application.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..columns.gathered import MISSING, REPAIRED, REQUESTED, Times, times_of
from ..journals import Participant, lines_of
from ..lines import LOGGED, SET_ASIDE, WIRE_IN, WIRE_OUT, Line
from ..log_order import hours_of
from .layout import OF_PARTS, SCHEMAS
from .stored_part import Tables, hour_table

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
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    at_ms, number = [], 0
    for number, line in lines_of(participant.channel_id, participant.participant_id, str(path)):
        if line.event == SET_ASIDE or line.at_ms is None:
            continue
        at_ms.append(line.at_ms)
        kind = KINDS.get(line.event)
        if kind is not None and line.outcome != "restored":
            place = {"participant_id": participant.participant_id, "line": number}
            rows[kind] += ({**row, **place} for row in _rows(line))
    tables = {kind: pa.Table.from_pylist(rows[kind], SCHEMAS[kind]) for kind in OF_PARTS}
    tables["log_hour"] = _hours(participant.participant_id, rows["delivery"])
    return number, times_of(np.array(at_ms or [0], np.int64)), tables


def _rows(line: Line) -> Iterable[Row]:
    """The values of a line, of which a table takes those of its columns."""
    row = line._asdict()
    del row["payload"], row["record"]  # which may be large
    row["is_own"], row["is_in"] = line.message_hash is None, line.event == WIRE_IN
    row["total_bytes"] = len(line.payload or b"")
    several = KINDS[line.event] == "repair" and line.message_ids is not None
    for message_id in line.message_ids or () if several else (line.message_id,):
        yield {**row, "message_id": message_id}


def _hours(participant_id: str, rows: Sequence[Row]) -> pa.Table:
    names = "lamport_timestamp", "message_id", "sender_id"
    entries = (
        ((*(row[name] for name in names), row["content_sha256"] or b""), row["at_ms"])
        for row in rows
        if row["lamport_timestamp"] is not None
    )
    return hour_table(participant_id, hours_of(entries))
