"""Random changes of journals: the audit agrees with what is known of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal_lines import json_lines

from .generated import write_group
from .mutations import MUTATIONS_A_SEED, judged, judged_run
from .oracle import Ledger


@pytest.mark.parametrize("seed", range(8))
def test_the_audit_agrees_with_what_is_known(tmp_path: Path, seed: int) -> None:
    paths = write_group(tmp_path, participants=3, messages=40, seed=seed)
    ledger = Ledger.of({path.stem: json_lines(path) for path in paths})
    wrong = judged(paths, ledger, seed, MUTATIONS_A_SEED)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", [7, 11])
def test_the_audit_agrees_with_the_simulator(tmp_path: Path, seed: int) -> None:
    """Of a run with kills, a partition and a Store that is away; and of one without a Store."""
    wrong = judged_run(seed, tmp_path, 10)
    assert wrong.counts.total() == 10
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("first_seed", range(1, 100, 10))
def test_the_audit_agrees_with_the_simulator_on_many_runs(tmp_path: Path, first_seed: int) -> None:
    wrong: list[str] = []
    for seed in range(first_seed, first_seed + 10):
        wrong += judged_run(seed, tmp_path / str(seed))
    assert not wrong, "\n".join(wrong)
