"""The official suites, unmodified, against the shipped node: `make compat SUITES=DIR`.

`python -m interop.compat.official DIR [SUITE …] --python PROGRAM` runs folders of `DIR/tests` with
a Python that has the suites' requirements, and writes one table. Nothing is counted that did not
run: a folder whose run ended early is named as such.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

ROOT: Final = Path(__file__).parents[2]
STAND_IN: Final = ROOT / "interop" / "compat" / "docker_stand_in"
BINDINGS: Final = ("wrappers_tests", "c_abi")
"""Folders of the half that drives the library through its bindings, the older name first."""
REST: Final = (
    *("relay", "filter", "light_push", "store", "sharding"),
    *("rest_flags", "peer_connection_management", "logs"),
)
"""Folders of the REST harness that need neither RLN, Postgres nor discv5."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test, and what became of it."""

    name: str
    result: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """A folder of tests."""

    name: str
    cases: tuple[Case, ...]
    ended: str = ""
    """Why the run ended before its end, where it did."""

    def count(self, result: str) -> int:
        """How many have that result."""
        return Counter(case.result for case in self.cases)[result]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run suites and write the table; 1 where a run did not come to its end."""
    parser = argparse.ArgumentParser(prog="interop.compat.official", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("suites", nargs="*", help="folders of tests; by default those that it has")
    parser.add_argument("--out", type=Path, default=Path("build/compat"))
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_intermixed_args(arguments)
    root = root_of(given.checkout)
    chosen = given.suites or [n for n in (*BINDINGS, *REST) if (root / "tests" / n).is_dir()]
    if not chosen:
        parser.error(f"{root}/tests must have one of {', '.join((*BINDINGS, *REST))}")
    given.out.mkdir(parents=True, exist_ok=True)
    suites = []
    for name in chosen:
        suites.append(run(root, name, given.out, given.python))
        counts = ", ".join(f"{suites[-1].count(r)} {r}" for r in ("passed", "failed", "skipped"))
        sys.stdout.write(f"{name}: {counts}{'; ' + suites[-1].ended if suites[-1].ended else ''}\n")
    page = given.out / "table.md"
    page.write_text(table(version_of(given.checkout), suites))
    sys.stdout.write(f"table: {page}\n")
    return 1 if any(suite.ended for suite in suites) else 0


def root_of(checkout: Path) -> Path:
    """Where the suites begin: the checkout, or its `tests-e2e`."""
    inside = checkout / "tests-e2e"
    return inside if inside.is_dir() else checkout


def run(checkout: Path, name: str, out: Path, python: str) -> Suite:
    """Run one folder of a checkout in a separate process, with the stand-in for Docker."""
    report = (out / f"{name}.xml").absolute()
    report.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "log_cli=false"]
    if name in BINDINGS:
        command += ["-p", "interop.compat.bindings"]
    with (out / f"{name}.log").open("w") as log:
        done = subprocess.run(
            [*command, f"--junitxml={report}", f"tests/{name}"],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": f"{STAND_IN}{os.pathsep}{ROOT}"},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    cases = tuple(read(report)) if report.exists() else ()
    ended = "" if done.returncode in (0, 1) else f"pytest ended with {done.returncode}"
    return Suite(name, cases, ended or ("" if cases else "no test ran"))


def read(report: Path) -> Iterator[Case]:
    """The cases of a JUnit report, with the first line of what went wrong."""
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        result, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                result = "skipped" if child.tag == "skipped" else "failed"
                why = next(iter((child.get("message") or child.text or "").splitlines()), "")
        yield Case(name, result, why)


def version_of(checkout: Path) -> str:
    """The commit of a checkout, or a hash of its tests where git knows none."""
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return f"commit {done.stdout.strip()[:12]}"
    files = sorted((checkout / "tests").rglob("*.py"))
    contents = [
        (str(file.relative_to(checkout)), sha256(file.read_bytes()).hexdigest()) for file in files
    ]
    return f"files {sha256(json.dumps(contents).encode()).hexdigest()[:12]}"


def table(version: str, suites: Sequence[Suite]) -> str:
    """Counts of each suite, then each test that did not pass and why."""
    lines = [
        f"Official suites ({version}), unmodified, against the shipped node.",
        "",
        "| suite | passed | failed | skipped by the suite | |",
        "|---|---|---|---|---|",
    ]
    for suite in suites:
        counts = " | ".join(str(suite.count(each)) for each in ("passed", "failed", "skipped"))
        lines.append(f"| {suite.name} | {counts} | {suite.ended} |")
    lines += ["", "| test | result | why |", "|---|---|---|"]
    for suite in suites:
        lines += [
            f"| {suite.name}: `{case.name}` | {case.result} | {case.why.replace('|', '/')[:200]} |"
            for case in suite.cases
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
