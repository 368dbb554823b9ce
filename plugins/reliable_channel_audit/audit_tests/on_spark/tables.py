"""Facts as rows, for small tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reliable_channel_audit.schemas import FACT, FACTS, MANY
from reliable_channel_audit.sources.fact_batches import FactBatches, rows_in

Row = tuple[str, tuple[Any, ...]]


def fact(name: str, participant_id: str, **values: object) -> Row:
    """A fact of a participant of `general`; what is not given is null."""
    whose = {"channel_id": "general", "participant_id": participant_id, "life": 0}
    given = {**whose, **values}
    assert given.keys() - whose.keys() <= {*FACTS[name].names}
    return name, tuple(given.get(column) for column in FACTS[name].names)


def delivery(participant_id: str, at_ms: int, **values: object) -> Row:
    """The message `m` of alice in a log."""
    message = {"message_id": "m", "lamport_timestamp": 1_000, "sender_id": "alice"}
    return fact("Delivery", participant_id, at_ms=at_ms, **{**message, **values})


def facts(spark: SparkSession, *rows: Row) -> DataFrame:
    collected = FactBatches()
    batches = [batch for name, values in rows for batch in collected.add(name, values)]
    return spark.createDataFrame(pa.Table.from_batches([*batches, *collected.rest()]), FACT)


def rows_of(batches: Iterable[pa.RecordBatch]) -> dict[str, list[dict[str, Any]]]:
    """Facts by their kind, each with its own columns."""
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for kind, row in ((row["fact"], row) for batch in batches for row in batch.to_pylist()):
        names = FACTS[kind].names
        if kind in MANY:
            rows = rows_in(kind, row["channel_id"], row["many"], names)
            assert rows.num_rows == row["rows"]
            found[kind] += rows.to_pylist()
        else:
            values = {**row, **row["rare"][0]}
            found[kind].append({name: values[name] for name in names})
    return found
