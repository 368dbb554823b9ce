"""New lines, across everything that is done to a file that grows."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from reliable_channel.spi import JOURNAL_FORMAT
from reliable_channel_audit import journals
from reliable_channel_audit.live_audit.following import (
    GONE,
    Offset,
    journals_in,
    lines_of,
    read_to,
    stretches,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


class Follower:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offset: Offset = {}

    def new(self) -> list[int | str | None]:
        """Times of the new lines, and why others could not be read."""
        found = journals_in([self._directory])
        before, self._offset = self._offset, read_to(found, self._offset)
        new = [line for each in stretches(found, before, self._offset) for line in lines_of(each)]
        return [line.record if line.at_ms is None else line.at_ms for line in new]


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path)


def line(at_ms: int, event: str = "sending_message", **values: str) -> str:
    return json.dumps({"event": event, "at_ms": at_ms, **values}) + "\n"


def opened(at_ms: int) -> str:
    whose = {"channel_id": "general", "sender_id": "alice", "format": JOURNAL_FORMAT}
    return line(at_ms, "journal_opened", **whose)


def append(path: Path, *texts: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(texts))


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(0)


def test_only_whole_lines_and_each_once(path: Path, follower: Follower) -> None:
    assert follower.new() == []
    append(path, opened(1), line(2)[:-5])
    assert follower.new() == [1]
    assert follower.new() == []
    append(path, line(2)[-5:], "\n", line(4))
    assert follower.new() == [2, 4]


@pytest.mark.parametrize("name", ["a.0001.jsonl", "a.jsonl.1", "a.jsonl-20261127"])
def test_rotation_by_rename(path: Path, follower: Follower, name: str) -> None:
    append(path, opened(1))
    assert follower.new() == [1]
    append(path, line(2))
    part = path.rename(path.with_name(name))
    append(part, line(3))
    path.touch()
    append(path, opened(4), line(5))
    assert follower.new() == [2, 3, 4, 5]
    part.unlink()
    append(path, line(6))
    assert follower.new() == [6]


@pytest.mark.parametrize("packed", [False, True])
def test_rotation_by_copy(path: Path, follower: Follower, packed: bool) -> None:
    append(path, opened(1))
    assert follower.new() == [1]
    append(path, line(2))
    copy = path.with_name("a.jsonl.1")
    shutil.copy(path, copy)
    if packed:
        copy.with_name("a.jsonl.1.gz").write_bytes(gzip.compress(copy.read_bytes()))
        copy.unlink()
    truncate(path)
    append(path, opened(3))
    assert follower.new() == [2, 3]


def test_a_file_that_grew_beyond_its_old_size_after_a_truncation(
    path: Path, follower: Follower
) -> None:
    append(path, opened(1))
    assert follower.new() == [1]
    truncate(path)
    append(path, opened(2), line(3))
    assert follower.new() == [GONE, 2, 3]


def test_a_packed_part_that_breaks_off_is_read_as_far_as_it_goes(
    path: Path, follower: Follower
) -> None:
    whole = gzip.compress((opened(1) + "".join(map(line, range(2, 5_000)))).encode())
    path.with_name("a.0001.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    append(path, opened(5_000))
    first, *_, reason, last = follower.new()
    assert (first, last) == (1, 5_000)
    assert str(reason).startswith("the file cannot be read on: ")


def test_an_endless_line_is_passed_over(
    path: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "MAX_LINE_BYTES", 200)
    append(path, opened(1), "x" * 350)
    assert follower.new() == [1]
    append(path, "x" * 300 + "\n", line(2))
    assert follower.new() == ["longer than 200 bytes", 2]
