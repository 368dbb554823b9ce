"""`reliable-channel audit journals` and `check`, as a person and as a program see them."""

import gc
import json
import re
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


def test_kept_promises_are_told_on_one_screen(tmp_path: Path) -> None:
    write_group(tmp_path)
    result = run(tmp_path)
    assert result.exit_code == 0
    rate, *rest, last = result.output.splitlines()
    worst_pairs, (group, *kept) = rest[:3], rest[3:]
    assert group == "4 participants, 120 messages, 480 deliveries, one log"
    assert rate == (
        "delivered to others: 360 of 360 (100 %), 0 lost; half in 1.83 s, 99 % in 4.67 s"
    )
    assert all(re.fullmatch(r"  p00\d to p00\d: .*\(100 %\), half in .*", e) for e in worst_pairs)
    unknown = [line for line in kept if not line.startswith("kept    ")]
    assert unknown == ["unknown repair ends: it rests, and gives up: no case"]
    assert len(kept) == len(Audit)
    assert last == "every promise that was put to the test was kept"


def test_the_garbage_collector_runs_again_afterwards(tmp_path: Path) -> None:
    write_group(tmp_path, participants=2, messages=2)
    assert gc.isenabled()
    run(tmp_path)
    assert gc.isenabled()


def test_a_broken_promise_is_the_exit_status(tmp_path: Path) -> None:
    paths = write_group(tmp_path)
    ((_, _, message_id),) = plant("missing", paths[1], seed=1)
    plant("torn last line", paths[2], seed=1)
    result = run(tmp_path)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    broken = (
        "every message was delivered to all participants that were there: 1 of 360, first at p001: "
    )
    assert "1 lost" in lines[0]
    assert re.fullmatch(r"  p00\d to p001: .* of .* \(9\d.*", lines[1]), "the worst pair first"
    assert lines[6].startswith(f"BROKEN  {broken}{message_id[:10]}… never delivered; sent by p")
    aside = lines[lines.index("broken: 1 promise") - 1]
    assert aside.startswith("set aside: 1 line of 1 file; most of them: not JSON: torn")

    values = json.loads(run(tmp_path, "--json").output)
    (finding,), (evidence,) = values["findings"], values["evidence"]
    assert (finding["message_id"], finding["severity"]) == (message_id, 1)
    assert evidence["finding"]["message_id"] == message_id
    assert evidence["life"][0]["what"] == "to be sent"


def test_a_finding_about_no_message_and_a_long_life(tmp_path: Path) -> None:
    paths = write_group(tmp_path, participants=6)
    plant("clock jump", paths[0], seed=1)
    plant("missing", paths[1], seed=1)
    lines = run(tmp_path).output.splitlines()
    (clock,) = [line for line in lines if "clocks go forward" in line]
    assert re.search(r": 1 of [\d,]+, first at p000: the clock went back by ", clock)
    (more,) = [line for line in lines if line.endswith("more steps")]
    assert more.startswith("  … and ")


def test_a_finding_has_the_command_that_shows_it_again(tmp_path: Path) -> None:
    paths = write_group(tmp_path)
    ((_, _, message_id),) = plant("missing", paths[1], seed=1)
    *_, command = run(tmp_path).output.splitlines()
    assert command.split() == ["reliable-channel", "check", str(tmp_path), "--message", message_id]
    shown = run(tmp_path, "--message", message_id[:8])
    assert shown.exit_code == 0
    (life,) = json.loads(run(tmp_path, "--message", message_id, "--json").output).values()
    assert {step["participant_id"] for step in life} == {"p000", "p002", "p003"}
    assert len(shown.output.splitlines()) == len(life) + 1
    assert run(tmp_path, "--message", "0" * 64).exit_code == 1
    assert run(tmp_path, "--message", "0").exit_code == 2


def test_what_has_no_time_to_arrive_is_not_held_against_anybody(tmp_path: Path) -> None:
    plant("missing", write_group(tmp_path)[1], seed=1)
    result = run(tmp_path, "--settle-ms", "3600000")
    assert result.exit_code == 0
    assert "0 lost, 1 on their way at the end" in result.output


def test_where_nothing_was_judged_nothing_is_kept(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 5
    assert "0 participants" in result.output
    assert "kept    " not in result.output
    assert result.output.splitlines()[-1] == "it is not known whether all promises were kept"
    assert json.loads(run(tmp_path, "--json").output)["value"] == "unknown"


def test_one_journal_does_not_show_what_others_have(tmp_path: Path) -> None:
    _, *others = write_group(tmp_path)
    for path in others:
        path.unlink()
    result = run(tmp_path)
    assert result.exit_code == 5
    assert "p001 was heard in general and left no journal" in result.output
    assert "only one participant of general left a journal" in result.output


def test_a_participant_that_was_heard_and_left_an_empty_journal_is_named(tmp_path: Path) -> None:
    one, *_ = write_group(tmp_path)
    one.write_text("")
    result = run(tmp_path)
    assert result.exit_code == 5
    assert "p000 was heard in general, and left no journal" in result.output


def test_a_misspelt_channel_is_not_one_whose_promises_are_kept(tmp_path: Path) -> None:
    write_group(tmp_path / "a")
    write_group(tmp_path / "b", participants=1, channel_id="genral")
    result = run(tmp_path)
    assert result.exit_code == 5
    assert "only one participant of genral left a journal" in result.output


def test_check_is_the_quick_name_of_audit_journals(tmp_path: Path) -> None:
    write_group(tmp_path)
    app = typer.Typer()
    register_commands(app)
    whole = CliRunner().invoke(app, ["audit", "journals", str(tmp_path)])
    assert (whole.exit_code, whole.output) == (0, run(tmp_path).output)
