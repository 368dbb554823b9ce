"""docs/libp2p.md runs, and has every trap that the code and the tests name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "libp2p.md").read_text()


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(snippet, "docs/libp2p.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", snippet)


def test_every_trap_that_is_named_is_described() -> None:
    places = [*(ROOT / "waku" / "libp2p").rglob("*.py"), *Path(__file__).parent.glob("*.py")]
    named = {trap for place in places for trap in re.findall(r"\bT\d+\b", place.read_text())}
    assert named == set(re.findall(r"^\| (T\d+) ", PAGE, re.MULTILINE))
