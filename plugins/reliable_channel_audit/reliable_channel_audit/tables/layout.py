"""Layout of a directory of facts, with files like
`kind=delivery/channel=ops/day=2026-11-26/<sha256>.parquet`.

A part of a journal has a file for each kind and day, named by the part's SHA-256. The text of an id
is in one row of its part, in the kind `delivery` or `name`. In other kinds an id is a number, which
counts the rows of `delivery` and then the rows of `name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..columns.gathered import (
    DIGESTS,
    FLAGS,
    IDS,
    WORDS,
    Emitted,
    Log,
    Repairs,
    Times,
    Wire,
)
from ..lines import time_text

DIGEST: Final = pa.binary(32)
NAME: Final = pa.dictionary(pa.int32(), pa.string())
"""Type of a text column with few different values."""
WHOLE: Final = pa.int64()
NUMBER: Final = pa.int32()
MAX_DAYS: Final = 40
"""Maximum number of days in one part. With more days, the clock was probably set, and all rows are
put into the first day."""
MAX_NAME: Final = 200
"""Maximum length of an encoded channel id in a path. A longer one becomes its hash."""
MIN_PACKED: Final = 1_000
"""Minimum number of rows of a table that is compressed."""
DAY_MS: Final = 86_400_000
_TYPES: Final[dict[str, pa.DataType]] = {
    **dict.fromkeys(IDS | WORDS, NAME),
    **dict.fromkeys(DIGESTS, DIGEST),
    **dict.fromkeys(FLAGS, pa.bool_()),
    "participant_id": NAME,
    "message_id": pa.string(),
    "message": NUMBER,
    "references": pa.list_(NUMBER),
}
"""Types of the columns of journal lines, by name. Other columns are whole numbers."""
_CONTENT: Final = "message", "sender_id", "lamport_timestamp", "content_sha256"


def _lines(*names: str) -> dict[str, pa.DataType]:
    """Columns of a kind that has rows for journal lines."""
    return {name: _TYPES.get(name, WHOLE) for name in ("participant_id", *names)}


SCHEMAS: Final = {
    kind: pa.schema(columns)
    for kind, columns in {
        "part": {
            "channel_id": pa.string(),
            "participant_id": pa.string(),
            "path": pa.string(),
            "sha256": pa.string(),
            "file_bytes": WHOLE,
            "modified_ns": WHOLE,
            "ingested_ms": WHOLE,
            "lines": WHOLE,
            **dict.fromkeys(Times._fields, WHOLE),
            "opened": pa.string(),
            "left_to_rows": pa.string(),
            "days": pa.list_(pa.string()),
        },
        "delivery": _lines(*Log._fields, "source", "missing_since_ms"),
        "wire": _lines(*Wire._fields, *_CONTENT, "total_bytes", "references"),
        "received": _lines("line", *_CONTENT),
        "acknowledgement": _lines(*Emitted._fields),
        "repair": _lines(*Repairs._fields),
        "name": {"participant_id": NAME, "number": NUMBER, "id": pa.string()},
        "hint": {"participant_id": NAME, "message": NUMBER, "retrieval_hint": pa.binary()},
        "log_hour": {
            "participant_id": NAME,
            "hour_ms": WHOLE,
            "deliveries": WHOLE,
            "digest": pa.string(),
            "first_ms": WHOLE,
            "last_ms": WHOLE,
        },
        "log_difference": {
            "run_id": pa.string(),
            "hour_ms": WHOLE,
            "message_id": pa.string(),
            "participant_id": pa.string(),
            "in_logs": WHOLE,
        },
        "verdict": {
            "run_id": pa.string(),
            "judged_ms": WHOLE,
            "audit": pa.string(),
            "value": pa.string(),
            "cases": WHOLE,
            "broken": WHOLE,
            "why": pa.string(),
        },
        "finding": {
            "run_id": pa.string(),
            "audit": pa.string(),
            "channel_id": pa.string(),
            "participant_id": pa.string(),
            "message_id": pa.string(),
            "at_ms": WHOLE,
            "detail": pa.string(),
        },
    }.items()
}
"""Columns of the tables of each kind. Hashes are 32 bytes, and times milliseconds since 1970 by the
participant's clock. A `line` counts the lines of the part, from 1."""
OF_PARTS: Final = (
    *("delivery", "wire", "received", "acknowledgement", "repair", "name", "hint", "log_hour"),
)
OF_RUNS: Final = ("verdict", "finding")
"""Kinds of facts that are not stored by channel."""
_STEADY: Final = ("line", "at_ms", "lamport_timestamp", "position", "timestamp_ns")
"""Columns that are stored as differences of one row from the next."""


