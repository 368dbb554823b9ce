"""Write the tables of docs/choosing.md, and its plots, from docs/choosing/results.csv
(`make docs`)."""

import re
from collections.abc import Iterator
from pathlib import Path

from reliable_channel_lab.commands.compare import COLUMNS, texts
from reliable_channel_lab.commands.comparison_plots import plots
from reliable_channel_lab.sim.comparison import VARIANTS, Figure
from reliable_channel_lab.sim.figures import from_csv

PAGE = Path(__file__).with_name("choosing.md")
DIRECTORY = Path(__file__).with_name("choosing")
_TABLE = re.compile(r"(<!-- (\S+) (\d+) ([\d.]+) -->\n)(?:\|[^\n]*\n)*")
"""Where a table stands: its scenario, participants, and share that is lost."""


def page() -> str:
    """The page as it stands, with the tables that the results make."""
    figures = results()

    def table(found: re.Match[str]) -> str:
        marker, scenario, participants, loss = found.groups()
        lines = _table(figures, (scenario, int(participants), float(loss)))
        return marker + "".join(f"{line}\n" for line in lines)

    return _TABLE.sub(table, PAGE.read_text())


def results() -> list[Figure]:
    """What the command wrote."""
    return list(from_csv((DIRECTORY / "results.csv").read_text()))


def _table(figures: list[Figure], point: tuple[str, int, float]) -> Iterator[str]:
    yield "| | " + " | ".join(name for name, _, _ in COLUMNS) + " |"
    yield "|---|" + "--:|" * len(COLUMNS)
    for variant in VARIANTS:
        mine = [
            figure
            for figure in figures
            if (figure.cell.scenario, figure.cell.participants, figure.cell.loss) == point
            and figure.cell.variant == variant
        ]
        yield f"| {variant} | " + " | ".join(texts(mine)) + " |"


if __name__ == "__main__":
    PAGE.write_text(page())
    for name, drawn in plots(results()).items():
        (DIRECTORY / name).write_bytes(drawn)
