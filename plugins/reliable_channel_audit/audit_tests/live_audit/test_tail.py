"""New lines, across everything that is done to a file that grows."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reliable_channel_audit import journals
from reliable_channel_audit.lines import Line
from reliable_channel_audit.live_audit.tail import Tail


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


@pytest.fixture
def tail(path: Path) -> Iterator[Tail]:
    tail = Tail(path)
    yield tail
    tail.close()


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def new(tail: Tail) -> list[str]:
    return [each.record or "" if isinstance(each, Line) else each.decode() for each in tail.lines()]


def test_only_whole_lines_and_each_once(path: Path, tail: Tail) -> None:
    assert new(tail) == []
    append(path, "one\ntw")
    assert new(tail) == ["one\n"]
    assert new(tail) == []
    append(path, "o\n\nfour\n")
    assert new(tail) == ["two\n", "four\n"]
    assert tail.number == 4


def test_rotation_by_rename(path: Path, tail: Tail) -> None:
    append(path, "one\n")
    assert new(tail) == ["one\n"]
    append(path, "two\n")
    path.rename(path.with_name("a.0001.jsonl"))
    append(path.with_name("a.0001.jsonl"), "three\n")
    assert new(tail) == ["two\n", "three\n"]
    path.touch()
    append(path.with_name("a.0001.jsonl"), "four\n")  # the writer has not opened the new one yet
    assert new(tail) == ["four\n"]
    append(path, "five\n")
    path.with_name("a.0001.jsonl").unlink()
    assert new(tail) == ["five\n"]


@pytest.mark.parametrize("packed", [False, True])
def test_rotation_by_copy(path: Path, tail: Tail, packed: bool) -> None:
    append(path, "the first line\n")
    assert new(tail) == ["the first line\n"]
    append(path, "not seen before the copy\n")
    copy = path.with_name("a.jsonl.1")
    shutil.copy(path, copy)
    if packed:
        copy.with_name("a.jsonl.1.gz").write_bytes(gzip.compress(copy.read_bytes()))
        copy.unlink()
    shutil.copy(path, path.with_name("a.jsonl.2"))
    with path.open("r+b") as file:
        file.truncate(0)
    append(path, "after it\n")
    assert new(tail) == ["not seen before the copy\n", "after it\n"]
    assert tail.number == 1


def test_a_file_that_grew_beyond_its_old_size_after_a_truncation(path: Path, tail: Tail) -> None:
    append(path, "one\n")
    assert new(tail) == ["one\n"]
    with path.open("r+b") as file:
        file.truncate(0)
    append(path, "another and longer\nand more\n")
    assert new(tail) == ["another and longer\n", "and more\n"]


def test_an_endless_line_is_passed_over(
    path: Path, tail: Tail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "MAX_LINE_BYTES", 100)
    append(path, "one\n" + "x" * 350)
    assert new(tail) == ["one\n", "longer than 100 bytes"]
    append(path, "x" * 300 + "\ntwo\n")
    assert new(tail) == ["two\n"]
