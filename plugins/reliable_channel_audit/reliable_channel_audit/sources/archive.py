"""`waku-archive`: the database of a node's Store as a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from ..databases import Selection, database
from ..schemas import STORED
from .options import whole
from .pushed import chosen, columns_of, pushed


@dataclass
class Span(InputPartition):
    wanted: Selection


class ArchiveReader(DataSourceReader):
    """Reader by time ranges."""

    def __init__(self, options: Mapping[str, str], schema: StructType = STORED) -> None:
        address = options.get("database", "")
        if not address:
            raise ValueError(
                "waku-archive needs a database: .option('database', 'store.sqlite3'), or "
                "'postgresql://user:password@host/name'"
            )
        self._database = database(address)
        self._partitions = whole(options, "partitions", 4)
        self._wanted = Selection()
        self._schema = schema
        chosen(schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Push down the conditions that the database can check."""
        self._wanted, left = pushed(self._wanted, filters)
        return left

    def partitions(self) -> list[Span]:
        """Return ranges of equal length from the first wanted message to the last."""
        bounds = self._database.bounds()
        if bounds is None:
            return []
        first_ns = max(bounds[0], self._wanted.start_ns)
        last_ns = min(bounds[1], self._wanted.end_ns)
        if first_ns > last_ns:
            return []
        step = -(-(last_ns - first_ns + 1) // self._partitions)
        return [
            Span(replace(self._wanted, start_ns=start, end_ns=min(start + step - 1, last_ns)))
            for start in range(first_ns, last_ns + 1, step)
        ]

    def read(self, partition: Span) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range."""
        rows = (row for some in self._database.rows(partition.wanted) for row in some)
        return columns_of(rows, self._schema)


class ArchiveSource(DataSource):
    """Data source of `spark.read.format("waku-archive").option("database",
    "store.sqlite3").load()`."""

    @classmethod
    def name(cls) -> str:
        return "waku-archive"

    def schema(self) -> StructType:
        return STORED

    def reader(self, schema: StructType) -> ArchiveReader:
        return ArchiveReader(self.options, schema)
