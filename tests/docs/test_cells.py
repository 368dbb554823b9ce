"""The cells of the notebook page, in a real kernel where there is one (`make site` installs it)."""

import pytest

from docs import cells


def test_a_cell_is_a_python_block_with_what_is_shown_below_it() -> None:
    page = (
        "```python\n1 + 1\n```\n\n```text\n2\n```\n\n```python\npass\n```\nMore.\n```text\nx\n```\n"
    )
    assert cells.cells(page) == [cells.Cell("1 + 1\n", "2\n"), cells.Cell("pass\n", "")]


def test_the_page_has_cells() -> None:
    found = cells.cells(cells.PAGE.read_text())
    assert len(found) > 5 and any("await" in cell.source for cell in found)


def test_the_page_shows_what_a_kernel_prints() -> None:
    pytest.importorskip("nbclient")
    assert cells.differences(cells.PAGE.read_text()) == []


def test_a_cell_that_prints_something_else_is_named() -> None:
    pytest.importorskip("nbclient")
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n\n```python\nfoo\n```\n"
    first, second = cells.differences(page)
    assert "print(1)" in first and "printed\n1" in first
    assert "NameError" in second
