"""From a URL to a place for a state."""

from __future__ import annotations

from pathlib import Path

import pytest

from reliable_channel.errors import StateUnavailable
from reliable_channel.state import Identity, SqliteStateStore
from reliable_channel.state.connect import memory_store, sqlite_store


def place(path: str, channel_id: str, sender_id: str = "alice") -> Path:
    store = sqlite_store(f"sqlite:////{path}", channel_id, sender_id)
    assert isinstance(store, SqliteStateStore)
    return store.path


@pytest.mark.parametrize(
    ("channel_id", "name"),
    [
        ("general", "general"),
        ("a/b", "a%2Fb"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("...", "%2E%2E%2E"),
        (".hidden", ".hidden"),
        ("{sender_id}", "%7Bsender_id%7D"),
        ("x" * 247, "x" * 247),
    ],
)
def test_an_id_stands_for_one_name(channel_id: str, name: str) -> None:
    assert place("tmp/x/{channel_id}/s.db", channel_id) == Path(f"/tmp/x/{name}/s.db")
    assert place("tmp/x/{channel_id}.db", channel_id) == Path(f"/tmp/x/{name}.db")


@pytest.mark.parametrize("length", [28, 29, 300])
def test_a_long_id_is_hashed(tmp_path: Path, length: int) -> None:
    channel_id, other = "频" * length, "频" * (length - 1) + "道"
    url = f"{tmp_path}/{{channel_id}}/{{channel_id}} {{sender_id}}.db"
    path = place(url, channel_id, "人" * length)
    assert all(len(name) <= 250 for name in path.parts)
    assert len({path, place(url, other, "人" * length), place(url, other)}) == 3
    store = sqlite_store(f"sqlite:///{url}", channel_id, "人" * length)
    assert store is not None
    store.open(Identity(channel_id, "人" * length, "spec"))
    store.close()


def test_a_name_of_28_characters_stays_where_earlier_versions_put_it() -> None:
    assert place("tmp/{channel_id}", "频" * 27).name == "%E9%A2%91" * 27


@pytest.mark.parametrize("name", ["dev#1.db", "50%25.db", "50%.db", "a b&c=d;e.db", "{x}.db"])
def test_a_path_is_taken_as_it_is(name: str) -> None:
    assert place(f"tmp/{name}", "general") == Path("/tmp") / name


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///why?.db",
        "sqlite:///a.db?durability=disk",
        "sqlite:///a.db?mode=ro",
        "sqlite:///a?b.db?durability=power",
        "sqlite:///",
        "sqlite://a.db",
        "sqlite:a.db",
    ],
)
def test_another_form_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"`state` must be sqlite:///relative/path or"):
        sqlite_store(url, "general", "alice")


@pytest.mark.parametrize("rest", ["#x", "?x", "//", "///a.db"])
def test_nothing_may_follow_memory(rest: str) -> None:
    with pytest.raises(ValueError, match="`state` must be memory: alone"):
        memory_store(f"memory:{rest}")


@pytest.mark.parametrize("folder", ["missing", "missing/deep", "file"])
def test_a_missing_folder_is_refused(folder: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("a.db", "{channel_id}/{sender_id}.db"):
        store = sqlite_store(f"sqlite:///{tmp_path}/{folder}/{name}", "general", "alice")
        with pytest.raises(
            StateUnavailable, match=f"{folder}.* is not a folder; create the folder first"
        ):
            store.open(Identity("general", "alice", "spec"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("below", ["{channel_id}/a.db", "x-{sender_id}/{channel_id}/a.db"])
def test_folders_that_ids_name_are_made(below: str, tmp_path: Path) -> None:
    store = sqlite_store(f"sqlite:///{tmp_path}/{below}", "general", "alice")
    assert isinstance(store, SqliteStateStore)
    store.open(Identity("general", "alice", "spec"))
    store.close()
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
