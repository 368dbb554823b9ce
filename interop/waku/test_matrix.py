"""The matrix: CI runs the covering set, `INTEROP_FULL=1` every cell that makes sense."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

import pytest

from ..go_build import BUILT
from .bench import Bench, NodeKind, Service
from .cells import COVERING, Peers
from .matrix import AT_ONCE, Matrix, cells
from .played import Played
from .report import write_table
from .scenarios import SCENARIOS

IS_FULL: Final = os.environ.get("INTEROP_FULL", "") not in ("", "0")
ONLY: Final = os.environ.get("INTEROP_CELLS", "").split()
"""Names of cells to run alone."""
TABLE: Final = os.environ.get("INTEROP_TABLE", "")
"""Where the table of results is written, if anywhere: a page with its two markers."""
JOBS: Final = int(os.environ.get("INTEROP_JOBS", AT_ONCE))
"""Cells that are played side by side."""
CHOSEN: Final = [
    cell for cell in cells(full=IS_FULL or bool(ONLY)) if not ONLY or cell.name in ONLY
]


@pytest.fixture(scope="module")
def matrix(bench: Bench) -> Iterator[Matrix]:
    played = Played(BUILT / "played", bench.images.names) if IS_FULL else None
    running = Matrix(bench, CHOSEN, at_once=JOBS, played=played)
    yield running
    running.close()
    if TABLE:
        write_table(Path(TABLE), running.results)


@pytest.mark.timeout(6 * 3600 if IS_FULL else 3600)
@pytest.mark.parametrize("name", [cell.name for cell in CHOSEN])
def test_cell(matrix: Matrix, name: str) -> None:
    verdict, _ = matrix.results[name].result()
    assert verdict.cell == name


def test_the_covering_set_has_each_value_of_each_axis() -> None:
    chosen = cells(full=False)
    assert {cell.peers for cell in chosen} == set(get_args(Peers))
    assert {cell.node for cell in chosen} == set(get_args(NodeKind))
    assert {cell.service for cell in chosen} == set(get_args(Service))
    with_js = {cell.scenario.number for cell in chosen if "js" in cell.sides}
    possible = {s.number for s in SCENARIOS if s.peers != ("ours-ours",)}
    assert with_js == possible
    assert len(COVERING) == len(set(COVERING))
