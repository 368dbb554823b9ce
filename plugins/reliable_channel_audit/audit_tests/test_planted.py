"""Each audit finds exactly the fault that is its own, and nothing in clean data."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from reliable_channel_audit.check import check
from reliable_channel_audit.verdict import Verdict
from tests.slow import slow

from .generated import copy_group, write_group
from .planted import FAULTS, Expected, plant

SEEDS = [1, *slow(2)]


def found(verdict: Verdict) -> Expected:
    return {(each.audit, each.participant_id, each.message_id) for each in verdict.findings}


@pytest.mark.parametrize("seed", SEEDS)
def test_clean_data_is_clean(tmp_path: Path, seed: int) -> None:
    copy_group(tmp_path, seed=seed, loss=0.3)
    verdict = check([tmp_path])
    assert not verdict.findings
    assert not verdict.set_aside
    assert (verdict.messages, verdict.deliveries, verdict.on_the_way) == (120, 480, 0)
    assert verdict.logs == 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_audit_finds_its_own(tmp_path: Path, fault: str, seed: int) -> None:
    paths = copy_group(tmp_path, seed=seed)
    expected = plant(fault, paths[seed % len(paths)], seed)
    verdict = check([tmp_path])
    assert found(verdict) == expected
    assert len(verdict.findings) == len(expected)
    aside = [each.reason.split(":")[0] for each in verdict.set_aside]
    assert aside == {"torn last line": ["not JSON"], "a copy of a journal": 2 * ["a copy"]}.get(
        fault, []
    )


def asked(path: Path, at_ms: Sequence[int]) -> str:
    """What is found of a message that was asked for at these times, each that long before the
    end of the journal."""
    plant("never-ending repair", path, 1)
    lines = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    asking = next(each for each in lines if each["event"] == "repair_requested")
    lines = [each for each in lines if each["event"] != "repair_requested"]
    lines[-1:-1] = [asking | {"at_ms": lines[-1]["at_ms"] + each} for each in at_ms]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (finding,) = [each for each in check([path.parent]).findings if each.audit == "repair"]
    return finding.detail


def test_how_long_a_message_was_asked_for(tmp_path: Path) -> None:
    path = write_group(tmp_path)[0]
    assert asked(path, range(-40, 0)) == "asked for 40 times within 39 ms"


def test_a_message_was_asked_for_while_the_clock_went_back(tmp_path: Path) -> None:
    """The span was -199,961 ms, and by that the number of attempts that are allowed was wrong."""
    path = write_group(tmp_path)[0]
    times_ms = [*range(-20, 0), *range(-200_020, -200_000)]
    detail = "asked for 40 times, while this participant's clock went back by 200019 ms"
    assert asked(path, times_ms) == detail


@pytest.mark.parametrize("half", [0, 1])
def test_faults_of_several_participants_are_told_apart(tmp_path: Path, half: int) -> None:
    # One that ends early is not owed what others miss, and a copy is none once another is changed.
    faults = [each for each in FAULTS if each not in ("torn last line", "a copy of a journal")]
    faults = faults[half::2]
    paths = write_group(tmp_path, participants=len(faults), messages=140)
    expected: Expected = set()
    for seed, (fault, path) in enumerate(zip(faults, paths, strict=True)):
        expected |= plant(fault, path, seed)
    assert found(check([tmp_path])) == expected
