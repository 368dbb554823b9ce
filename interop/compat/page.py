"""The table of each official test: passed, or why not (`make docs WHAT=compat`).

`python -m interop.compat.page FOLDER FILE` reads what `make interop SUITES=DIR` wrote into a
folder. Where the node is not to blame, or does as the recorded nwaku does, `reasons.toml` says why
a test fails; a failure without a reason stands there with what pytest says.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Final

from interop.compat.results import Case, Suite

__all__ = ["main", "page_of", "suites_in"]

REASONS: Final = Path(__file__).with_name("reasons.toml")
WHY_CHARACTERS: Final = 200
NAMED: Final = 4
"""Parameters of a test with another result than its others that are named; the rest is counted."""
HEAD: Final = """# Each official test

What [the official suites](compat.md) did with the shipped node, unmodified: every test, and why it
did not pass. A test with parameters is one row for each result, with the number of its cases. Made
by `make docs WHAT=compat`; a run that ended early counts nothing.

| suite | version | run on | passed | failed | skipped by the suite |
|---|---|---|---|---|---|
"""


def main(arguments: Sequence[str]) -> int:
    """Write the page; 1 where nothing ran."""
    folder, page = map(Path, arguments)
    suites = suites_in(folder)
    page.write_text(page_of(suites))
    return 0 if suites else 1


def suites_in(folder: Path) -> list[Suite]:
    return [Suite.load(file) for file in sorted(folder.glob("*.json"))]


def page_of(suites: Sequence[Suite], reasons: Path = REASONS) -> str:
    """Counts of each suite, then each test."""
    table = tomllib.loads(reasons.read_text(encoding="utf-8"))
    known, notes = table["reason"], table.get("suite", {})
    lines = []
    for suite in suites:
        counts = " | ".join(str(suite.count(each)) for each in ("passed", "failed", "skipped"))
        counts = f"{suite.ended} | |" if suite.ended else counts
        lines.append(f"| {suite.name} | {suite.version} | {suite.day} | {counts} |")
    for suite in suites:
        lines += ["", f"## {suite.name}", ""]
        lines += [notes[suite.name], ""] if suite.name in notes else []
        lines += ["| test | result | why |", "|---|---|---|"]
        explained = [_explained(suite.name, case, known) for case in suite.cases]
        for file, cases in groupby(explained, lambda case: case.file):
            lines.append(f"| **{file}** | | |")
            lines += _rows(list(cases))
    return HEAD + "\n".join(lines) + "\n"


def _explained(suite: str, case: Case, known: Sequence[dict[str, str]]) -> Case:
    """The case with the reason that is known of it."""
    if case.result == "failed":
        name = f"{suite}/{case.file}/{case.name}"
        for reason in known:
            if fnmatchcase(name, f"{reason['test']}*"):
                return replace(case, why=reason["why"])
    return case


def _rows(cases: Sequence[Case]) -> Iterator[str]:
    """A row for each test and result, in the order of the file."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    totals: dict[str, int] = {}
    for case in cases:
        base, _, parameters = case.name.partition("[")
        groups.setdefault((base, case.result, case.why), []).append(parameters.rstrip("]"))
        totals[base] = totals.get(base, 0) + 1
    for (base, result, why), ids in groups.items():
        count, total = len(ids), totals[base]
        named = "" if total == 1 else f" ({total} cases)"
        if count < total:
            named = f" ({count} of {total} cases)"
            if result != "passed":
                shown = [f"`{_cell(one)}`" for one in ids[:NAMED]]
                named += ": " + ", ".join((*shown, *(["…"] if count > NAMED else [])))
        yield f"| `{base}`{named} | {result} | {_cell(why)[:WHY_CHARACTERS]} |"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("`", "'")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
