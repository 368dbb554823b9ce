"""The embedded node answers as nwaku was recorded to, or the difference is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.waku.node.replay import (
    FILES,
    RECORDINGS,
    Recording,
    differences_table,
    listed_differences,
    recordings,
    replay,
)

DOCS = Path(__file__).parents[3] / "docs" / "node.md"
LISTED = {name for listed in listed_differences() for name in listed.recordings}


@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.name)
def test_answer_is_the_recorded_one(recording: Recording) -> None:
    found = replay()[recording.name]
    if recording.name in LISTED:
        assert found, "listed in differences.toml, but it no longer differs"
    else:
        request = recording.request
        where = f"{recording.node}: {request['method']} {request['path']} {recording.note}"
        assert not found, "\n".join((where, *map(str, found)))


def test_trio_answers_the_same() -> None:
    assert replay("trio") == replay("asyncio")


def test_every_recording_is_replayed() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.json")} == set(FILES)
    assert len(replay()) == len(recordings()) == 326
    assert {recording.name for recording in recordings()} >= LISTED


def test_docs_list_the_differences() -> None:
    assert differences_table() in DOCS.read_text(), "docs/node.md: put differences_table() there"
