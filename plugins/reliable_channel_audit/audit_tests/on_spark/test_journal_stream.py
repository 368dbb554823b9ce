"""Journals as they grow: a stretch of a file has its bytes, wherever the stretch begins."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random
from sys import maxsize
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from reliable_channel.transport.base import Source
from reliable_channel_audit import following
from reliable_channel_audit.following import GONE, Offset
from reliable_channel_audit.journals import group_of, journal_files, lived
from reliable_channel_audit.lines import SET_ASIDE
from reliable_channel_audit.sources.journals import JournalStreamReader

from ..generated import Packet, Writer, write_group


@pytest.mark.parametrize("window", [100, 2_000, 2_000_000])
def test_a_stretch_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(following, "FRESH_BYTES", window)
    (path, *_) = write_group(tmp_path / "whole", participants=1, messages=60)
    text = path.read_bytes()
    grown = tmp_path / "growing" / "p000.jsonl"
    grown.parent.mkdir()
    reader = JournalStreamReader([str(grown.parent)])
    found, start = [], reader.initialOffset()
    for length in (len(text) // 3, len(text) // 2, len(text)):
        grown.write_bytes(text[:length])
        end = reader.latestOffset(start, ReadAllAvailable())
        for stretch in reader.partitions(start, end):
            for batch in reader.read(stretch):
                events, payloads = (batch.column(name) for name in ("event", "payload"))
                found += list(zip(events.to_pylist(), payloads.to_pylist(), strict=True))
        start = end
    (whose,) = group_of([path]).participants
    noted = lived(whose.channel_id, whose.participant_id, whose.paths)
    assert found == [(each.line.event, each.line.payload) for each in noted]


class Stream:
    """What Spark does with a reader: it plans a batch, notes it as JSON, and reads it."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        directory.mkdir()
        self.reader = JournalStreamReader([str(directory)], max_bytes)
        self.batches: list[tuple[Offset, Offset]] = []
        self.rows: list[dict[str, Any]] = []

    def step(self, limit: ReadLimit | None = None) -> bool:
        """Read a batch; False if nothing is new."""
        start = self.batches[-1][1] if self.batches else self.reader.initialOffset()
        planned = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        end: Offset = json.loads(json.dumps(planned))
        if end == start:
            return False
        self.batches.append((start, end))
        self.rows += self.read(start, end)
        return True

    def read(self, start: Offset, end: Offset) -> list[dict[str, Any]]:
        partitions = self.reader.partitions(start, end)
        read = (batch for each in partitions for batch in self.reader.read(each))
        return [row for batch in read for row in batch.to_pylist()]


def by_participant(rows: Iterable[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    names = "at_ms", "message_id", "message_hash", "payload", "position"
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        line = tuple(row[name] for name in names)
        found.setdefault(row["participant_id"], []).append(line)
    return found


def whole(directory: Path) -> dict[str, list[tuple[Any, ...]]]:
    rows = (
        {"participant_id": each.participant_id, **noted.line._asdict()}
        for each in group_of(journal_files([directory])).participants
        for noted in lived(each.channel_id, each.participant_id, each.paths)
    )
    return by_participant(rows)


def test_no_line_is_lost_or_doubled_when_the_sdk_rotates_its_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are renamed and packed while batches are planned and read; what was planned gives the
    same lines again when all of it is packed."""
    stream, random = Stream(tmp_path / "journals", max_bytes=30_000), Random(1)
    receive = Writer.receive

    def received(writer: Writer, packet: Packet, source: Source, at_ms: int) -> None:
        receive(writer, packet, source, at_ms)
        if random.random() < 0.1:
            stream.step()

    monkeypatch.setattr(Writer, "receive", received)
    write_group(tmp_path / "journals", part_bytes=20_000)
    assert len(list((tmp_path / "journals").glob("*.gz"))) > 20
    while stream.step():
        pass
    assert by_participant(stream.rows) == whole(tmp_path / "journals")
    again = [row for batch in stream.batches for row in stream.read(*batch)]
    assert by_participant(again) == by_participant(stream.rows)
    assert len(stream.batches) > 20


@pytest.mark.parametrize("max_bytes", [1, 5_000, 10**9])
def test_a_batch_obeys_its_limit(tmp_path: Path, max_bytes: int) -> None:
    stream = Stream(tmp_path / "journals", max_bytes)
    paths = write_group(tmp_path / "journals", participants=2, messages=30, part_bytes=20_000)
    stream.reader.prepareForTriggerAvailableNow()
    there = whole(tmp_path / "journals")
    with paths[0].open("ab") as file:
        file.write(b'{"event":"late","at_ms":1}\n')  # after the query began: it is for the next
    while stream.step():
        pass
    assert by_participant(stream.rows) == there
    longest = max(len(line) for path in paths for line in path.read_bytes().splitlines(True))
    for batch in stream.batches:
        planned = [each.value for each in stream.reader.partitions(*batch)]
        sizes = [each.end - each.begin for each in planned if each.end < maxsize]
        assert sum(sizes) <= max(max_bytes, 2 * longest)
        if max_bytes == 1:
            assert len(stream.read(*batch)) <= 2, "a line of each journal"


def test_a_part_that_was_removed_unread_shows(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "journals", max_bytes=2_000)
    write_group(tmp_path / "journals", participants=1, messages=60, part_bytes=20_000)
    assert stream.step()
    first, *_ = sorted(tmp_path.rglob("*.gz"))
    first.unlink()
    known = len(stream.rows)
    while stream.step():
        pass
    assert stream.rows[known]["event"] == SET_ASIDE
    assert stream.rows[known]["record"] == GONE
    rest = whole(tmp_path / "journals")["p000"]
    assert by_participant(stream.rows[known + 1 :])["p000"] == rest


def test_a_journal_that_was_copied_and_truncated_is_read_on(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "journals", max_bytes=10**9)
    (path,) = write_group(tmp_path / "journals", participants=1)
    assert stream.step()
    shutil.copy(path, path.with_name(f"{path.name}.1"))
    path.write_bytes(b'{"event":"journal_closed","at_ms":1800000000000}\n')
    assert stream.step()
    assert (stream.rows[-1]["participant_id"], stream.rows[-1]["at_ms"]) == ("p000", 18 * 10**11)
