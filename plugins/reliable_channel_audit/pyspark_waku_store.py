"""Spark finds the format `waku-store` by the name of this module, without registering it."""

from pyspark.sql.types import StructType

from reliable_channel_audit.sources.pushed import Unpushed
from reliable_channel_audit.sources.store import StoreSource

__all__ = ["DefaultSource"]


class DefaultSource(StoreSource):
    """Format for sessions that this package did not make."""

    def reader(self, schema: StructType) -> Unpushed:
        """Return the reader of the stored messages."""
        return Unpushed(super().reader(schema))
