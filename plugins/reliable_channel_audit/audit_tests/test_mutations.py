"""Random changes of journals: the audit agrees with what is known of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from reliable_channel_audit.check import check
from reliable_channel_audit.replay import ACKNOWLEDGED_FIRST
from tests.journal_lines import json_lines
from tests.slow import long, slow

from . import simulated
from .generated import write_group
from .mutations import MUTATIONS_A_SEED, judged, judged_run
from .oracle import Ledger, broken


@pytest.mark.parametrize("seed", [0, 1, *slow(*range(2, 8))])
def test_the_audit_agrees_with_what_is_known(tmp_path: Path, seed: int) -> None:
    paths = write_group(tmp_path, participants=3, messages=40, seed=seed)
    ledger = Ledger.of({path.stem: json_lines(path) for path in paths})
    wrong = judged(paths, ledger, seed, MUTATIONS_A_SEED)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", [7, 11, 303])
def test_the_audit_agrees_with_the_simulator(tmp_path: Path, seed: int) -> None:
    """Of a run with kills, a partition and a Store that is away; of two without a Store."""
    wrong = judged_run(seed, tmp_path, 10)
    assert wrong.counts.total() == 10
    assert not wrong, "\n".join(wrong)


def test_an_own_message_is_in_the_log_before_its_acknowledgement(tmp_path: Path) -> None:
    """A restart brings it back into the log, which does not make up for it (seed 158)."""
    ledger = simulated.run(158, tmp_path)
    path = tmp_path / "p0.jsonl"
    lines = json_lines(path)
    told = [line for line in lines if line["event"] == "message_acknowledged"]
    *_, again = (one for one, other in combinations(told, 2) if _same(one, other))
    logged = [line for line in lines if line["event"] == "message_logged" and _same(line, again)]
    lines.remove(logged[0])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(logged) > 1
    (finding, *more) = check([tmp_path], settle_ms=simulated.SETTLE_MS).findings
    assert (finding.message_id, finding.detail) == (again["message_id"], ACKNOWLEDGED_FIRST)
    assert not more
    assert broken(ledger, {"p0": lines})


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one["message_id"] == other["message_id"])


@pytest.mark.parametrize("first_seed", [*slow(1), *long(*range(11, 100, 10))])
def test_the_audit_agrees_with_the_simulator_on_many_runs(tmp_path: Path, first_seed: int) -> None:
    wrong: list[str] = []
    for seed in range(first_seed, first_seed + 10):
        wrong += judged_run(seed, tmp_path / str(seed), 10)
    assert not wrong, "\n".join(wrong)
