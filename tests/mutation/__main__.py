"""`python -m tests.mutation [--sample N] [--seed N] [MODULE ...]`, as `make mutation` runs it."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.mirror import ROOT, Mirror

from .session import Session
from .target import Target

PACKAGES = ("reliable_channel/sds", "reliable_channel/engine")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", type=Path, help="files; sds and engine if none")
    parser.add_argument("--sample", type=int, help="plant so many defects, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="decides which")
    parser.add_argument("--at-least", type=float, default=0, help="percent that must be killed")
    arguments = parser.parse_args()
    modules = [path.resolve() for path in arguments.modules] or list(_core())
    planted = [
        (target, mutant) for target in Target.load(modules, ROOT) for mutant in target.mutants()
    ]
    if arguments.sample is not None:
        print(f"{arguments.sample} of {len(planted)} defects, seed {arguments.seed}")
        places = Random(arguments.seed).sample(range(len(planted)), arguments.sample)
        planted = [planted[place] for place in sorted(places)]
    mirror = Mirror.of_project()
    tests = {test for target, _ in planted for test in mirror.tests_of(ROOT / target.path)}
    tests.update(place for target, _ in planted if (place := _folder_of(target)).is_dir())
    session = Session(planted)
    flags = ["-q", "-m", "not slow", "-p", "no:xdist", "-p", "no:cacheprovider"]
    status = pytest.main([*flags, *map(str, sorted(tests))], plugins=[session])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return int(status)
    return 0 if report(session) >= arguments.at_least else 1


def _folder_of(target: Target) -> Path:
    """Where whole groups and restarts of a package are tested."""
    return ROOT / "tests" / target.path.parts[1]


def _core() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.name != "__init__.py" and not path.name.endswith("_pb2.py"):
                yield path


def report(session: Session) -> float:
    """Print the rate of each module; return that of all, in percent."""
    planted = Counter(verdict.target.path for verdict in session.verdicts)
    killed = Counter(verdict.target.path for verdict in session.verdicts if verdict.killed)
    for path, count in sorted(planted.items()):
        print(f"{100 * killed[path] / count:5.1f} % of {count:4} {path}")
    rate = 100 * killed.total() / max(1, planted.total())
    print(f"{rate:5.1f} % of {planted.total():4} killed")
    return rate


if __name__ == "__main__":
    sys.exit(main())
