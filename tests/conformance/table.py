"""The rows of other implementations' suites, and the tests that carry their ids.

Tests are read as source, not collected: the table is the same whichever part of them is run.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = Path(__file__).with_name("rows.toml")


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a suite: what our tests show, or why there is none."""

    id: str
    suite: str
    holds: str = ""
    note: str = ""
    """Where what we do differs from the suite on purpose."""
    declined: str = ""


def rows(file: Path = ROWS) -> list[Row]:
    """All rows, in the order of the file."""
    suites = tomllib.loads(file.read_text(encoding="utf-8"))
    return [Row(i, suite, **case) for suite, cases in suites.items() for i, case in cases.items()]


def shown_by(root: Path = ROOT) -> dict[str, list[str]]:
    """The node ids of the tests that carry each id."""
    found: dict[str, list[str]] = {}
    for folder in ("tests", "plugins"):
        for file in sorted((root / folder).rglob("test_*.py")):
            for test, ids in marked_tests(file.read_text()):
                for row_id in ids:
                    found.setdefault(row_id, []).append(f"{file.relative_to(root)}::{test}")
    return found


def marked_tests(source: str) -> Iterator[tuple[str, list[str]]]:
    """The tests of a module that have a `conformance` marker, with its ids."""
    for node in ast.parse(source).body if "conformance" in source else []:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:5] == "test_":
            if ids := [i for decorator in node.decorator_list for i in _ids(decorator)]:
                yield node.name, ids


def problems(table: list[Row], tests: dict[str, list[str]]) -> list[str]:
    """What is wrong with the table, a line each."""
    known = {row.id for row in table}
    found = [f"{i} is no row, but a marker of {tests[i][0]}" for i in tests if i not in known]
    for row in table:
        if bool(row.holds) is bool(row.declined):
            found.append(f"{row.id} must say either what holds or why it is declined")
        elif row.declined and row.id in tests:
            found.append(f"{row.id} is declined and has a test: {tests[row.id][0]}")
        elif row.holds and row.id not in tests:
            found.append(f"{row.id} has no test: {row.holds}")
    return found


def _ids(decorator: ast.expr) -> Iterator[str]:
    match decorator:
        case ast.Call(func=ast.Attribute(attr="conformance"), args=arguments):
            for argument in arguments:
                yield ast.literal_eval(argument)
