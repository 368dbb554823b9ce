"""Branch coverage of each module (`make quick COVERAGE=1`): by the tests that mirror it, and by all
tests of its room.

Tests note their file as the context of what they run (`conftest.py`). A module counts only if its
own tests have run. The exit status is 1 if the tests of sds or engine leave more than 5 % out.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from coverage import Coverage
from coverage.exceptions import NoDataError

from tests.mirror import Mirror

AT_IMPORT: Final = ""
"""Context of what runs outside of tests."""
LEAST_PERCENT: Final = 95.0
ROOMS: Final = ("reliable_channel/sds", "reliable_channel/engine")
"""Code that must reach it."""


class Covered(NamedTuple):
    """Lines and branches of a module that tests run (percent)."""

    module: Path
    by_own_tests: float
    by_room: float


def measured(mirror: Mirror) -> Iterator[Covered]:
    """Yield the modules whose own tests have run."""
    coverage = Coverage()
    coverage.load()
    contexts = coverage.get_data().measured_contexts()
    for module in mirror.modules():
        tests = [test.relative_to(mirror.root) for test in mirror.tests_of(module)]
        own = _below(contexts, tests)
        if own:
            room = _below(contexts, [Path(*test.parts[:2]) for test in tests])
            name = module.relative_to(mirror.root)
            yield Covered(name, *(_percent(coverage, module, part) for part in (own, room)))


def _below(contexts: Iterable[str], paths: Iterable[Path]) -> list[str]:
    return [each for each in contexts if any(Path(each).is_relative_to(path) for path in paths)]


def _percent(coverage: Coverage, module: Path, contexts: Iterable[str]) -> float:
    patterns = [f"^{re.escape(each)}$" for each in (AT_IMPORT, *contexts)]
    try:
        return coverage.report(morfs=[str(module)], contexts=patterns, file=StringIO())
    except NoDataError:
        return 0.0


def main() -> int:
    """Print each module, and how many of sds and engine are above the bound."""
    found = list(measured(Mirror.of_project()))
    print(" own tests   room")
    for each in found:
        print(f"{each.by_own_tests:8.1f} % {each.by_room:6.1f} %  {each.module}")
    bound = [each for each in found if any(each.module.is_relative_to(room) for room in ROOMS)]
    own = sum(each.by_own_tests >= LEAST_PERCENT for each in bound)
    room = sum(each.by_room >= LEAST_PERCENT for each in bound)
    print(
        f"{LEAST_PERCENT:g} % are reached by {own} of {len(bound)} modules of sds and engine by "
        f"their own tests, and by {room} by those of the room"
    )
    return 0 if room == len(bound) else 1


if __name__ == "__main__":
    sys.exit(main())
