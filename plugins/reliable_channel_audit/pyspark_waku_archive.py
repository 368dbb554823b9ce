"""Spark finds the format `waku-archive` by the name of this module, without registering it."""

from pyspark.sql.types import StructType

from reliable_channel_audit.sources.archive import ArchiveSource
from reliable_channel_audit.sources.pushed import Unpushed

__all__ = ["DefaultSource"]


class DefaultSource(ArchiveSource):
    """The format in sessions that this package did not make."""

    def reader(self, schema: StructType) -> Unpushed:
        """What is stored now."""
        return Unpushed(super().reader(schema))
