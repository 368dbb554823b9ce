"""`reliable-channel audit compare` as a person and as a program sees it."""

import json
from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from reliable_channel_audit.plugin import register_commands

from ..generated import write_group
from ..group_reliability.samples import KnownRun, relay_lines, write_dump, write_files


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    register_commands(app)
    return CliRunner().invoke(app, ["audit", "compare", *map(str, arguments)])


def sweep(directory: Path) -> None:
    for name, churn, lost in (("one", "0.1", {}), ("two", "0.3", {3: {7, 8}})):
        known = KnownRun(lost=lost)
        write_files(directory / name / "log", known, relay_lines(known))
        metadata = {
            "experiment": {"name": "churn"},
            "params": {"churn_fraction": churn, "nodes": 6},
        }
        (directory / name / "metadata.json").write_text(json.dumps(metadata))


def test_a_sweep_is_a_table_by_scenario_and_one_by_setting(tmp_path: Path) -> None:
    sweep(tmp_path)
    result = run(tmp_path)
    assert result.exit_code == 0
    heading, row, _, *runs = result.output.splitlines()
    assert heading.split()[:3] == ["scenario", "implementation", "participants"]
    assert row.split()[:3] == ["churn", "waku", "relay"]
    assert [line.split()[:2] for line in runs] == [
        ["run", "churn_fraction"],
        ["one", "0.1"],
        ["two", "0.3"],
    ]
    assert "100 %" in runs[1]
    assert "100 %" not in runs[2]
    ends = {len(line) for line in runs}
    assert len(ends) <= 2, "columns stand below each other"


def test_implementations_are_compared_in_one_table(tmp_path: Path) -> None:
    known = KnownRun()
    write_dump(tmp_path / "field" / "baseline" / "dump.json", known, relay_lines(known))
    write_group(tmp_path / "ours" / "baseline")
    result = run(tmp_path / "field", tmp_path / "ours")
    rows = [line.split()[:2] for line in result.output.splitlines()]
    assert ["baseline", "reliable-channel"] in rows
    assert ["baseline", "waku"] in rows


def test_the_difference_of_two_runs(tmp_path: Path) -> None:
    sweep(tmp_path)
    result = run(tmp_path, "--difference")
    lines = {line[:12].strip(): line.split() for line in result.output.splitlines()}
    assert lines["missing"] == ["missing", "0", "2", "+2"]
    assert lines["holes"] == ["holes", "0", "1", "+1"]
    assert run(tmp_path / "one", "--difference").exit_code == 2


def test_json_has_everything(tmp_path: Path) -> None:
    sweep(tmp_path)
    values = json.loads(run(tmp_path, "--json").output)
    assert {*values["scenarios"][0]} == {"scenario", "implementation", "figures"}
    assert {"run", "scenario", "settings", "warnings"} < {*values["runs"][0]}
    assert [each["settings"]["churn_fraction"] for each in values["runs"]] == ["0.1", "0.3"]
    (scenario,) = values["scenarios"]
    assert scenario["figures"]["runs"] == 2
    change = {each["figure"]: each["change"] for each in values["difference"]}
    assert change["missing"] == 2


def test_what_measures_nothing_has_an_exit_status(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("INF Node started\n")
    result = run(tmp_path)
    assert result.exit_code == 5
    assert "nothing was measured" in result.stderr


def test_a_name_in_the_logs_paints_nothing_on_the_terminal(tmp_path: Path) -> None:
    known = KnownRun()
    write_files(tmp_path / "a", known, relay_lines(known))
    evil = {"scenario": "\x1b[31m[red]x", "implementation": "[/]"}
    (tmp_path / "a" / "metadata.json").write_text(json.dumps(evil))
    output = run(tmp_path / "a").output
    assert "\x1b" not in output
    assert "[red]x" in output
