"""Messages kept as files, each once, however often and in whatever overlapping parts they come."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from reliable_channel_audit.archiving import FORMATS, open_archive, read_archive
from reliable_channel_audit.databases import Row

DAY_NS = 86_400 * 10**9
COUNT = 300
SEED = 5


def row(number: int) -> Row:
    payload = number.to_bytes(2)
    topic = f"/it's a/1/topic {number % 3}/proto"
    at_ns = 1_700_000_000_000_000_000 + number * DAY_NS // 100
    return sha256(payload).digest(), "/waku/2/rs/1/0", topic, at_ns, payload, None


ROWS = [row(number) for number in range(COUNT)]


def kept(directory: Path, form: str) -> list[tuple[bytes, str, int, bytes]]:
    names = ["message_hash", "content_topic", "timestamp_ns", "payload"]
    columns = read_archive(directory, form).select(names).to_pydict()
    return sorted(zip(*columns.values(), strict=True), key=lambda each: each[2])


@pytest.mark.parametrize("form", FORMATS)
def test_what_comes_again_is_kept_once(form: str, tmp_path: Path) -> None:
    random, directory = Random(SEED), tmp_path / "archive"
    archive, added = open_archive(directory, form), 0
    for turn in range(6):
        if turn == 3:
            archive = open_archive(directory, form)  # another run
        first = random.randrange(COUNT)
        some = ROWS[first:] + ROWS[: random.randrange(COUNT)]
        added += archive.add(random.sample(some, len(some)))
    added += archive.add(ROWS)
    assert added == COUNT, f"seed {SEED}"
    assert archive.add(ROWS) == 0
    assert kept(directory, form) == [(each[0], each[2], each[3], each[4]) for each in ROWS]


def test_a_file_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    archive = open_archive(tmp_path, "parquet")
    archive.add(ROWS[:5])
    (folder, *_) = sorted(tmp_path.glob("day=*/content_topic=*"))
    (folder / ".0123.tmp").write_bytes(b"half a file")
    assert open_archive(tmp_path, "parquet").add(ROWS[:10]) == 5
    assert len(kept(tmp_path, "parquet")) == 10


def test_a_long_content_topic_is_kept_under_its_hash_beside_the_others(tmp_path: Path) -> None:
    topic = "/" + "💥" * 90
    _, pubsub_topic, _, at_ns, payload, meta = row(1)
    long = sha256(b"long").digest(), pubsub_topic, topic, at_ns, payload, meta
    archive = open_archive(tmp_path, "parquet")
    assert archive.add([ROWS[0], long]) == 2 and archive.add([long]) == 0
    topics = {each[0]: each[1] for each in kept(tmp_path, "parquet")}
    assert topics == {
        ROWS[0][0]: ROWS[0][2],
        long[0]: f"sha256-{sha256(topic.encode()).hexdigest()}",
    }


def test_spark_reads_what_was_kept(spark: SparkSession, tmp_path: Path) -> None:
    open_archive(tmp_path, "parquet").add(ROWS)
    names = "message_hash", "pubsub_topic", "content_topic", "timestamp_ns", "payload", "meta"
    frame = spark.read.parquet(str(tmp_path)).select(*names)
    found = [(bytes(each[0]), *each[1:4], bytes(each[4]), each[5]) for each in frame.collect()]
    assert sorted(found, key=lambda each: each[3]) == ROWS


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"format of an archive must be parquet or delta \(got 'csv'\)"
    ):
        open_archive(tmp_path, "csv")
