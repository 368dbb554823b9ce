"""Sources of the pipeline's data, as formats of `spark.read`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the formats in a session."""
    from .archive import ArchiveSource
    from .journals import JournalSource
    from .store import StoreSource

    for source in (JournalSource, StoreSource, ArchiveSource):
        spark.dataSource.register(source)
