"""The command as it is typed: a line for each row, a table, an exit status."""

import json
import sys
from pathlib import Path
from subprocess import CompletedProcess

from tests.cli.in_process import run


def _run(*arguments: str) -> CompletedProcess[str]:
    return run("conformance", *arguments)


def test_a_row_is_run_and_leaves_its_trace(tmp_path: Path) -> None:
    done = _run("--row", "waits-for-its-*", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "1 passed" in done.stdout
    assert "waits-for-its-dependency" in (tmp_path / "table.md").read_text()
    row = json.loads((tmp_path / "waits-for-its-dependency" / "row.json").read_text())
    assert (row["level"], row["result"]) == ("required", "passed")


def test_a_row_is_a_json_line(tmp_path: Path) -> None:
    done = _run("--row", ROW, "--out", str(tmp_path), "--json")
    (row,) = map(json.loads, done.stdout.splitlines())
    assert row == json.loads((tmp_path / ROW / "row.json").read_text())


def test_a_required_rule_that_is_broken_is_an_exit_status(tmp_path: Path) -> None:
    broken = f"{sys.executable} {Path(__file__).parent}/kit/broken_peer.py {ROW} peer"
    done = _run("--peer", broken, "--row", ROW, "--out", str(tmp_path))
    assert done.returncode == 1
    assert "before message `one`" in done.stdout


def test_a_row_that_there_is_not_is_named() -> None:
    done = _run("--row", "nonsense")
    assert done.returncode == 2
    assert "`--row` must be one of" in done.stderr


def test_a_program_that_there_is_not_is_named_once() -> None:
    done = _run("--peer", "no-such-program --fast")
    assert done.returncode == 2
    assert "`--peer` must begin with a program that can be run (got 'no-such-" in done.stderr


ROW = "waits-for-its-dependency"
