"""What a full run has played is not played again, unless something changed."""

from pathlib import Path
from typing import Any

import pytest

from .cells import Cell, all_cells
from .played import Played
from .scenarios import SCENARIOS
from .verdict import Verdict

CELLS = list(all_cells(SCENARIOS))
IMAGES = {"node": "node-1", "js": "js-1", "ours": "ours-1"}


@pytest.mark.parametrize("cell", CELLS[:: len(CELLS) // 10], ids=lambda cell: cell.name)
def test_a_verdict_is_kept_for_the_same_images(tmp_path: Path, cell: Cell[Any]) -> None:
    verdict = Verdict(cell.name, 400, "babd", {"a-defect": 2}, ("js-2 holds 23",))
    Played(tmp_path, IMAGES).put(cell, verdict, 72.5)
    assert Played(tmp_path, dict(reversed(IMAGES.items()))).get(cell) == (verdict, 72.5)
    assert Played(tmp_path, IMAGES | {"ours": "ours-2"}).get(cell) is None
    others = [other for other in CELLS if other != cell]
    assert not any(Played(tmp_path, IMAGES).get(other) for other in others)


def test_how_often_it_failed_before_it_passed_is_kept_with_it(tmp_path: Path) -> None:
    cell, verdict = CELLS[0], Verdict(CELLS[0].name, 400, "babd")
    for reason in ("deaf", "late"):
        Played(tmp_path, IMAGES).failed(cell, TimeoutError(reason))
        assert Played(tmp_path, IMAGES).get(cell) is None
    assert Played(tmp_path, IMAGES).put(cell, verdict, 1.0).failures == 2
    kept = Played(tmp_path, IMAGES).get(cell)
    assert kept is not None and kept[0].failures == 2
    assert Played(tmp_path, IMAGES | {"js": "js-2"}).put(cell, verdict, 1.0).failures == 0
