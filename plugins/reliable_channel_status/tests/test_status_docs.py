"""The snippets of docs/status.md run, one after the other, and so does that of the README."""

import re
from pathlib import Path
from typing import Any

import pytest

from reliable_channel_status import RefusalReason

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "status.md"
README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("page", [PAGE, README], ids=lambda page: page.name)
def test_the_snippets_run(page: Path) -> None:
    names: dict[str, Any] = {}
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, page.name, "exec"), names)


def test_every_reason_is_told() -> None:
    text = PAGE.read_text()
    assert [reason.name for reason in RefusalReason if f"`{reason.name}`" not in text] == []
