"""The rows of interop/RESULTS.md, from a run."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .bench import Service
from .cells import Cell
from .matrix import cells
from .scenarios import SCENARIOS
from .verdict import Verdict

BEGIN: Final = "<!-- results: begin (make interop TABLE=interop/RESULTS.md) -->"
END: Final = "<!-- results: end -->"
HEAD: Final = (
    "| result | peers | node | ours by | messages | seconds | log | js-waku missed |",
    "|---|---|---|---|---|---|---|---|",
)

SERVICES: Final[dict[Service, str]] = {
    "relay": "relay",
    "light": "light push + filter",
    "native": "our libp2p client",
    "leaf": "our relay leaf",
}


def write_table(page: Path, results: Mapping[str, Future[tuple[Verdict, float]]]) -> None:
    """Put the results between the page's markers; rows of cells that were not played stay."""
    _, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    before = _Before(rest.partition(END)[0].splitlines())
    write_between(page, BEGIN, END, _lines(results, before))


class _Before:
    """Rows and notes that the page has, by their scenario's heading."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rows: dict[tuple[str, ...], str] = {}
        self._notes: dict[str, list[str]] = {}
        heading = ""
        for line in lines:
            if line.startswith("**") and line.endswith("**"):
                heading = line
            elif line.startswith(("| passes", "| **fails**")):
                self._rows[heading, *line.split(" | ")[1:4]] = line
            elif line.startswith("* "):
                self._notes.setdefault(heading, []).append(line)

    def row(self, heading: str, cell: Cell[Any]) -> str | None:
        """The row of a cell."""
        return self._rows.get((heading, *_axes(cell)))

    def notes(self, heading: str) -> list[str]:
        """What was noted of a scenario's cells."""
        return self._notes.get(heading, [])


def write_between(page: Path, begin: str, end: str, lines: Iterable[str]) -> None:
    """Put lines in place of what stands between two markers of a page.

    Raises:
        ValueError: the page lacks the markers.
    """
    before, found_begin, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{page} lacks {begin} and {end}")
    page.write_text("\n".join([before + begin, "", *lines, "", end]) + after, encoding="utf-8")


def _lines(results: Mapping[str, Future[tuple[Verdict, float]]], before: _Before) -> list[str]:
    known = {cell.name: cell for cell in cells(full=True)}
    every, lines = [], []
    for scenario in SCENARIOS:
        heading = f"**{scenario.number}. {scenario.title}**"
        of_it = [cell for cell in known.values() if cell.scenario is scenario]
        played = [cell for cell in of_it if cell.name in results]
        found = [
            _row(cell, results[cell.name]) if cell in played else before.row(heading, cell)
            for cell in of_it
        ]
        rows = [row for row in found if row is not None]
        if rows:
            lines += ["", heading, "", *HEAD, *rows]
            passed = [cell for cell in played if not results[cell.name].exception()]
            new = _notes((cell, results[cell.name].result()[0].notes) for cell in passed)
            notes = dict.fromkeys([*before.notes(heading), *new])
            lines += ["", *notes] if notes else []
        every += rows
    done = sum(row.startswith("| passes") for row in every)
    now = datetime.now(UTC).date()
    first = f"{done} of {len(every)} cells passed, the last {len(results)} of them played on {now}"
    return [f"{first}; there are {len(known)} in all.", *lines]


def _row(cell: Cell[Any], result: Future[tuple[Verdict, float]]) -> str:
    axes = _axes(cell)
    if (error := result.exception()) is not None:
        return joined(["**fails**", *axes, "", "", "", f"{type(error).__name__}"])
    verdict, took_s = result.result()
    missed = ", ".join(f"{count} ({name})" for name, count in verdict.js_missed.items())
    nothing = "none" if "js" in cell.sides else "no js-waku"
    numbers = [str(verdict.accepted), f"{took_s:.0f}", f"`{verdict.digest[:8]}`"]
    passes = f"passes, failed before: {verdict.failures}" if verdict.failures else "passes"
    return joined([passes, *axes, *numbers, missed or nothing])


def _axes(cell: Cell[Any]) -> tuple[str, str, str]:
    return _peers(cell), cell.node, SERVICES[cell.service]


def _peers(cell: Cell[Any]) -> str:
    return "two of each" if cell.peers == "two-of-each" else cell.peers.replace("-", " ↔ ")


def _notes(noted: Iterable[tuple[Cell[Any], tuple[str, ...]]]) -> list[str]:
    """What was noted, once for all cells of the same peers that say the same."""
    places: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for cell, notes in noted:
        if notes:
            place = f"{cell.node} by {SERVICES[cell.service]}"
            places.setdefault((_peers(cell), notes), []).append(place)
    return [
        f"* {peers}, {', '.join(where)}: {'; '.join(notes)}."
        for (peers, notes), where in places.items()
    ]


def joined(fields: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(fields)} |"
