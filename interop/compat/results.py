"""What became of each test of a suite: read from pytest's report, kept as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

__all__ = ["Case", "Suite", "read"]


@dataclass(frozen=True, slots=True)
class Case:
    """One test, and what became of it."""

    file: str
    """Name of its module."""
    name: str
    """`Class::test[parameters]`."""
    result: str
    """`passed`, `failed` or `skipped`."""
    why: str = ""
    """First line of the failure, or what the suite says of a skipped one."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A folder of tests, as it ran on a day."""

    name: str
    version: str
    """`commit 336…`, or `files …`, a hash, where git knows none."""
    day: str
    """As `2026-11-23`."""
    cases: tuple[Case, ...]
    ended: str = ""
    """Why the run ended before its end, where it did; then it counts nothing."""

    def count(self, result: str) -> int:
        """How many have that result."""
        return Counter(case.result for case in self.cases)[result]

    def save(self, folder: Path) -> None:
        """Write it to a file, in the place of an earlier run of the suite in that version."""
        file = folder / f"{self.name} {self.version}.json"
        file.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read what `save` wrote."""
        fields = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{**fields, "cases": tuple(Case(**case) for case in fields["cases"])})


def read(report: Path) -> Iterator[Case]:
    """The cases of a JUnit report, with the first line of what went wrong."""
    found: dict[tuple[str, str], Case] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        *_, file, last = ("", *(case.get("classname") or "").split("."))
        name = f"{last}::{case.get('name')}"
        result, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                result = "skipped" if child.tag == "skipped" else "failed"
                why = next(iter((child.get("message") or child.text or "").splitlines()), "")
        # A test that failed and whose teardown failed as well stands there twice.
        if result == "failed" or (file, name) not in found:
            found[file, name] = Case(file, name, result, why)
    yield from found.values()
