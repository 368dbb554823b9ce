"""Store as a source, from an embedded node over its REST API."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import time_ns

import anyio
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, GreaterThan, IsNull, LessThanOrEqual

from reliable_channel_audit.sources.store import StoreReader, Wanted
from tests.cli.processes import Node
from waku import WakuClient, WakuMessage

TOPICS = ("/pipeline/1/one/proto", "/pipeline/1/two/proto")
COUNT = 250


@pytest.fixture(scope="module")
def node() -> Iterator[tuple[str, int]]:
    """A node with messages a millisecond apart, and when the first was sent."""
    with Node() as node:
        first_ns = time_ns() - COUNT * 1_000_000
        anyio.run(publish, node.address, first_ns, COUNT)
        yield node.address, first_ns


async def publish(address: str, first_ns: int, count: int) -> None:
    async with WakuClient(address) as client:
        for number in range(count):
            timestamp_ns = first_ns + number * 1_000_000
            topic = TOPICS[number % 2]
            await client.relay_auto_publish(
                WakuMessage(
                    payload=f"{number}".encode(), content_topic=topic, timestamp=timestamp_ns
                )
            )


def test_all_that_is_stored_is_read_once(spark: SparkSession, node: tuple[str, int]) -> None:
    address, first_ns = node
    frame = spark.read.format("waku-store").option("node", address).load()
    rows = frame.select("message_hash", "payload", "timestamp_ns").collect()
    assert sorted(int(row.payload) for row in rows) == list(range(COUNT))
    assert len({bytes(row.message_hash) for row in rows}) == COUNT
    assert min(row.timestamp_ns for row in rows) == first_ns

    some = frame.where("content_topic = '/pipeline/1/two/proto'").where(
        f"timestamp_ns >= {first_ns + 100 * 1_000_000}"
    )
    assert sorted(int(row.payload) for row in some.collect()) == list(range(101, COUNT, 2))


def test_a_stream_goes_on_where_it_was(
    spark: SparkSession, node: tuple[str, int], tmp_path: Path
) -> None:
    address, first_ns = node
    half_ns = first_ns + (COUNT // 2) * 1_000_000
    for end_ns, expected in ((half_ns - 1, COUNT // 2), (2**63 - 1, COUNT)):
        stream = (
            spark.readStream.format("waku-store")
            .options(node=address, lag_ms=0, partitions=2, end_ns=end_ns, start_ns=first_ns)
            .load()
        )
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "stored"))
        )
        query.awaitTermination()
        stored = spark.read.parquet(str(tmp_path / "stored"))
        assert stored.count() == stored.select("message_hash").distinct().count() == expected


def test_what_a_node_can_check_is_left_to_it() -> None:
    reader = StoreReader(Wanted(node="http://node", start_ns=10))
    nodes = [
        GreaterThan(("timestamp_ns",), 99),
        LessThanOrEqual(("timestamp_ns",), 200),
        EqualTo(("content_topic",), TOPICS[0]),
    ]
    ours = IsNull(("meta",))
    assert list(reader.pushFilters([*nodes, ours])) == [ours]
    ranges = [part.wanted for part in reader.partitions()]
    assert [(each.start_ns, each.end_ns) for each in ranges] == [
        (100, 125),
        (126, 151),
        (152, 177),
        (178, 200),
    ]
    assert {each.content_topics for each in ranges} == {(TOPICS[0],)}


def test_a_second_topic_is_checked_by_spark() -> None:
    reader = StoreReader(Wanted(node="http://node", content_topics=(TOPICS[0],)))
    other = EqualTo(("content_topic",), TOPICS[1])
    assert list(reader.pushFilters([other])) == [other]


def test_options_that_are_none() -> None:
    with pytest.raises(ValueError, match="waku-store needs the address of a node"):
        Wanted.of({})
    with pytest.raises(ValueError, match="option partitions must be a whole number of at least 1"):
        Wanted.of({"node": "http://node", "partitions": "0"})
    with pytest.raises(ValueError, match=r"option lag_ms must be .* \(got '1 minute'\)"):
        Wanted.of({"node": "http://node", "lag_ms": "1 minute"})


@pytest.mark.parametrize("partitions", [1, 3, 4, 1_000])
def test_ranges_leave_nothing_out(partitions: int) -> None:
    wanted = Wanted(node="http://node", start_ns=10, end_ns=10_000, partitions=partitions)
    for oldest_ns, now_ns in ((1, 20_000), (500, 9_000), (500, 500), (20_000, 30_000), (1, 5)):
        ranges = [part.wanted for part in wanted.split(oldest_ns, now_ns)]
        assert (ranges[0].start_ns, ranges[-1].end_ns) == (10, 10_000)
        assert all(b.start_ns == a.end_ns + 1 for a, b in pairwise(ranges))
        assert len(ranges) <= partitions
    assert not Wanted(node="http://node", start_ns=11, end_ns=10).split(1, 100)
