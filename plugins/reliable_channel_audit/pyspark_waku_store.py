"""Spark finds the format `waku-store` by the name of this module, without registering it."""

from pyspark.sql.types import StructType

from reliable_channel_audit.sources.pushed import Unpushed
from reliable_channel_audit.sources.store import StoreSource

__all__ = ["DefaultSource"]


class DefaultSource(StoreSource):
    """The format in sessions that this package did not make."""

    def reader(self, schema: StructType) -> Unpushed:
        """What is stored now."""
        return Unpushed(super().reader(schema))
