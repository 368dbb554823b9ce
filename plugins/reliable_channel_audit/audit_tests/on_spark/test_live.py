"""Lines watched as they come; what is told is told once, however often the stream is restarted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from reliable_channel_audit import journals
from reliable_channel_audit.lines import SET_ASIDE, line_of
from reliable_channel_audit.live import Notice, Watch, notices
from reliable_channel_audit.sources.journals import JournalStreamReader

from ..generated import write_group
from ..planted import plant


def test_what_is_settled_is_told_with_how_long_it_took() -> None:
    watch = Watch()
    lines = [
        (10, "message_logged", "own", "own", None),
        (20, "message_missing", None, None, ["theirs", "gone"]),
        (50, "message_logged", "theirs", None, None),
        (70, "message_acknowledged", "own", None, None),
        (90, "message_lost", "gone", None, None),
    ]
    assert list(watch.notices(lines, 1_000)) == [
        Notice("recovered", "theirs", 50, 30),
        Notice("acknowledged", "own", 70, 60),
        Notice("lost", "gone", 90, 70),
    ]
    assert watch == Watch()


def test_an_alarm_is_told_once() -> None:
    watch = Watch()
    assert not list(watch.notices([(10, "message_logged", "own", "own", None)], 100))
    later = [(111, "message_logged", "other", None, None)]
    assert list(watch.notices(later, 100)) == [Notice("unacknowledged", "own", 111, 101)]
    assert not list(watch.notices(later, 100))
    acknowledged = [(200, "message_acknowledged", "own", None, None)]
    assert list(watch.notices(acknowledged, 100)) == [Notice("acknowledged", "own", 200, 190)]


def test_a_stream_tells_each_thing_once(spark: SparkSession, tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    paths = write_group(journals, participants=2, messages=60)
    ((_, sender_id, lost_id),) = plant("lost ack", paths[0], seed=1)
    whole = {path: path.read_bytes() for path in paths}
    for share in (0.4, 0.4, 1.0):  # the second time nothing is new; the first ends within a line
        for path, text in whole.items():
            path.write_bytes(text[: int(len(text) * share)])
        stream = spark.readStream.format("sds_journal").load(str(journals))
        query = (
            notices(stream, patience_ms=5_000)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "notices"))
        )
        query.awaitTermination()
    told = spark.read.parquet(str(tmp_path / "notices")).collect()
    settled = [row.message_id for row in told if row.kind == "acknowledged"]
    expected = sum(text.count(b'"message_acknowledged"') for text in whole.values())
    assert len(settled) == len(set(settled)) == expected
    alarms = {(row.participant_id, row.message_id) for row in told if row.kind == "unacknowledged"}
    assert (sender_id, lost_id) in alarms


def test_an_endless_line_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MAX_LINE_BYTES", 10_000)
    (path, *_) = write_group(tmp_path, participants=1, messages=20)
    lines = path.read_bytes().splitlines(keepends=True)
    reader = JournalStreamReader([str(tmp_path)])
    offset = reader.initialOffset()
    events: list[str] = []
    for some in (lines[:5], [b"x" * 35_000, b"\n", b"\n", *lines[5:]]):
        path.write_bytes(b"".join([*lines[:5], *some] if events else some))
        end = reader.latestOffset(offset, ReadAllAvailable())
        for part in reader.partitions(offset, end):
            events += [row["event"] for each in reader.read(part) for row in each.to_pylist()]
        offset = end
    known = [line_of(line).event for line in lines]
    assert events == [*known[:5], SET_ASIDE, *known[5:]]
