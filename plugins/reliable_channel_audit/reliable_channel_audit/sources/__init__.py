"""Where the pipeline's data come from, as formats of `spark.read`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the formats known to a session."""
    from .journals import JournalSource

    spark.dataSource.register(JournalSource)
