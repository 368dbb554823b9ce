"""Tables of facts as DataFrames, for figures: a frame for each kind of `schemas.FACTS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .clocks import Offset
from .schemas import FACTS
from .tables.judging import Judged
from .tables.views import spark_tables

WHOSE: Final = ("channel_id", "participant_id", "life")
MESSAGE: Final = ("channel_id", "message_id")
Whose = tuple[str, str]
"""Channel and participant."""
_DELIVERIES: Final = """
select channel as channel_id, participant_id, 0L as life, message_id, sender_id, lamport_timestamp,
    content_sha256, at_ms, if(is_own, message_id, null) as first_segment_id, message_hash, source,
    missing_since_ms, 0L as log_position
from delivery_rows
"""
_OF_ROWS: Final = {
    "Delivery": _DELIVERIES,
    "Acknowledgement": """
select sent.channel as channel_id, sent.participant_id, 0L as life, sent.message_id,
    sent.at_ms as accepted_ms, emitted.at_ms as acknowledged_ms, emitted.source
from delivery_rows as sent left join acknowledgement_rows as emitted
    on sent.channel = emitted.channel and sent.participant_id = emitted.participant_id
    and sent.message_id = emitted.message_id
where sent.is_own
""",
    "Dispatch": """
select channel as channel_id, participant_id, 0L as life, message_hash, source as kind, at_ms,
    total_bytes as payload_bytes
from wire_rows where not is_in
""",
}
"""Kinds of which there are many, from the tables of `tables.views`."""


@dataclass(frozen=True)
class Facts:
    """The facts of some journals."""

    spark: SparkSession
    tables: Mapping[str, DataFrame]
    """By kind."""
    offsets: Mapping[Whose, Offset]
    """How far clocks are ahead."""


def table(facts: Facts, kind: str, *names: str, own: bool | None = None) -> DataFrame:
    """The facts of one kind; all their columns, or these. Of deliveries those of own messages or of
    others' alone, if `own` is given."""
    rows = facts.tables[kind]
    if own is not None:
        is_own = F.col("first_segment_id").isNotNull()
        rows = rows.where(is_own if own else ~is_own)
    return rows.select(*names) if names else rows


def facts_of(spark: SparkSession, directory: Path, judged: Judged) -> Facts:
    """What was judged, from the tables of a directory."""
    few: dict[str, Sequence[Sequence[Any]]] = {
        kind.__name__: rows for kind, rows in judged.few.items()
    }
    tables = {
        kind: spark.createDataFrame([tuple(row) for row in few.get(kind, ())], schema)
        for kind, schema in FACTS.items()
        if kind not in _OF_ROWS
    }
    spark_tables(spark, directory, judged.parts)
    tables |= {kind: spark.sql(text) for kind, text in _OF_ROWS.items()}
    return Facts(spark, tables, judged.offsets)


def in_true_time(facts: Facts, ahead_ms: Mapping[Whose, int]) -> Facts:
    """The same with deliveries at the time that they had by a clock that is not ahead."""
    if not ahead_ms:
        return facts
    ahead = F.lit(0)
    for (channel_id, participant_id), ms in ahead_ms.items():
        is_of = (F.col("channel_id") == channel_id) & (F.col("participant_id") == participant_id)
        ahead = F.when(is_of, ms).otherwise(ahead)
    rows = facts.tables["Delivery"].withColumns(
        {name: F.col(name) - ahead for name in ("at_ms", "missing_since_ms")}
    )
    return replace(facts, tables={**facts.tables, "Delivery": rows})
