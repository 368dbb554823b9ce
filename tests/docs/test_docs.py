"""The pages say what the code says."""

import re
from pathlib import Path

import pytest

from docs import generate

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def test_the_reference_is_up_to_date() -> None:
    assert generate.PAGE.read_text() == generate.page(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_compile(page: Path) -> None:
    for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        compile(snippet, page.name, "exec")
