"""The causal DAG as DataFrames, made of the messages in `sds_said`: each channel a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .audits import MESSAGE, alike, table
from .dag import Said, places
from .dag_picture import MAX_DRAWN
from .schemas import PLACE, SAID
from .sources.batches import arrow_schema, batches, rows_of

_REST: Final = [name for name in SAID.names if name not in MESSAGE]


def union(said: DataFrame) -> DataFrame:
    """Each message once, as the first participant to see it has it; for one participant's DAG,
    choose its messages before."""
    first = F.min_by(F.struct(*_REST), F.struct("at_ms", "participant_id"))
    firsts = said.groupBy(*MESSAGE).agg(first.alias("first"))
    return firsts.select(*MESSAGE, "first.*").select(*SAID.names)


def said_in(facts: DataFrame, said: DataFrame) -> DataFrame:
    """Messages and what they refer to, from facts where these have all: of channels that are
    `alike` and whose senders all left journals, each message as its sender has it.

    Of other channels from `said`, for which journals are read once more.
    """
    own, lives = table(facts, "Said"), table(facts, "Life")
    counts = own.groupBy("channel_id").agg(F.count_distinct("message_id").alias("messages"))
    told = alike(lives).join(counts, ["channel_id", "messages"]).select("channel_id")
    rest = lives.select("channel_id").distinct().join(told, "channel_id", "left_anti")
    if rest.isEmpty():
        return own
    others = said.join(F.broadcast(told), "channel_id", "left_anti")
    return own.join(F.broadcast(told), "channel_id", "left_semi").unionByName(others)


def edges(said: DataFrame) -> DataFrame:
    """A row for each reference; `is_known` is false where no participant has the message."""
    messages = union(said)
    there = messages.select(
        "channel_id", F.col("message_id").alias("refers_to"), F.lit(True).alias("known")
    )
    return (
        messages.select(*MESSAGE, F.explode(F.array_distinct("references")).alias("refers_to"))
        .join(there, ["channel_id", "refers_to"], "left")
        .select(*MESSAGE, "refers_to", F.coalesce("known", F.lit(False)).alias("is_known"))
    )


def nodes(said: DataFrame) -> DataFrame:
    """A row for each message, with its place in the DAG (`dag.Place`)."""
    return placed(union(said))


def placed(messages: DataFrame) -> DataFrame:
    """`nodes`, of a `union`."""
    return messages.groupBy("channel_id").applyInArrow(_of_channel, PLACE)


def shape(nodes: DataFrame) -> DataFrame:
    """Messages and references, a channel a row.

    Depth is the longest chain, width the most messages whose chains have one length: they cannot
    know of each other. Branches went on side by side, heads were open at the end; orphans refer to
    messages that no participant has.
    """
    levels = nodes.groupBy("channel_id", "depth").agg(F.count("*").alias("n")).where("depth > 0")
    width = levels.groupBy("channel_id").agg(F.max("n").alias("width"))
    return (
        nodes.groupBy("channel_id")
        .agg(
            F.count("*").alias("messages"),
            F.sum("references").alias("edges"),
            F.max("depth").alias("depth"),
            F.avg("branches").alias("branches"),
            F.max("branches").alias("most_branches"),
            F.count_if("is_head").alias("heads"),
            F.count_if(F.col("orphaned") > 0).alias("orphans"),
            F.count_if(F.col("depth").isNull()).alias("in_circles"),
        )
        .join(width, "channel_id", "left")
        .orderBy("channel_id")
    )


def window(said: DataFrame, begin_ms: int = 0, end_ms: int = 2**63 - 1) -> list[Said]:
    """The last `MAX_DRAWN` messages between two times, in log order; of the channel in which most
    was said then."""
    return last_of(union(said), begin_ms, end_ms)


def last_of(messages: DataFrame, begin_ms: int, end_ms: int) -> list[Said]:
    """`window`, of a `union`."""
    there = messages.where(F.col("at_ms").between(begin_ms, end_ms))
    counts = there.groupBy("channel_id").count().orderBy(F.desc("count"), "channel_id")
    rows = (
        there.join(counts.limit(1), "channel_id", "left_semi")
        .orderBy(F.desc("lamport_timestamp"), F.desc("message_id"))
        .limit(MAX_DRAWN)
        .collect()
    )
    return [Said(*row) for row in reversed(rows)]


def write_parquet(nodes: DataFrame, path: Path) -> None:
    """Write `nodes` to a file here, a batch at a time: they are not gathered in memory."""
    schema = arrow_schema(PLACE)
    with pq.ParquetWriter(path, schema) as file:
        for row in nodes.mapInArrow(_as_bytes, "batch binary").toLocalIterator():
            for batch in pa.ipc.open_stream(row.batch):
                file.write_batch(batch.cast(schema))


def _as_bytes(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for each in given:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, each.schema) as stream:
            stream.write_batch(each)
        yield pa.RecordBatch.from_pydict({"batch": [sink.getvalue().to_pybytes()]})


def _of_channel(messages: pa.Table) -> pa.Table:
    rows = [Said(*row) for row in rows_of(messages.to_batches())]
    schema = arrow_schema(PLACE)
    nodes = ((rows[0].channel_id, *place) for place in places(rows))
    return pa.Table.from_batches(batches(nodes, schema), schema)