@lru_cache(maxsize=1_000)  # a journal of few lines costs little else
def partition(directory: Path, kind: str, channel_id: str | None, day: str) -> Path:
    """Return the folder for a kind, a channel and a day."""
    folder = directory / f"kind={kind}"
    if channel_id is not None:
        name = quote(channel_id, safe="")
        if len(name) > MAX_NAME:  # a file system takes no longer names
            name = f"sha256-{sha256(channel_id.encode()).hexdigest()}"
        folder /= f"channel={name}"
    return folder / f"day={quote(day, safe='')}"


def day_of(at_ms: int) -> str:
    return time_text(at_ms, "%Y-%m-%d")


def by_day(table: pa.Table, first_ms: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each day (UTC), or all rows on the first day without times."""
    if "at_ms" not in table.column_names:
        yield day_of(first_ms), table
        return
    days = table["at_ms"].to_numpy() // DAY_MS
    every = np.unique(days)
    if len(every) > MAX_DAYS:
        yield day_of(first_ms), table
    elif len(every) == 1:
        yield day_of(int(every[0]) * DAY_MS), table
    else:
        for day in every.tolist():
            yield day_of(day * DAY_MS), table.filter(pa.array(days == day))


def write(path: Path, table: pa.Table) -> None:
    """Write a table to a file completely or not at all. An unfinished file has another name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    steady = {name: "DELTA_BINARY_PACKED" for name in _STEADY if name in table.column_names}
    # Hashes do not become smaller, and a codec for each column of a small table costs more time
    # than all else.
    plain = set(table.column_names) if table.num_rows < MIN_PACKED else DIGESTS
    compression = {name: "none" if name in plain else "zstd" for name in table.column_names}
    unfinished = path.with_name(f".{path.name}.tmp")
    with pa.OSFile(str(unfinished), "wb") as file:
        pq.write_table(
            table,
            file,
            compression=compression,
            use_dictionary=_names_of(table.schema),
            column_encoding=steady,
            write_statistics=[name for name in ("at_ms", "lamport_timestamp") if name in steady],
            store_schema=False,
        )
    unfinished.replace(path)


def read(
    paths: Sequence[Path],
    kind: str,
    columns: Sequence[str] | None = None,
    within: tuple[int, int] | None = None,
) -> pa.Table:
    """Return the rows in files of a kind, in the order of journal lines. With `within`, files
    without a Lamport timestamp in this range are left out."""
    schema = SCHEMAS[kind]
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    names = _names_of(schema)
    tables = []
    for path in paths:
        with pa.OSFile(str(path)) as file:
            found = pq.ParquetFile(file, read_dictionary=names)
            if within is not None and not _is_within(found.metadata, within):
                continue
            table = found.read(columns=wanted.names, use_threads=False)
            tables.append(table.select(wanted.names).cast(wanted))
    if not tables:
        return wanted.empty_table()
    table = pa.concat_tables(tables).unify_dictionaries()
    is_split = len(tables) > 1 and "line" in wanted.names
    return table.sort_by("line") if is_split else table


def _is_within(metadata: pq.FileMetaData, within: tuple[int, int]) -> bool:
    """True if a row group may have a Lamport timestamp in a range."""
    place = metadata.schema.names.index("lamport_timestamp")
    for nth in range(metadata.num_row_groups):
        found = metadata.row_group(nth).column(place).statistics
        is_known = found is not None and found.has_min_max
        if not is_known or (found.min <= within[1] and within[0] <= found.max):
            return True
    return False


def _names_of(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if field.type == NAME]
