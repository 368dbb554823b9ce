"""`reliable-channel check` as a person and as a program sees it."""

import json
from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from reliable_channel_audit.findings import Audit
from reliable_channel_audit.plugin import register_commands

from ..generated import write_group
from ..planted import plant


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    register_commands(app)
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_kept_promises_are_told_in_a_dozen_lines(tmp_path: Path) -> None:
    write_group(tmp_path)
    result = run(tmp_path)
    assert result.exit_code == 0
    first, *kept, last = result.output.splitlines()
    assert first == "4 participants, 120 messages, 480 deliveries, one log"
    assert all(line.startswith("kept    ") for line in kept)
    assert len(kept) == len(Audit)
    assert last == "every promise was kept"


def test_a_broken_promise_is_the_exit_status(tmp_path: Path) -> None:
    paths = write_group(tmp_path)
    ((_, _, message_id),) = plant("missing", paths[1], seed=1)
    plant("torn last line", paths[2], seed=1)
    result = run(tmp_path)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    broken = "every message was delivered to everybody who was there: 1 times, first at p001: "
    assert lines[1].startswith(f"BROKEN  {broken}{message_id[:10]}… never delivered; sent by p")
    assert lines[-2].startswith("set aside: 1 lines of 1 files; most of them: not JSON: torn")
    assert lines[-1] == "1 promises were broken"

    (finding,) = json.loads(run(tmp_path, "--json").output)["findings"]
    assert finding["message_id"] == message_id


def test_what_has_no_time_to_arrive_is_not_held_against_anybody(tmp_path: Path) -> None:
    plant("missing", write_group(tmp_path)[1], seed=1)
    result = run(tmp_path, "--settle-ms", "3600000")
    assert result.exit_code == 0
    assert "1 deliveries were still on their way at the end" in result.output
