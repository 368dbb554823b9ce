"""The page's table, from results that are known."""

from concurrent.futures import Future
from pathlib import Path

import pytest

from .matrix import cells
from .report import BEGIN, END, write_table
from .verdict import Verdict

NOTED = ("3b-ours-js-stock-relay", "3b-ours-js-stock-light")


def ended(name: str) -> Future[tuple[Verdict, float]]:
    result: Future[tuple[Verdict, float]] = Future()
    if name == "7-js-ours-store-light":
        result.set_exception(TimeoutError("no answer"))
    else:
        notes = ("js-2 holds 9 of 9 messages",) if name in NOTED else ()
        failures = 3 if name == NOTED[1] else 0
        verdict = Verdict(name, 9, "0123456789", {"js-late-join": 2}, notes, failures)
        result.set_result((verdict, 12.3))
    return result


def test_a_row_a_cell_and_what_was_noted_once(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter")
    write_table(page, {name: ended(name) for name in (*NOTED, "7-js-ours-store-light")})
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    assert lines[3].startswith("2 of 3 cells passed, the last 3 of them played on ")
    rest = "| 9 | 12 | `01234567` | 2 (js-late-join) |"
    assert [line for line in lines if line.startswith(("| passes", "| **fails", "* "))] == [
        f"| passes | ours ↔ js | stock | relay {rest}",
        f"| passes, failed before: 3 | ours ↔ js | stock | light push + filter {rest}",
        "* ours ↔ js, stock by relay, stock by light push + filter: js-2 holds 9 of 9 messages.",
        "| **fails** | js ↔ ours | store | light push + filter |  |  |  | TimeoutError |",
    ]


def test_rows_of_cells_that_were_not_played_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}")
    write_table(page, {name: ended(name) for name in (NOTED[0], "7-js-ours-store-light")})
    first = page.read_text().splitlines()
    assert first[2].startswith("1 of 2 cells passed, the last 2 ")
    write_table(page, {NOTED[1]: ended(NOTED[1])})
    lines = page.read_text().splitlines()
    assert lines[2].startswith("2 of 3 cells passed, the last 1 ")
    kept = [line for line in first if line.startswith(("| passes", "| **fails", "* "))]
    assert set(kept) < set(lines)
    (added,) = {line for line in lines if line.startswith("| passes")} - set(kept)
    assert added.startswith("| passes, failed before: 3 |")


def test_every_cell_has_a_name_of_its_own() -> None:
    names = [cell.name for cell in cells(full=True)]
    assert len(names) == len(set(names))


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here")
    with pytest.raises(ValueError, match="lacks"):
        write_table(page, {})
