"""Lines watched as they come; what is told is told once, however often the stream is restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import TwsTester
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

from reliable_channel_audit import journals
from reliable_channel_audit.lines import SET_ASIDE, line_of
from reliable_channel_audit.live import _COLUMNS, Watcher, notices, start
from reliable_channel_audit.live_audit.alarms import KEEP_MS, MAX_OPEN, Notice, Watch, WatchedLine
from reliable_channel_audit.sources.journals import JournalSource, JournalStreamReader

from ..generated import write_group
from ..planted import plant

OWN: tuple[WatchedLine, ...] = ((10, "message_logged", "own", "own", None),)


def test_what_is_settled_is_told_with_how_long_it_took() -> None:
    watch = Watch()
    lines: list[WatchedLine] = [
        *OWN,
        (20, "message_missing", None, None, ["theirs", "gone"]),
        (50, "message_logged", "theirs", None, None),
        (70, "message_acknowledged", "own", None, None),
        (90, "message_lost", "gone", None, None),
    ]
    assert list(watch.take(lines, 0)) == [
        Notice("recovered", "theirs", 50, 30),
        Notice("acknowledged", "own", 70, 60),
        Notice("lost", "gone", 90, 70),
    ]
    assert not watch.open


def test_no_more_is_watched_than_there_is_room_for() -> None:
    watch = Watch()
    lines = [(at, "message_logged", f"m{at}", f"m{at}", None) for at in range(MAX_OPEN + 2)]
    told = list(watch.take(lines, 0))
    assert told == [
        Notice("forgotten", f"m{at}", MAX_OPEN + 1, MAX_OPEN + 1 - at) for at in range(2)
    ]
    assert len(watch.open) == MAX_OPEN


class OfTester(Watcher):
    """Spark's tester puts a key into one more tuple than Spark does."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Any:
        return super().handleInputRows(key[0], rows, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Any:
        return super().handleExpiredTimer(key[0], timerValues, expiredTimerInfo)


class Watched:
    """A participant's stream: Spark's own tester calls the processor as Spark does."""

    def __init__(self, patience_ms: int) -> None:
        self._tester = TwsTester(OfTester(patience_ms), timeMode="processingTime")

    def at(self, now_ms: int, *lines: WatchedLine) -> list[tuple[str, str, int]]:
        """What is told at this time of our clock, of these lines."""
        told = self._tester.setProcessingTime(now_ms)
        rows = [Row(**dict(zip(_COLUMNS, line, strict=True))) for line in lines]
        if rows:
            told += self._tester.test(("general", "alice"), rows)
        return [(row.kind, row.message_id, row.after_ms) for row in told]


def test_an_alarm_needs_no_further_line_and_is_told_once() -> None:
    """Alice's clock is not ours."""
    alice, noon_ms = Watched(100), 43_200_000
    assert not alice.at(noon_ms, *OWN)
    assert not alice.at(noon_ms + 100)
    assert alice.at(noon_ms + 101) == [("unacknowledged", "own", 101)]
    assert not alice.at(noon_ms + 500)
    acknowledged = (600, "message_acknowledged", "own", None, None)
    assert alice.at(noon_ms + 700, acknowledged) == [("acknowledged", "own", 590)]
    assert not alice.at(noon_ms + 10 * KEEP_MS)


def test_what_is_open_for_a_day_is_forgotten() -> None:
    alice = Watched(100)
    assert not alice.at(1_000, *OWN)
    assert alice.at(6_000) == [("unacknowledged", "own", 5_000)]
    assert alice.at(KEEP_MS + 1_001) == [("forgotten", "own", KEEP_MS + 1)]
    assert not alice.at(3 * KEEP_MS, (3 * KEEP_MS, "message_acknowledged", "own", None, None))


def test_a_stream_tells_each_thing_once(spark: SparkSession, tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    paths = write_group(journals, participants=2, messages=60)
    ((_, sender_id, lost_id),) = plant("a lost acknowledgement", paths[0], seed=1)
    whole = {path: path.read_bytes() for path in paths}
    for share in (0.4, 0.4, 1.0):  # the second time nothing is new; the first ends within a line
        for path, text in whole.items():
            path.write_bytes(text[: int(len(text) * share)])
        stream = spark.readStream.format("sds_journal").load(str(journals))
        writer = (
            notices(stream, patience_ms=5_000)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        start(writer, str(tmp_path / "notices"), until_now=True).awaitTermination()
    told = spark.read.parquet(str(tmp_path / "notices")).collect()
    settled = [row.message_id for row in told if row.kind == "acknowledged"]
    expected = sum(text.count(b'"message_acknowledged"') for text in whole.values())
    assert len(settled) == len(set(settled)) == expected
    alarms = {(row.participant_id, row.message_id) for row in told if row.kind == "unacknowledged"}
    assert (sender_id, lost_id) in alarms


def test_a_source_that_does_not_start_in_time_is_started_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its first process ends at once, so Spark waits for it for its ten seconds."""
    write_group(tmp_path / "journals", participants=2, messages=20)
    slow, python = tmp_path / "python", spark.sparkContext.pythonExec
    slow.write_text(
        f"""#!/bin/sh
case "$*" in *python_streaming_source_runner*) mkdir {tmp_path}/started 2>/dev/null && exit ;; esac
exec {python} "$@"
"""
    )
    slow.chmod(0o755)
    spark.sparkContext.pythonExec = str(slow)
    try:
        spark.dataSource.register(JournalSource)
        stream = spark.readStream.format("sds_journal").load(str(tmp_path / "journals"))
    finally:
        spark.sparkContext.pythonExec = python
        spark.dataSource.register(JournalSource)
    writer = stream.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    start(writer, str(tmp_path / "out"), until_now=True).awaitTermination()
    assert (tmp_path / "started").exists()
    lines = spark.read.parquet(str(tmp_path / "out")).count()
    assert lines == sum(path.read_bytes().count(b"\n") for path in tmp_path.rglob("*.jsonl"))


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
