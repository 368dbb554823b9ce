"""A finding has file and line, and the life of its message across participants."""

from __future__ import annotations

import json
from pathlib import Path

from reliable_channel_audit.check import check
from reliable_channel_audit.evidence import MAX_STEPS, UNCORRECTED, evidence, lives_of, show
from reliable_channel_audit.findings import Audit, severity
from reliable_channel_audit.journals import group_of, journal_files

from .generated import write_group
from .planted import plant


def test_the_life_of_a_message(tmp_path: Path) -> None:
    (path, *_) = write_group(tmp_path, loss=0)
    sent = next(line for line in path.read_text().splitlines() if "sending_message" in line)
    message_id = json.loads(sent)["message_id"]
    group = group_of(journal_files([tmp_path])).participants
    life = lives_of(group, {message_id[:8]})[message_id]
    mine = [step.what for step in life if step.participant_id == "p000"]
    assert mine == [
        "to be sent",
        "accepted, and entered the log of its sender",
        "sent (content)",
        "went to the network",
        "acknowledged by causal_history",
    ]
    theirs = [step.what for step in life if step.participant_id == "p001"]
    assert theirs[0].startswith("arrived (live): ")
    assert theirs[1].startswith("entered the log at position ")
    assert theirs[2] == "received by the application"
    for step in life:
        assert message_id in Path(step.path).read_text(encoding="utf-8").splitlines()[
            step.line - 1
        ] or ("wire" in Path(step.path).read_text(encoding="utf-8").splitlines()[step.line - 1])
    assert show(life[0]).startswith("2023-11-14 22:13:20.")
    assert f"({life[0].path}:{life[0].line})" in show(life[0])


def test_the_worst_come_first_each_message_once(tmp_path: Path) -> None:
    paths = write_group(tmp_path)
    plant("clock jump", paths[0], seed=1)
    plant("missing", paths[1], seed=1)
    plant("acknowledged and lost", paths[2], seed=3)
    group = group_of(journal_files([tmp_path])).participants
    shown = evidence(group, check([tmp_path]), [tmp_path])
    assert [each.severity for each in shown] == [0, 1, 4]
    assert shown[0].path == str(paths[2])
    assert shown[0].finding.detail == "acknowledged, and no other participant has it"
    ((where, lines), *_) = shown[0].around.items()
    assert where == f"{paths[2]}:{shown[0].line}"
    assert [line.split(":")[0] for line in lines] == [str(shown[0].line + n) for n in range(-2, 3)]
    assert all(severity(each.finding) == each.severity for each in shown)
    assert {each.finding.audit for each in shown} <= {audit.value for audit in Audit}


def test_what_is_about_no_message_has_the_place_where_it_began(tmp_path: Path) -> None:
    path = write_group(tmp_path)[1]
    plant("clock jump", path, seed=1)
    group = group_of(journal_files([tmp_path])).participants
    (shown,) = evidence(group, check([tmp_path]), [tmp_path])
    line = json.loads(path.read_text().splitlines()[shown.line - 1])
    assert (shown.path, line["at_ms"]) == (str(path), shown.finding.at_ms)
    assert shown.command == f"reliable-channel check {tmp_path}"


def test_a_participant_that_has_nothing_of_a_message_is_shown_at_its_time(tmp_path: Path) -> None:
    path = write_group(tmp_path)[1]
    plant("missing", path, seed=1)
    group = group_of(journal_files([tmp_path])).participants
    (shown,) = evidence(group, check([tmp_path]), [tmp_path])
    lines = [json.loads(line)["at_ms"] for line in path.read_text().splitlines()]
    assert shown.path == str(path)
    assert lines[shown.line - 2] < shown.finding.at_ms <= lines[shown.line - 1]
    assert all(step.participant_id != path.stem for step in shown.life)


def test_of_a_large_group_the_participant_of_the_finding_is_shown(tmp_path: Path) -> None:
    """Of 200 participants each has three steps of a message: more than are shown."""
    *_, path = write_group(tmp_path, participants=200, messages=10, loss=0, bloom=None)
    ((_, _, message_id),) = plant("received twice", path, seed=1)
    group = group_of(journal_files([tmp_path])).participants
    (shown,) = evidence(group, check([tmp_path]), [tmp_path])
    assert len(shown.life) == MAX_STEPS < 600 - 3
    own = [step.what for step in shown.life if step.participant_id == path.stem]
    assert own.count("received by the application") == 2
    assert "accepted, and entered the log of its sender" in {step.what for step in shown.life}
    assert shown.path == str(path)
    assert message_id in shown.command


def test_times_are_corrected_by_a_known_clock_and_marked_without(tmp_path: Path) -> None:
    paths = write_group(tmp_path, participants=6)
    plant("missing", paths[1], seed=1)
    group = group_of(journal_files([tmp_path])).participants
    (before,) = evidence(group, check([tmp_path]), [tmp_path])
    plant("a clock 15 s ahead", paths[2], seed=1)
    found = check([tmp_path])
    ((whose, ahead_ms),) = found.clocks.items()
    assert whose[1] == paths[2].stem
    assert ahead_ms is not None
    found.clocks[whose[0], paths[3].stem] = None
    shown = evidence(group, found, [tmp_path])[0]
    assert shown.clocks == [
        f"clock of {paths[2].stem}: corrected by -{ahead_ms:,} ms",
        f"clock of {paths[3].stem}: {UNCORRECTED}",
    ]
    assert before.clocks == []
    least_ms = {(step.path, step.line): step.at_ms for step in before.life}
    late_ms = [step.at_ms - least_ms[step.path, step.line] for step in shown.life]
    assert set(late_ms) == {0, 15_000 - ahead_ms}
    assert shown.life == sorted(shown.life, key=lambda step: step.at_ms)
