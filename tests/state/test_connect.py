"""From a URL to a place for a state."""

from __future__ import annotations

from pathlib import Path

import pytest

from reliable_channel.state import Identity, SqliteStateStore
from reliable_channel.state.connect import sqlite_store


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
