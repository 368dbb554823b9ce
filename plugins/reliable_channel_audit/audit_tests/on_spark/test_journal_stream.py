"""Journals as they grow: a stretch of a file has its bytes, wherever the stretch begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from reliable_channel_audit.journals import group_of, lived
from reliable_channel_audit.sources import journals
from reliable_channel_audit.sources.journals import JournalStreamReader

from ..generated import write_group


@pytest.mark.parametrize("window", [100, 2_000, 2_000_000])
def test_a_stretch_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(journals, "FRESH_BYTES", window)
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
