"""Spark source `sds_journal`, which reads the lines of journals. Each partition of the source has
whole participants."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ..following import Journals, Offset, Owners, journals_in, lines_of, read_to, stretches
from ..journals import group_of, journal_files, lived
from ..schemas import JOURNAL, batch

PARTITION_BYTES = 64 * 1024 * 1024
"""Target size of the journals in one task, unless one participant has more (bytes). A task with
journals of the target size takes seconds."""

BATCH_BYTES = 4 * PARTITION_BYTES
"""Target size of a stream's batch, in bytes of decompressed journals."""
ARROW_ROWS = 5_000
ARROW_BYTES = 8 * 1024 * 1024
"""Maximum number of rows, and of bytes of payloads, in an Arrow batch."""


class JournalReader(DataSourceReader):
    """Reader of journal lines, participant by participant."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._group = group_of(journal_files(paths)).participants

    def partitions(self) -> list[InputPartition]:
        """Return shares of participants with about equal sizes."""
        total_bytes = sum(participant.size_bytes for participant in self._group)
        count = max(1, min(len(self._group), -(-total_bytes // PARTITION_BYTES)))
        by_size = sorted(self._group, key=attrgetter("size_bytes"), reverse=True)
        return [InputPartition(by_size[number::count]) for number in range(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the lines of a share of participants."""
        return _batches(
            (each.channel_id, each.participant_id, path, number, life, *line)
            for each in partition.value
            for path, number, life, line in lived(each.channel_id, each.participant_id, each.paths)
        )


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of new journal lines for streams, in batches of about `max_bytes`."""

    def __init__(self, paths: Sequence[str], max_bytes: int = BATCH_BYTES) -> None:
        self._paths = paths
        self._max_bytes = max_bytes
        self._owners: Owners = {}
        self._last: Journals | None = None

    def initialOffset(self) -> Offset:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the default limit of a batch."""
        return ReadMaxBytes(self._max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop the stream at the present end of the journals."""
        self._last = journals_in(self._paths, self._owners)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the next offset at whole lines, within the limit.

        Raises:
            ValueError: an earlier version wrote the checkpoint.
        """
        budget = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        return read_to(self._last or journals_in(self._paths, self._owners), start, budget)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return a share for each stretch of a journal that must be read."""
        journals = journals_in(self._paths, self._owners)
        return [InputPartition(each) for each in stretches(journals, start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the lines of a stretch, without line number and log number."""
        part = partition.value.part
        whose = part.channel_id, part.participant_id, part.path, None, None
        return _batches((*whose, *line) for line in lines_of(partition.value))


class JournalSource(DataSource):
    """Data source of `spark.read.format("sds_journal").load("directory")`."""

    @classmethod
    def name(cls) -> str:
        return "sds_journal"

    def schema(self) -> StructType:
        return JOURNAL

    def reader(self, schema: StructType) -> JournalReader:
        """Return the reader of the present journal lines.

        Raises:
            FileNotFoundError: a path that is not there.
            ValueError: no journal.
        """
        return JournalReader(_paths(self.options))

    def streamReader(self, schema: StructType) -> JournalStreamReader:
        """Return the reader of present and later journal lines.

        Raises:
            ValueError: `max_bytes` is not a number above 0.
        """
        given = self.options.get("max_bytes", str(BATCH_BYTES))
        if not (given.isdecimal() and int(given)):
            raise ValueError(
                f"option max_bytes must be a whole number of at least 1 (got {given!r})"
            )
        return JournalStreamReader(_paths(self.options), int(given))


def _batches(rows: Iterable[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    """Rows in batches that fit into the memory of a task."""
    waiting: list[Sequence[Any]] = []
    size_bytes, payload = 0, JOURNAL.names.index("payload")
    for row in rows:
        waiting.append(row)
        size_bytes += len(row[payload] or b"")
        if len(waiting) >= ARROW_ROWS or size_bytes >= ARROW_BYTES:
            yield batch(JOURNAL, waiting)
            waiting, size_bytes = [], 0
    yield batch(JOURNAL, waiting)


def _paths(options: Mapping[str, str]) -> list[str]:
    """What `load` was given: one path, or several as Spark writes them down."""
    if "path" in options:
        return [options["path"]]
    return list(map(str, json.loads(options.get("paths") or "[]")))
