"""Each audit finds exactly the fault that is its own, and nothing in clean data."""

import re
from pathlib import Path

import pytest

from reliable_channel_audit.check import check
from reliable_channel_audit.verdict import Verdict

from .generated import copy_group, write_group
from .planted import FAULTS, Expected, plant

SEEDS = range(1, 6)


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
    torn = [(each.reason, each.lines) for each in verdict.set_aside]
    assert torn == ([("not JSON: torn, or not of a journal", 1)] if "torn" in fault else [])


def test_faults_of_several_participants_are_told_apart(tmp_path: Path) -> None:
    paths = write_group(tmp_path, participants=len(FAULTS), messages=200)
    expected: Expected = set()
    for seed, (fault, path) in enumerate(zip(FAULTS, paths, strict=True)):
        expected |= plant(fault, path, seed)
    assert found(check([tmp_path])) == expected


def test_the_page_has_every_fault_and_no_other() -> None:
    page = Path(__file__).parents[3] / "docs" / "verdict.md"
    (_, table), *_ = [page.read_text().split("## Promise by cause")]
    cells = table.split("## ")[0].partition("|---|")[2]
    assert set(re.findall(r"`([^`]+)`", cells)) == set(FAULTS)
