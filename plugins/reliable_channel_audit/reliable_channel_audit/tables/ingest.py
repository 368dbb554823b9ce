"""Ingestion of closed journal files into a directory of facts, each file once. The tables of a
journal file are named by the file's SHA-256."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heapreplace
from itertools import groupby
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from ..columns.arrays import NeedsRowReader
from ..columns.copies import MAX_KNOWN, Copies
from ..columns.reading import gathered_part
from ..facts import uncollected
from ..journals import (
    DAMAGE,
    Group,
    Participant,
    Reading,
    first_opened,
    group_of,
    is_closed,
    journal_files,
)
from ..lines import OPENED
from . import layout
from .rows import tables_by_rows
from .stored_part import Tables, part_from, tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
"""Row of the table `part`, with a column name for each value."""
_NS: Final = 1_000_000
MAX_TASKS: Final = 64
"""Default for the maximum number of Spark tasks that add files."""
LARGE_BYTES: Final = 1024 * 1024
"""Size of new files from which it is cheaper to read other participants' tables than to decode all
messages."""


class Ingested(NamedTuple):
    """Result of an ingestion run."""

    added: int
    """Number of journal files that this run read."""
    known: int
    """Number of journal files that earlier runs had read."""
    group: Group
    """Participants with journals among the given paths."""


def ingest(
    paths: Iterable[str | Path],
    directory: Path,
    *,
    with_open: bool = False,
    spark: SparkSession | None = None,
    partitions: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Ingested:
    """Add closed journal files to a directory of facts. With `with_open`, open files are also added
    in their present state.

    A file that was added before is read again only if its size or time has changed. The tables of a
    changed file replace its earlier tables. Only one run may write to a directory of facts at a
    time.

    With `spark`, tasks of Spark read the files, at most `partitions` at a time.

    Raises:
        FileNotFoundError: a path that is not there.
    """
    directory = directory.resolve()  # tasks run elsewhere
    files = [path.resolve() for path in journal_files(paths, may_be_none=True)]
    rows = {row["path"]: row for row in parts(directory)}
    same = {path: rows[str(path)] for path in files if is_same(path, rows.get(str(path)))}
    opened = {
        path: (row["channel_id"], row["participant_id"], row["first_ms"])
        for path, row in same.items()
    }
    group = group_of(files, opened)
    new = sorted(
        (participant.channel_id, nth, participant.participant_id, path)
        for participant in group.participants
        for nth, path in enumerate(participant.paths)
        if Path(path) not in same and (with_open or is_closed(Path(path)))
    )
    add = add_here if spark is None else partial(add_on_spark, spark, partitions)
    for path, sha256 in add(new, directory, progress, _beside(new, same.values())):
        for old in (rows.get(path), rows.get(path.removesuffix(Path(path).suffix))):
            if old is not None and old["sha256"] != sha256:
                remove(old, directory)
    return Ingested(len(new), len(same), group)


NewFile = tuple[str, int, str, str]
"""Journal file to add, as channel, number, participant and path."""

Beside = dict[str, list[Row]]
"""By channel, ingested parts with copies of messages in new files."""


def _beside(new: Iterable[NewFile], ingested: Iterable[Row]) -> Beside:
    """Return, for each channel, the parts of one participant that are mostly later than the
    beginning of the new files."""
    by_channel: defaultdict[str, list[Row]] = defaultdict(list)
    for row in ingested:
        if not row["left_to_rows"]:
            by_channel[row["channel_id"]].append(row)
    found: Beside = {}
    for channel_id, group in groupby(new, lambda each: each[0]):
        files = [Path(each[3]) for each in group]
        if channel_id not in by_channel or sum(path.stat().st_size for path in files) < LARGE_BYTES:
            continue
        opened_ms = min(opened[2] for opened in map(first_opened, files) if opened is not None)
        later: defaultdict[str, list[Row]] = defaultdict(list)
        for row in by_channel[channel_id]:
            if row["first_ms"] + row["until_ms"] > 2 * opened_ms:
                later[row["participant_id"]].append(row)
        if later:
            lines = {name: sum(row["lines"] for row in rows) for name, rows in later.items()}
            found[channel_id] = later[max(lines, key=lines.__getitem__)]
    return found


def add_here(
    new: Iterable[NewFile], directory: Path, progress: Callable[[str], None], beside: Beside
) -> Iterator[tuple[str, str]]:
    """Add journal files in this process. For each added file, its path and SHA-256 are yielded."""
    for channel_id, files in groupby(new, lambda each: each[0]):
        known = _learned(beside.get(channel_id, ()), directory)
        for _, _, participant_id, path in files:  # those of one time one after the other
            progress(f"{channel_id}: {Path(path).name}")
            participant = Participant(channel_id, participant_id, (path,), 0)
            yield path, add_part(participant, Path(path), directory, known)["sha256"]


def _learned(rows: Iterable[Row], directory: Path) -> Copies:
    """The messages of ingested parts, as many as are kept. If their tables are damaged, new files
    are read without them."""
    known = Copies()
    try:
        for row in rows:
            if len(known.contents) + row["lines"] > MAX_KNOWN:
                break
            part = part_from(row, tables_in(row, directory), known.ids, known.words)
            known.learn(part.wire.message_hash, part.messages)
    except (pa.ArrowException, LookupError, OSError):
        return Copies()
    return known


def add_on_spark(
    spark: SparkSession,
    partitions: int | None,
    new: Sequence[NewFile],
    directory: Path,
    progress: Callable[[str], None],
    beside: Beside,
) -> Iterator[tuple[str, str]]:
    """Add journal files in Spark tasks, which must see the same files and the same directory."""
    progress(f"{len(new)} journals")
    shares = shares_of(new, partitions or MAX_TASKS)

    def add(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each for batch in batches for each in batch["id"].to_pylist()):
            found = list(add_here(shares[number], directory, lambda what: None, beside))
            columns = zip(*found, strict=True)
            yield pa.RecordBatch.from_arrays([*map(pa.array, columns)], ["path", "sha256"])

    if shares:
        tasks = spark.range(0, len(shares), 1, len(shares))  # a row each, without a shuffle
        for row in tasks.mapInArrow(add, "path string, sha256 string").collect():
            yield row.path, row.sha256


def shares_of(new: Sequence[NewFile], most: int) -> list[list[NewFile]]:
    """Return files in at most the given number of shares of about equal size."""
    loads = [(0, number) for number in range(min(most, len(new)))]
    chosen: dict[NewFile, int] = {}
    sizes = {each: Path(each[3]).stat().st_size for each in new}
    for each in sorted(new, key=lambda each: -sizes[each]):
        size, number = loads[0]
        chosen[each] = number
        heapreplace(loads, (size + sizes[each], number))
    return [[each for each in new if chosen[each] == nth] for nth in range(len(loads))]


def parts(directory: Path) -> list[Row]:
    """Return the rows of `part` in a directory of facts, in order of channel, participant, time and
    path."""
    found: list[Row] = []
    for path in directory.glob("kind=part/channel=*/day=*/*.parquet"):
        found += layout.read([path], "part").to_pylist()
    names = "channel_id", "participant_id", "first_ms", "path"
    return sorted(found, key=lambda row: tuple(row[name] for name in names))


def add_part(participant: Participant, path: Path, directory: Path, known: Copies) -> Row:
    """Read a closed journal file, and write its tables. `add_part` returns the row of the file in
    the table `part`."""
    status, sha256 = path.stat(), _sha256(path)
    read, tables = read_part(participant, path, known)
    first_ms = read["first_ms"]
    row: Row = {
        "channel_id": participant.channel_id,
        "participant_id": participant.participant_id,
        "path": str(path),
        "sha256": sha256,
        "file_bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "ingested_ms": time_ns() // _NS,
        **read,
    }
    days = {layout.day_of(first_ms)}
    for kind, table in tables.items():
        for day, rows in layout.by_day(table, first_ms) if table.num_rows else ():
            folder = layout.partition(directory, kind, participant.channel_id, day)
            layout.write(folder / f"{sha256}.parquet", rows)
            days.add(day)
    row["days"] = sorted(days)
    # Last, as it says that the others are there.
    folder = layout.partition(directory, "part", participant.channel_id, min(days))
    layout.write(folder / f"{sha256}.parquet", pa.Table.from_pylist([row], layout.SCHEMAS["part"]))
    return row


def read_part(participant: Participant, path: Path, known: Copies) -> tuple[Row, Tables]:
    """Return values of a journal file for the table `part`, and the other tables of the file.

    The file is read as columns if possible. Otherwise `left_to_rows` is the reason why not.
    """
    opened, left_to_rows = b"", None
    with uncollected():
        try:
            part = gathered_part(path, known)
            line = Reading(participant.channel_id, participant.participant_id).line(part.opened)
            if line.event != OPENED:
                raise NeedsRowReader("the first line of the file does not begin a journal")
            tables = tables_of(part, participant.participant_id)
            lines, times, opened = part.lines, part.times, part.opened
        except (NeedsRowReader, *DAMAGE) as error:
            lines, times, tables = tables_by_rows(participant, path)
            left_to_rows = str(error)
    values = {"lines": lines, **times._asdict(), "opened": opened.decode(errors="replace")}
    return {**values, "left_to_rows": left_to_rows}, tables


def paths_of(row: Row, directory: Path, kind: str) -> list[Path]:
    """Return the table files of one kind that belong to a part."""
    every = (
        layout.partition(directory, kind, row["channel_id"], day) / f"{row['sha256']}.parquet"
        for day in row["days"]
    )
    return [path for path in every if path.exists()]


def tables_in(row: Row, directory: Path) -> Tables:
    """Return the tables of a part, by kind."""
    return {kind: layout.read(paths_of(row, directory, kind), kind) for kind in layout.OF_PARTS}


def remove(row: Row, directory: Path) -> None:
    """Remove the row and the tables of a part."""
    for kind in ("part", *layout.OF_PARTS):
        for path in paths_of(row, directory, kind):
            path.unlink()


def is_same(path: Path, row: Row | None) -> bool:
    """Return True if a file still has the size and the time of its last ingestion."""
    status = path.stat()
    known = row and (row["file_bytes"], row["modified_ns"])
    return known == (status.st_size, status.st_mtime_ns)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
