"""Planted faults found while the journals grow, and nothing else."""

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from reliable_channel_audit.following import Journals, Owners, journals_in
from reliable_channel_audit.live_audit import judge as judging
from tests.slow import slow

from ..generated import copy_group
from ..planted import FAULTS, plant
from .growing import Growing, judged, live

windows = pytest.mark.parametrize(
    "window", [*slow(10_000), 40], ids=["one generation", "generations"]
)


@windows
@pytest.mark.parametrize("seed", [1, 2])
def test_clean_journals_are_clean(tmp_path: Path, seed: int, window: int) -> None:
    copy_group(tmp_path / "whole", seed=seed, loss=0.3)
    growing = Growing(tmp_path / "whole", tmp_path / "live")
    with live(tmp_path, tmp_path / "live", window=window) as judge:
        assert judged(judge, growing) == set()


@windows
@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"a copy of a journal"}))  # it grows
def test_each_planted_fault_is_found_live(tmp_path: Path, fault: str, window: int) -> None:
    paths = copy_group(tmp_path / "whole")
    expected = plant(fault, paths[1], 1)
    growing = Growing(tmp_path / "whole", tmp_path / "live")
    with live(tmp_path, tmp_path / "live", window=window) as judge:
        assert judged(judge, growing) == expected


def test_journals_that_are_removed_while_they_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_group(tmp_path / "live")

    def found(paths: Sequence[Path], owners: Owners) -> Journals:
        journals = journals_in(paths, owners)
        shutil.rmtree(tmp_path / "live")
        (tmp_path / "live").mkdir()
        return journals

    monkeypatch.setattr(judging, "journals_in", found)
    with live(tmp_path, tmp_path / "live") as judge:
        assert judge.step(1) == []


def test_a_journal_that_is_copied_and_truncated_is_judged_on(tmp_path: Path) -> None:
    path, *_ = copy_group(tmp_path / "live")
    lines = path.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    path.write_bytes(b"".join(lines[:half]))
    with live(tmp_path, tmp_path / "live") as judge:
        judge.step(1)
        before = judge.lines
        shutil.copy(path, path.with_name(f"{path.name}.1"))
        path.write_bytes(b"".join(lines[half:]))
        judge.step(2)
        assert (judge.lines - before, judge.set_aside) == (len(lines) - half, 0)


def test_a_copy_packed_by_hand_does_not_stop_a_growing_journal(tmp_path: Path) -> None:
    path, *_ = copy_group(tmp_path / "live")
    lines = path.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    path.write_bytes(b"".join(lines[:half]))
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    with live(tmp_path, tmp_path / "live") as judge:
        judge.step(1)
        before = judge.lines
        path.write_bytes(b"".join(lines))
        judge.step(2)
        assert judge.lines - before == len(lines) - half
