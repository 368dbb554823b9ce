"""`reliable-channel audit store` and `archive` as a person and as a program see them."""

import importlib.util
import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from reliable_channel_audit.plugin import register_commands
from reliable_channel_audit.store_audit.verdict import LAG_OF_SENDERS, READERS, SYNC_LAG
from waku import WakuMessage
from waku.node.store import Archive

from ..store_audit.stores import TOPIC, StoredMessage, crafted

GAP = [
    crafted("a", "alice", 0),
    crafted("b", "bob\x1b[2J", 1, refers_to=["a"]),
    crafted("d", "bob\x1b[2J", 3, refers_to=["b", "c"]),
    crafted("e", "alice", 60, refers_to=["a", "b"]),
]


def write(path: Path, messages: Iterable[StoredMessage]) -> Path:
    with closing(Archive(path)) as archive:
        for each in messages:
            message = WakuMessage(each.payload, TOPIC, timestamp=each.timestamp_ns)
            archive.insert(each.message_hash, "/waku/2/rs/1/0", message)
    return path


def run(*arguments: str | Path, command: str = "store") -> Result:
    app = typer.Typer()
    register_commands(app)
    return CliRunner().invoke(app, ["audit", command, *map(str, arguments)])


def test_a_gap_is_named_with_what_refers_to_it(tmp_path: Path) -> None:
    result = run(write(tmp_path / "store.sqlite3", GAP))
    assert result.exit_code == 1, result.output
    assert "4 messages of 2 senders; 1 that they refer to are absent" in result.output
    assert "gap: 1; messages refer to it, and it is not in Store" in result.output
    assert "  c: 1 references, first in d" in result.output
    assert "\x1b[2J" not in result.output
    assert f"unknown in ops: {SYNC_LAG}: syncs of 0 of 2 senders are stored" in result.output


def test_programs_get_all_of_it(tmp_path: Path) -> None:
    result = run(write(tmp_path / "store.sqlite3", GAP), "--json")
    values = json.loads(result.output)
    (channel,) = values["channels"]
    assert [each["message_id"] for each in channel["gaps"]] == ["c"]
    assert [each["trouble"] for each in values["findings"]] == ["gap"]
    assert [each["what"] for each in values["unknown"]] == [SYNC_LAG, READERS, LAG_OF_SENDERS]


def test_nothing_found_and_nothing_known_differ(tmp_path: Path) -> None:
    whole = run(write(tmp_path / "whole.sqlite3", GAP[:2]))
    assert whole.exit_code == 0
    assert "nothing found; a message that was never stored" in whole.output
    empty = run(write(tmp_path / "empty.sqlite3", []))
    assert empty.exit_code == 5
    assert "of channels nothing is known" in empty.output
    other = run(write(tmp_path / "other.sqlite3", GAP), "--channel", "another")
    assert other.exit_code == 5


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "needs a node, a database, or --network"),
        (("http://127.0.0.1:1",), "give --channel or --content-topic"),
        (("nowhere.sqlite3",), "nowhere.sqlite3 does not exist"),
    ],
)
def test_what_is_missing_is_said(arguments: tuple[str, ...], why: str) -> None:
    result = run(*arguments)
    assert why in str(result.exception)


def test_what_is_added_is_counted_and_what_is_there_is_not(tmp_path: Path) -> None:
    store = write(tmp_path / "store.sqlite3", [crafted(f"m{n}", "alice", n) for n in range(7)])
    first = run(store, "--to", tmp_path / "archive", command="archive")
    if importlib.util.find_spec("pyarrow") is None:
        assert "pip install 'reliable-channel-audit[parquet]'" in str(first.exception)
        return
    assert f"7 messages added to {tmp_path / 'archive'}, of 7 read" in first.output
    again = run(store, "--to", tmp_path / "archive", "--json", command="archive")
    assert '"added": 0' in again.output
