"""`reliable-channel audit archive` without what it needs, and with nothing to read from."""

import importlib.util
from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from reliable_channel_audit.plugin import register_commands

from ..store_audit.stores import crafted
from .test_store import write


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    register_commands(app)
    return CliRunner().invoke(app, ["audit", "archive", *map(str, arguments)])


def test_what_is_added_is_counted_and_what_is_there_is_not(tmp_path: Path) -> None:
    store = write(tmp_path / "store.sqlite3", [crafted(f"m{n}", "alice", n) for n in range(7)])
    first = run(store, "--to", tmp_path / "archive")
    if importlib.util.find_spec("pyarrow") is None:
        assert "pip install 'reliable-channel-audit[parquet]'" in str(first.exception)
        return
    assert f"7 messages added to {tmp_path / 'archive'}, of 7 read" in first.output
    again = run(store, "--to", tmp_path / "archive", "--json")
    assert '"added": 0' in again.output
