"""The table of docs/interop.md, from a run."""

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

BEGIN: Final = "<!-- results: begin (make interop-docs) -->"
END: Final = "<!-- results: end -->"
HEAD: Final = (
    "| result | peers | node | ours by | messages | seconds | log | js-waku missed |",
    "|---|---|---|---|---|---|---|---|",
)

SERVICES: Final[dict[Service, str]] = {
    "relay": "relay",
    "light": "light push + filter",
    "native": "our libp2p client",
}


def write_table(page: Path, results: Mapping[str, Future[tuple[Verdict, float]]]) -> None:
    """Put the results between the page's markers."""
    write_between(page, BEGIN, END, _lines(results))


def write_between(page: Path, begin: str, end: str, lines: Iterable[str]) -> None:
    """Put lines in place of what stands between two markers of a page.

    Raises:
        ValueError: the page lacks the markers.
    """
    before, found_begin, rest = page.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{page} lacks {begin} and {end}")
    page.write_text("\n".join([before + begin, "", *lines, "", end]) + after)


def _lines(results: Mapping[str, Future[tuple[Verdict, float]]]) -> list[str]:
    done = [name for name, result in results.items() if not result.exception()]
    now = datetime.now(UTC).date()
    known = {cell.name: cell for cell in cells(full=True)}
    lines = [
        f"{len(done)} of {len(results)} cells passed, {now}; there are {len(known)} in all.",
    ]
    for scenario in SCENARIOS:
        rows = [_row(known[n], results[n]) for n in results if known[n].scenario is scenario]
        if rows:
            lines += ["", f"**{scenario.number}. {scenario.title}**", "", *HEAD, *rows]
            passed = [n for n in done if known[n].scenario is scenario]
            lines += _notes((known[n], results[n].result()[0].notes) for n in passed)
    return lines


def _row(cell: Cell[Any], result: Future[tuple[Verdict, float]]) -> str:
    axes = [_peers(cell), cell.node, SERVICES[cell.service]]
    if (error := result.exception()) is not None:
        return joined(["**fails**", *axes, "", "", "", f"{type(error).__name__}"])
    verdict, took_s = result.result()
    missed = ", ".join(f"{count} ({name})" for name, count in verdict.js_missed.items())
    nothing = "none" if "js" in cell.sides else "no js-waku"
    numbers = [str(verdict.accepted), f"{took_s:.0f}", f"`{verdict.digest[:8]}`"]
    passes = f"passes, failed before: {verdict.failures}" if verdict.failures else "passes"
    return joined([passes, *axes, *numbers, missed or nothing])


def _peers(cell: Cell[Any]) -> str:
    return "two of each" if cell.peers == "two-of-each" else cell.peers.replace("-", " ↔ ")


def _notes(noted: Iterable[tuple[Cell[Any], tuple[str, ...]]]) -> list[str]:
    """What was noted, once for all cells of the same peers that say the same."""
    places: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for cell, notes in noted:
        if notes:
            place = f"{cell.node} by {SERVICES[cell.service]}"
            places.setdefault((_peers(cell), notes), []).append(place)
    lines = [
        f"* {peers}, {', '.join(where)}: {'; '.join(notes)}."
        for (peers, notes), where in places.items()
    ]
    return ["", *lines] if lines else []


def joined(fields: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(fields)} |"
