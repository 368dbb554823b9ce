"""docs/libp2p.md runs, and has every trap that the code and the tests name."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from .pair import DIALLER, LISTENER

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "libp2p.md").read_text()


SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_an_example_prints_what_it_says(snippet: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"alice_key": DIALLER, "bob_key": LISTENER}
    exec(compile(snippet, "docs/libp2p.md", "exec"), names)
    if "main" in names:
        anyio.run(names["main"])
    printed = re.findall(r"print\(.*\)  # (.*)", snippet)
    assert capsys.readouterr().out.splitlines() == printed


def test_every_trap_that_is_named_is_described() -> None:
    rooms = [
        top / "waku" / room
        for top in (ROOT, ROOT / "tests")
        for room in ("libp2p", "p2p", "discovery", "node")
    ]
    places = [file for room in rooms for file in room.rglob("*.py")]
    named = {trap for place in places for trap in re.findall(r"\bT\d+\b", place.read_text())}
    assert named == set(re.findall(r"^\| (T\d+) ", PAGE, re.MULTILINE))


def test_every_trap_has_a_test() -> None:
    tests = (ROOT / "tests" / "waku").rglob("test_*.py")
    named = {
        trap
        for file in tests
        if file != Path(__file__)
        for trap in re.findall(r"\bT\d+\b", file.read_text(encoding="utf-8"))
    }
    assert set(re.findall(r"^\| (T\d+) ", PAGE, re.MULTILINE)) <= named
