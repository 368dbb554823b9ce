"""New lines, across everything that is done to a file that grows."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reliable_channel.spi import JOURNAL_FORMAT
from reliable_channel_audit import following, journals
from reliable_channel_audit.following import (
    GONE,
    Offset,
    Owners,
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
        self.owners: Owners = {}

    def new(self, budget_bytes: int | None = None) -> list[int | str | None]:
        """Times of the new lines, and why others could not be read."""
        found = journals_in([self._directory], self.owners)
        before, self._offset = self._offset, read_to(found, self._offset, budget_bytes)
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
    append(path, line(3))  # the writer goes on with its descriptor, without an opening line
    assert follower.new() == [2, 3]
    append(path, line(4))
    assert follower.new() == [4]


def test_a_line_torn_by_a_copy_and_truncation_costs_one_line(
    path: Path, follower: Follower
) -> None:
    append(path, opened(1))
    assert follower.new() == [1]
    shutil.copy(path, path.with_name("a.jsonl.1"))
    truncate(path)
    append(path, line(2)[20:], line(3))
    assert follower.new() == ["not JSON: torn, or not of a journal", 3]


def test_a_file_without_an_opening_line_is_of_no_one(path: Path, follower: Follower) -> None:
    append(path, line(1))
    assert follower.new() == []


def test_a_file_that_grew_beyond_its_old_size_after_a_truncation(
    path: Path, follower: Follower
) -> None:
    append(path, opened(1))
    assert follower.new() == [1]
    truncate(path)
    append(path, opened(2), line(3))
    assert follower.new() == [GONE, 2, 3]


def test_zstandard(path: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    compress = pytest.importorskip("zstandard").compress
    monkeypatch.setattr(following, "TAIL_BYTES", 200)
    times = list(range(1, 50))
    text = opened(1) + "".join(map(line, times[1:]))
    path.with_name("a.0001.jsonl.zst").write_bytes(compress(text.encode()))
    append(path, opened(50))
    found: list[int | str | None] = []
    while new := follower.new(1_000):
        assert len(new) < 30
        found += new
    assert found == [*times, 50]


def test_a_packed_file_beside_the_growing_one(path: Path, follower: Follower) -> None:
    path.with_name("a.jsonl.gz").write_bytes(gzip.compress((opened(1) + line(2)).encode()))
    append(path, opened(3))
    assert follower.new() == [1, 2, 3]
    append(path, line(4))
    assert follower.new() == [4]


def test_a_packed_copy_of_the_growing_file(path: Path, follower: Follower) -> None:
    append(path, opened(1))
    path.with_name("a.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    append(path, line(2))
    assert follower.new() == [1, 2]
    append(path, line(3))
    assert follower.new() == [3]


@pytest.mark.parametrize("module", [following, journals])
def test_a_failure_that_passes(
    path: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    append(path, opened(1))
    with monkeypatch.context() as failing:
        failing.setattr(module, "opened_file", refuse)
        assert follower.new() == []
    assert follower.new() == [1]


def test_an_unchanged_file_is_not_opened_again(
    path: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(path, opened(1))
    assert follower.new() == [1]
    truncate(path)
    append(path, line(2))
    assert follower.new() == [GONE, 2]
    monkeypatch.setattr(following, "opened_file", refuse)
    monkeypatch.setattr(journals, "opened_file", refuse)
    assert follower.new() == []
    assert list(journals_in([path], follower.owners)) == [str(path)]


def refuse(path: Path) -> Any:
    raise PermissionError(path)


def parts(path: Path, number: int) -> list[Path]:
    """Packed parts of two lines each, at times 10, 11, 20, 21, …"""
    packed = [path.with_name(f"a.{each:04}.jsonl.gz") for each in range(1, number + 1)]
    for each, part in enumerate(packed, 1):
        part.write_bytes(gzip.compress((opened(10 * each) + line(10 * each + 1)).encode()))
    return packed


def test_a_batch_has_several_packed_parts(path: Path, follower: Follower) -> None:
    parts(path, 3)
    append(path, opened(40))
    assert follower.new(10_000) == [10, 11, 20, 21, 30, 31, 40]


PART_BYTES = len(opened(10) + line(11))


def remove(part: Path) -> None:
    part.unlink()


def rename(part: Path) -> None:
    part.rename(part.with_name("a.jsonl.3.gz"))


def unpack(part: Path) -> None:
    part.with_name("a.jsonl.3").write_bytes(gzip.decompress(part.read_bytes()))
    part.unlink()


@pytest.mark.parametrize(("change", "reason"), [(remove, [GONE]), (rename, []), (unpack, [])])
def test_parts_removed_after_one_that_was_read_to_its_end(
    path: Path, follower: Follower, change: Callable[[Path], None], reason: list[str]
) -> None:
    first, second, _ = parts(path, 3)
    assert follower.new(PART_BYTES) == [10, 11]
    change(first)
    if reason:
        second.unlink()
    assert follower.new() == [*reason, *([] if reason else [20, 21]), 30, 31]


def test_an_offset_of_an_earlier_version_is_refused(path: Path) -> None:
    append(path, opened(1))
    found = journals_in([path])
    earlier: Any = {str(path): 12}
    with pytest.raises(ValueError, match="an earlier version wrote the checkpoint"):
        read_to(found, earlier)
    with pytest.raises(ValueError, match="an earlier version wrote the checkpoint"):
        list(stretches(found, earlier, read_to(found, {})))


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
