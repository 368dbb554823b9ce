"""The snippets of docs/encryption.md about this plugin run."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "encryption.md"
SNIPPETS = [
    snippet
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    if "reliable_channel_signing" in snippet
]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.split("\n", 1)[0])
def test_a_snippet_runs(snippet: str) -> None:
    exec(compile(snippet, PAGE.name, "exec"), {})
