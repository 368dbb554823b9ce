"""The snippets of the pages about Status, and of the README, run one after the other."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import reliable_channel_status
from reliable_channel_status import RefusalReason

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "status.md"
BOTS = ROOT / "docs" / "status-bots.md"
COMMUNITIES = ROOT / "docs" / "status-communities.md"
FRAMEWORK = ROOT / "docs" / "status-framework.md"
README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """What a snippet sets is unset after it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    "page",
    [PAGE, BOTS, COMMUNITIES, FRAMEWORK, README],
    ids=lambda page: page.name,
)
def test_the_snippets_run(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "a page"}
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, page.name, "exec"), names)


def test_every_reason_is_told() -> None:
    text = PAGE.read_text()
    assert [reason.name for reason in RefusalReason if f"`{reason.name}`" not in text] == []


def test_every_log_event_and_count_is_told() -> None:
    sources = (ROOT / "plugins/reliable_channel_status/reliable_channel_status/bot").glob("*.py")
    code = "\n".join(source.read_text() for source in sources)
    events = set(re.findall(r'reporter\.log\(\s*"(\w+)"', code))
    counts = set(re.findall(r'reporter\.count(?:s\[|\()"(\w+)"', code))
    assert len(events) > 10 and len(counts) > 8
    text = BOTS.read_text()
    assert [name for name in events if f"`{name}`" not in text] == []
    assert [name for name in counts if f"{name}_total`" not in text] == []


def test_no_public_name_is_also_a_module() -> None:
    """Importing the module would replace the name, which is loaded when it is used."""
    modules = {module.name for module in iter_modules(reliable_channel_status.__path__)}
    assert modules.isdisjoint(reliable_channel_status.__all__)
