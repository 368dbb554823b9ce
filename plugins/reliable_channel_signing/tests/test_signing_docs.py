"""The snippets of docs/signing.md run."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "signing.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.split("\n", 1)[0])
def test_a_snippet_runs(snippet: str) -> None:
    exec(compile(snippet, PAGE.name, "exec"), {})
