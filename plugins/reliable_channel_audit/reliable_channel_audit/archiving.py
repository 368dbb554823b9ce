"""Archive of stored messages as files, each message once, in Parquet files or a Delta table.

Each run adds messages whose hash the archive does not have. A run may be repeated, overlap with an
earlier run, or continue after it was killed. Only one run may write to an archive at a time.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from .databases import Row

FORMATS: Final = ("parquet", "delta")
_NS: Final = 1_000_000_000
MAX_NAME: Final = 200
"""Maximum length of an encoded content topic in a path. File systems allow at most 255 bytes for a
file name."""
SCHEMA: Final = pa.schema(
    [
        pa.field("message_hash", pa.binary(), nullable=False),
        ("pubsub_topic", pa.string()),
        ("content_topic", pa.string()),
        ("timestamp_ns", pa.int64()),
        ("payload", pa.binary()),
        ("meta", pa.binary()),
        ("day", pa.string()),
    ]
)
"""Columns of `databases.Row`, and the day (UTC) of the timestamp."""


class ParquetArchive:
    """Folder with a Parquet file for each run, `day=2026-11-23/content_topic=…/*.parquet`.

    Any program that reads Hive partitions can read the archive. In paths, a content topic longer
    than `MAX_NAME` is replaced by `sha256-` and its hash.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[Path, set[bytes]] = {}
        """The hashes in each folder that the last rows were for."""

    def add(self, rows: Sequence[Row]) -> int:
        """Add messages that the archive lacks. `add` returns the number of added messages."""
        parts: dict[Path, dict[bytes, Row]] = defaultdict(dict)
        for row in rows:
            parts[self._folder(row)][row[0]] = row
        self._known = {folder: self._known.get(folder) or _hashes(folder) for folder in parts}
        return sum(self._add(folder, new) for folder, new in parts.items())

    def _folder(self, row: Row) -> Path:
        content_topic = quote(row[2], safe="")
        if len(content_topic) > MAX_NAME:  # a file system takes no longer names
            content_topic = f"sha256-{sha256(row[2].encode()).hexdigest()}"
        return self._directory / f"day={_day(row)}" / f"content_topic={content_topic}"

    def _add(self, folder: Path, found: dict[bytes, Row]) -> int:
        known = self._known[folder]
        new = {digest: row for digest, row in found.items() if digest not in known}
        if not new:
            return 0
        folder.mkdir(parents=True, exist_ok=True)
        name = sha256(b"".join(sorted(new))).hexdigest()[:32]
        # The name shows what is in it; a file that is not whole has another one.
        unfinished = folder / f".{name}.tmp"
        table = _table(new.values()).drop_columns(["day", "content_topic"])
        with unfinished.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(folder / f"{name}.parquet")
        known.update(new)
        return len(new)


class DeltaArchive:
    """Delta table of messages by day, which other programs may read at the same time."""

    def __init__(self, directory: Path) -> None:
        import deltalake  # noqa: F401 - what is missing is said before anything is read

        self._directory = directory

    def add(self, rows: Sequence[Row]) -> int:
        """Add messages that the archive lacks. `add` returns the number of added messages."""
        from deltalake import DeltaTable

        table = DeltaTable.create(
            str(self._directory), schema=SCHEMA, mode="ignore", partition_by=["day"]
        )
        new = _table({row[0]: row for row in rows}.values())
        days = ", ".join(f"'{day}'" for day in sorted(set(new["day"].to_pylist())))
        merged = (
            table.merge(
                new,
                # By day as well, or every file of the table would be looked at.
                predicate=f"kept.day IN ({days}) AND kept.message_hash = new.message_hash",
                source_alias="new",
                target_alias="kept",
            )
            .when_not_matched_insert_all()
            .execute()
        )
        return int(merged["num_target_rows_inserted"])


Archive: TypeAlias = ParquetArchive | DeltaArchive


def open_archive(directory: Path, form: str) -> Archive:
    """Return the archive in a directory.

    Raises:
        ValueError: another `form` than `FORMATS`.
        ImportError: `deltalake` is not installed.
    """
    if form not in FORMATS:
        raise ValueError(f"the format of an archive must be {' or '.join(FORMATS)} (got {form!r})")
    return ParquetArchive(directory) if form == "parquet" else DeltaArchive(directory)


def read_archive(directory: Path, form: str) -> pa.Table:
    """Return the whole content of an archive as a table with the columns of `SCHEMA`."""
    if form == "delta":
        from deltalake import DeltaTable

        return DeltaTable(str(directory)).to_pyarrow_table().select(SCHEMA.names)
    parts = ds.partitioning(
        pa.schema([("day", pa.string()), ("content_topic", pa.string())]), flavor="hive"
    )
    return ds.dataset(directory, partitioning=parts).to_table().select(SCHEMA.names)


def _hashes(folder: Path) -> set[bytes]:
    return {
        known
        for file in folder.glob("*.parquet")
        for known in pq.read_table(file, columns=["message_hash"])[0].to_pylist()
    }


def _day(row: Row) -> str:
    return datetime.fromtimestamp(row[3] // _NS, UTC).strftime("%Y-%m-%d")


def _table(rows: Iterable[Row]) -> pa.Table:
    columns = zip(*((*row, _day(row)) for row in rows), strict=True)
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)
