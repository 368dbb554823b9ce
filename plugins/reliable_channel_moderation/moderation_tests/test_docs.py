"""The program of docs/how-to/moderation.md."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "moderation.md"


def test_the_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, PAGE.name, "exec"), {})
