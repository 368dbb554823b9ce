"""Archives of stored messages as Parquet files, partitioned as an operator would."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel_audit.decode import decoded
from reliable_channel_audit.schemas import STORED
from reliable_channel_audit.stored import by_day, stored

from .test_decode import SAID

DAY_NS = 24 * 3_600 * 1_000_000_000
START_NS = 1_700_000_000_000_000_000  # 2023-11-14, 22:13 UTC
TOPICS = ("/pipeline/1/one/proto", "/pipeline/1/a b=c%2F/proto", "17")


@pytest.fixture(scope="module")
def messages(spark: SparkSession) -> DataFrame:
    payload = SpecCodec().encode(SAID)
    rows = [
        (
            bytes([number]) * 32,
            "/waku/2/rs/1/0",
            TOPICS[number % 3],
            START_NS + number * DAY_NS // 4,
            payload if number % 2 else b"\xff",
            None,
        )
        for number in range(24)
    ]
    return spark.createDataFrame(rows, STORED)


@pytest.fixture(scope="module")
def archive(messages: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "archive"
    by_day(messages).write.partitionBy("day", "content_topic").parquet(str(path))
    return path


def test_an_archive_is_what_was_stored(
    spark: SparkSession, messages: DataFrame, archive: Path
) -> None:
    days = sorted(path.name for path in archive.glob("day=*"))
    assert (days[0], days[-1], len(days)) == ("day=2023-11-14", "day=2023-11-20", 7)
    assertDataFrameEqual(spark.read.parquet(str(archive)).transform(stored), messages)

    found = spark.read.parquet(str(archive)).where("day = '2023-11-15'")
    said = found.transform(stored).transform(decoded)
    assert said.where("message.message_id = 'm3'").count() == 2
    assert said.where("message.error like 'not an SDS message%'").count() == 2


def test_topics_that_look_like_numbers_are_text(spark: SparkSession, archive: Path) -> None:
    one_day = spark.read.parquet(str(next(archive.glob("day=*")) / "content_topic=17"))
    frame = one_day.withColumn("content_topic", F.lit(17))  # as Spark takes it from a path
    assert {row.content_topic for row in frame.transform(stored).collect()} == {"17"}


def test_what_is_missing_is_named(messages: DataFrame) -> None:
    with pytest.raises(
        ValueError, match="no stored messages: no column message_hash, meta; needed"
    ):
        stored(messages.drop("meta", "message_hash"))
    text = messages.withColumn("payload", F.base64("payload"))
    with pytest.raises(ValueError, match="payload is string and no binary; needed"):
        stored(text)
    time = messages.withColumn("timestamp_ns", F.current_timestamp())
    with pytest.raises(ValueError, match="timestamp_ns is timestamp and no bigint"):
        stored(time)
