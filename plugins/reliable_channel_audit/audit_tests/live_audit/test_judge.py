"""Planted faults found while the journals grow, and nothing else."""

from pathlib import Path

import pytest

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
