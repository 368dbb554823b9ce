"""The embedded node answers as nwaku was recorded to, or the difference is listed."""

from __future__ import annotations

from pathlib import Path

from tests.waku.node.replay import (
    FILES,
    RECORDINGS,
    differences_table,
    listed_differences,
    recordings,
    replay,
)

DOCS = Path(__file__).parents[3] / "docs" / "node.md"
LISTED = {name for listed in listed_differences() for name in listed.recordings}


def test_answers_are_the_recorded_ones() -> None:
    found = replay()
    assert not [name for name in LISTED if not found[name]], "listed, but they no longer differ"
    for each in recordings():
        where = f"{each.node}: {each.request['method']} {each.request['path']} {each.note}"
        assert each.name in LISTED or not found[each.name], where


def test_trio_answers_the_same() -> None:
    assert replay("trio") == replay("asyncio")


def test_every_recording_is_replayed() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.json")} == set(FILES)
    assert len(replay()) == len(recordings()) == 326
    assert {recording.name for recording in recordings()} >= LISTED


def test_docs_list_the_differences() -> None:
    assert differences_table() in DOCS.read_text(), "docs/node.md: put differences_table() there"
