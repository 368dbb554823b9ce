"""The snippets of docs/sync-protocols.md and of the README run."""

import re
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1]
PAGES = [PLUGIN.parents[1] / "docs" / "sync-protocols.md", PLUGIN / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = page.read_text(encoding="utf-8").partition("\n## State Vector Sync")[0]
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, page.name, "exec"), {})
    said = capsys.readouterr().out
    if page.name != "README.md":
        assert "b'bob' MessageReceived(" in said
        assert "b'alice' MessageAcknowledged(" in said
