"""Other users of the machine read what lies there: files are made for their owner alone."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reliable_channel.engine.rate_limit import Spent
from reliable_channel.runtime.budget_file import BudgetFile
from reliable_channel.runtime.journal import Journal
from waku.node.store import Archive


@pytest.fixture(autouse=True)
def permissive() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def journal(path: Path, part_bytes: int = 1_000_000) -> Journal:
    return Journal(
        path,
        channel_id="ops",
        sender_id="alice",
        content_topic="/app/1/chat/proto",
        part_bytes=part_bytes,
    )


def modes(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


def test_files_are_readable_to_their_owner_alone(tmp_path: Path) -> None:
    with journal(tmp_path / "alice.jsonl", part_bytes=1) as noted:
        noted.opened(at_ms=0, wanted_from_ms=None, log_length=0, options={})
        noted.closed(1)  # begins a new file, and packs this one
    BudgetFile(tmp_path / "rate").save(Spent(7, 1))
    store = Archive(tmp_path / "store.db")
    found = modes(tmp_path)
    store.close()
    files = ["alice.jsonl", "alice.0001.jsonl.gz", "rate", "store.db", "store.db-wal"]
    assert found == dict.fromkeys([*files, "store.db-shm"], 0o600)


@pytest.mark.parametrize("make", [journal, Archive])
def test_a_file_that_is_there_keeps_its_mode(
    make: Callable[[Path], Journal | Archive], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.touch(0o640)
    make(path).close()
    assert modes(tmp_path)["file"] == 0o640
