"""A state file opens after a crash at any write below SQLite, with all that was promised."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import get_args

import pytest

from reliable_channel.state import SqliteStateStore, files
from reliable_channel.state.sqlite import Durability
from tests.sds.test_restoring import remembered

from .images import DB, Crash, Image, Recording, Sync
from .scripted import begin

SEED = 29
FEW, MANY = 30, 500
"""How many images of each durability."""


@pytest.fixture(scope="module", params=get_args(Durability))
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    return Recording(tmp_path_factory.mktemp("recorded") / "state.db", request.param)


def test_images_of_some_crashes_open(recording: Recording, tmp_path: Path) -> None:
    random = Random(SEED)
    for crash, number in random.sample([*recording.crashes()], FEW):
        see(recording, crash, number, random, tmp_path)


@pytest.mark.slow
def test_images_of_a_kill_at_each_write_and_of_others_open(
    recording: Recording, tmp_path: Path
) -> None:
    random, crashes = Random(SEED), [*recording.crashes()]
    killed = [each for each in crashes if each[0] == "killed"]
    others = [each for each in crashes if each[0] != "killed"]
    for crash, number in killed + random.sample(others, MANY - len(killed)):
        see(recording, crash, number, random, tmp_path)


def see(recording: Recording, crash: Crash, number: int, random: Random, directory: Path) -> None:
    """See that `state check`, `state list` and a start find what must be in an image."""
    path = directory / f"{crash} {number}.db"
    image = Image.after(recording, crash, number, random)
    image.put(path)
    problems = files.check(path)
    lacks = "" if problems else files.lacking(path)
    if image.accepted:
        assert files.summary(path).sender_id == "alice"
    store = SqliteStateStore(path)
    core, overlay = begin(store)
    found = recording.states.index(remembered(core)) + 1
    overlay.close()
    store.close()
    if image.accepted:
        assert image.at_least <= found <= image.accepted + 1, path
        assert not problems, path
        assert ("lacks the last" in lacks) == (found < image.accepted), (path, lacks)
    else:
        assert found == 1, path
        assert all("is empty" in problem for problem in problems)
    for each in directory.glob(f"{path.name}*"):
        each.unlink()


def test_a_copy_with_a_wal_is_restored_whole(recording: Recording, tmp_path: Path) -> None:
    moving = max(n for n, event in enumerate(recording.events) if event == Sync(DB)) - 2
    copy, path, link = (tmp_path / name for name in ("copy.db", "state.db", "link.db"))
    Image.after(recording, "killed", moving, Random(SEED)).put(copy)
    link.symlink_to(copy)
    assert files.check(link) == []
    files.restore(link, path)
    assert [*files.export(path)] == [*files.export(copy)] != []
