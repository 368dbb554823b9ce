"""The cells of a notebook on the page of programs, in a kernel if one is installed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "programs.md"
CELL = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def printed(output: dict[str, str | dict[str, str]]) -> str:
    """What a person sees of an output."""
    if output["output_type"] == "stream":
        return str(output["text"]).rstrip("\n")
    data = output["data"]
    assert isinstance(data, dict)
    return data["text/plain"]


def test_the_page_shows_what_a_kernel_prints() -> None:
    client = pytest.importorskip("nbclient")
    from nbformat.v4 import new_code_cell, new_notebook

    cells = CELL.findall(PAGE.read_text().partition("## In a notebook")[2])
    assert len(cells) > 5
    notebook = new_notebook(cells=[new_code_cell(source) for source, _ in cells])
    client.NotebookClient(notebook, timeout=None).execute()
    for (source, shown), cell in zip(cells, notebook.cells, strict=True):
        assert "\n".join(map(printed, cell.outputs)).strip() == shown.strip(), source
