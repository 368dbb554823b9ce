"""The cells of docs/how-to/notebook.md in a Jupyter kernel: they print what the page shows.

`make site` runs them; what the kernel needs is in requirements/site.in.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).parent / "how-to" / "notebook.md"


class Cell(NamedTuple):
    """A cell, and what the page shows below it."""

    source: str
    shown: str


def cells(page: str) -> list[Cell]:
    """The Python blocks of a page, each with the text block that follows it."""
    found = re.finditer(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", page, re.DOTALL)
    return [Cell(cell[1], cell[2] or "") for cell in found]


def differences(page: str) -> list[str]:
    """Run all cells of a page in one kernel; return a text for each that prints something else."""
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    wanted = cells(page)
    notebook = new_notebook(cells=[new_code_cell(cell.source) for cell in wanted])
    NotebookClient(notebook, timeout=None, allow_errors=True).execute()
    return [
        f"{cell.source}--- the page shows\n{cell.shown}--- printed\n{printed}"
        for cell, run in zip(wanted, notebook.cells, strict=True)
        if (printed := _printed(run.outputs)).strip() != cell.shown.strip()
    ]


def _printed(outputs: list[dict[str, object]]) -> str:
    """What a person sees below a cell."""
    texts = []
    for output in outputs:
        if output["output_type"] == "error":
            texts.append(f"{output['ename']}: {output['evalue']}")
        elif output["output_type"] == "stream":
            texts.append(str(output["text"]).rstrip("\n"))
        else:
            data = output["data"]
            assert isinstance(data, dict)
            texts.append(data["text/plain"])
    return "\n".join(texts)
