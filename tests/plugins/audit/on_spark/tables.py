"""Facts as rows, for small tables."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from reliable_channel_audit.schemas import FACT, RARE

Row = tuple[Any, ...]


def fact(name: str, participant_id: str, **values: object) -> Row:
    """A fact of a participant of `general`; what is not given is null."""
    whose = {"channel_id": "general", "participant_id": participant_id, "life": 0}
    given = {**whose, "fact": name, **values}
    rare = {name: given.pop(name, None) for name in RARE.names}
    row = {**dict.fromkeys(FACT.names), **given, "rare": [rare]}
    assert len(row) == len(FACT)
    return tuple(row.values())


def delivery(participant_id: str, at_ms: int, **values: object) -> Row:
    """The message `m` of alice in a log."""
    message = {"message_id": "m", "lamport_timestamp": 1_000, "sender_id": "alice"}
    return fact("Delivery", participant_id, at_ms=at_ms, **{**message, **values})


def facts(spark: SparkSession, *rows: Row) -> DataFrame:
    """A table of facts."""
    return spark.createDataFrame(list(rows), FACT)
