"""The causal DAG as DataFrames, made of the messages in `sds_said`: each channel a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from .dag import Said, places
from .dag_picture import MAX_DRAWN
from .frames import MESSAGE
from .schemas import PLACE, SAID
from .sources.batches import arrow_schema, batches, rows_of

NODE: Final = StructType([*PLACE]).add("drawn", SAID)
"""A `PLACE`, and the message itself where it is to be drawn."""
MAX_MS: Final = 2**63 - 1
_REST: Final = [name for name in SAID.names if name not in MESSAGE]


def read_said(
    spark: SparkSession, paths: Sequence[str | Path], *, partitions: int | None = None
) -> DataFrame:
    """What was said and what it refers to, as each participant has it."""
    reader = spark.read.format("sds_said")
    if partitions is not None:
        reader = reader.option("partitions", partitions)
    return reader.load([str(Path(path).resolve()) for path in paths])


def union(said: DataFrame) -> DataFrame:
    """Each message once, as the first participant to see it has it; for one participant's DAG,
    choose its messages before."""
    first = F.min_by(F.struct(*_REST), F.struct("at_ms", "participant_id"))
    firsts = said.groupBy(*MESSAGE).agg(first.alias("first"))
    return firsts.select(*MESSAGE, "first.*").select(*SAID.names)


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
    """A row for each message, with its place in the DAG (`dag.DagPosition`)."""
    return placed(union(said)).select(*PLACE.names)


def placed(messages: DataFrame, begin_ms: int = 0, end_ms: int = MAX_MS) -> DataFrame:
    """`NODE`s, of a `union`; to be drawn are those between two times."""

    def of_channel(messages: pa.Table) -> pa.Table:
        return _placed(map(Said._make, rows_of(messages.to_batches())), begin_ms, end_ms)

    return messages.groupBy("channel_id").applyInArrow(of_channel, NODE)


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


def last_of(nodes: DataFrame, begin_ms: int = 0, end_ms: int = MAX_MS) -> list[Said]:
    """The last `MAX_DRAWN` messages between two times, in log order, of the channel in which most
    was said then; of `NODE`s that were made for these times."""
    there = nodes.where(F.col("at_ms").between(begin_ms, end_ms))
    counts = there.groupBy("channel_id").count().orderBy(F.desc("count"), "channel_id")
    rows = (
        there.where("drawn is not null")
        .join(counts.limit(1), "channel_id", "left_semi")
        .orderBy("lamport_timestamp", "message_id")
        .select("drawn.*")
        .collect()
    )
    return [Said(*row) for row in rows]


def write_parquet(nodes: DataFrame, path: Path) -> None:
    """Write the `PLACE`s to a file here, a batch at a time: they are not gathered in memory."""
    schema = arrow_schema(PLACE)
    with pq.ParquetWriter(path, schema) as file:
        for row in (
            nodes.select(*PLACE.names).mapInArrow(_as_bytes, "batch binary").toLocalIterator()
        ):
            for batch in pa.ipc.open_stream(row.batch):
                file.write_batch(batch.cast(schema))


def _as_bytes(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for each in given:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, each.schema) as stream:
            stream.write_batch(each)
        yield pa.RecordBatch.from_pydict({"batch": [sink.getvalue().to_pybytes()]})


def _placed(said: Iterable[Said], begin_ms: int, end_ms: int) -> pa.Table:
    """`NODE`s of all messages of one channel."""
    order = sorted(said, key=lambda each: (each.lamport_timestamp, each.message_id))
    there = [each for each in order if begin_ms <= each.at_ms <= end_ms]
    drawn = {each.message_id: each._asdict() for each in there[-MAX_DRAWN:]}
    channel_id, schema = order[0].channel_id, arrow_schema(NODE)
    found = ((channel_id, *place, drawn.get(place.message_id)) for place in places(order))
    return pa.Table.from_batches(batches(found, schema), schema)
