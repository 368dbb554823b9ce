"""The official suites, unmodified, against the shipped node: `make interop SUITES=DIR`.

`python -m interop.compat.official DIR [SUITE …] --python PROGRAM` runs folders of `DIR/tests` with
a Python that has the suites' requirements, and writes what became of each test. Nothing is counted
that did not run: a folder whose run ended early is named as such.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from interop.compat.page import page_of, suites_in
from interop.compat.results import Suite, read

ROOT: Final = Path(__file__).parents[2]
STAND_IN: Final = ROOT / "interop" / "compat" / "docker_stand_in"
BINDINGS_STAND_IN: Final = ROOT / "interop" / "compat" / "bindings_stand_in"
BINDINGS: Final = ("wrappers_tests", "c_abi")
"""Folders of the half that drives the library through its bindings, the older name first."""
REST: Final = (
    *("relay", "filter", "light_push", "store", "sharding", "e2e", "store_sync"),
    *("rest_flags", "peer_connection_management", "logs", "metrics", "peer_exchange", "discv5"),
)
"""Folders of the REST harness."""


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
        suites.append(run(given.checkout, name, given.out, given.python))
        suites[-1].save(given.out)
        counts = ", ".join(f"{suites[-1].count(r)} {r}" for r in ("passed", "failed", "skipped"))
        sys.stdout.write(f"{name}: {counts}{'; ' + suites[-1].ended if suites[-1].ended else ''}\n")
    page = given.out / "table.md"
    page.write_text(page_of(suites_in(given.out)))
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
    # Seen from here, not from the checkout; a virtual environment's link is not followed.
    program = str(Path(python).absolute()) if os.sep in python else python
    command = [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "log_cli=false"]
    path = [STAND_IN, ROOT, *([BINDINGS_STAND_IN] if name in BINDINGS else [])]
    with (out / f"{name}.log").open("w") as log:
        done = subprocess.run(
            [*command, f"--junitxml={report}", f"tests/{name}"],
            cwd=root_of(checkout),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    cases = tuple(read(report)) if report.exists() else ()
    ended = "" if done.returncode in (0, 1) else f"pytest ended with {done.returncode}"
    day = datetime.now(UTC).date().isoformat()
    version = version_of(checkout)
    return Suite(name, version, day, cases, ended or ("" if cases else "no test ran"))


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
    root = root_of(checkout)
    files = sorted((root / "tests").rglob("*.py"))
    contents = [
        (str(file.relative_to(root)), sha256(file.read_bytes()).hexdigest()) for file in files
    ]
    return f"files {sha256(json.dumps(contents).encode()).hexdigest()[:12]}"


if __name__ == "__main__":
    sys.exit(main())
