"""Plots: the same bytes for the same figures, well-formed, and a clear error without matplotlib."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reliable_channel_lab.plots import Curve, Panel, PlotsUnavailable, draw

TEXT = "{http://www.w3.org/2000/svg}text"
ROWS = [
    [
        Panel(
            f"{loss} % lost",
            [
                Curve("one", [(2, 0.0), (10, 3.0), (1000, 40.0)], spread=[(10, 2.0, 4.0)]),
                Curve("other", [(2, 5.0)], colour=1, dashes="dashed", absent=[10, 1000]),
            ],
            "participants",
            "seconds",
            "log",
            "log",
            note="not run: other",
        )
        for loss in (0, 40)
    ],
    [Panel("shares", [Curve("one", [(0.0, 0.5), (0.4, 0.25)])], y_label="share")],
]
IN_ANOTHER_PROCESS = """
import sys
from lab_tests.test_plots import ROWS, draw
sys.stdout.buffer.write(draw(ROWS, title="Plots"))
"""


@pytest.mark.slow
def test_equal_figures_make_equal_bytes_in_any_process() -> None:
    here = draw(ROWS, title="Plots")
    there = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        capture_output=True,
        check=True,
    ).stdout
    assert there == here == draw(ROWS, title="Plots")
    assert draw(ROWS, title="Others") != here


def test_the_words_are_text() -> None:
    root = ElementTree.fromstring(draw(ROWS, title="Plots"))
    words = [element.text for element in root.iter(TEXT)]
    for word in ("Plots", "0 % lost", "40 % lost", "shares", "one", "other", "1,000", "seconds"):
        assert word in words
    assert words.count("one") == 1  # one legend for all
    assert words.count("seconds") == 1  # the panels of a row share their axis
    assert words.count("not run: other") == 2


def test_png_for_the_eye() -> None:
    assert draw(ROWS, to="png").startswith(b"\x89PNG")


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="no panel"):
        draw([[], []])
    draw([[Panel("empty", [], y_scale="log")]])


def test_who_has_no_matplotlib_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotsUnavailable, match=r"pip install 'reliable-channel-lab\[plots\]'"):
        draw(ROWS)
