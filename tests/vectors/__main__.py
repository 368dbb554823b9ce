"""Run golden vectors against this package: `python -m tests.vectors DIR…`.

The kind of a file is its name. Prints a line for each case that differs, and last `N passed, M
failed`. Exits with 1 when a case differs, cannot be read, or its kind is unknown.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from .kinds import run_file


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m tests.vectors DIR…  (directories with vector files, or the files)")
        return 2
    passed = failed = 0
    for file in _files(arguments):
        for case, difference in run_file(file):
            if difference is None:
                passed += 1
            else:
                failed += 1
                print(f"{file.name}: {case}: {difference}")
    if not passed and not failed:
        failed = 1
        print(f"no vector file (*.json) in {', '.join(arguments)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _files(arguments: list[str]) -> Iterator[Path]:
    for argument in map(Path, arguments):
        yield from sorted(argument.rglob("*.json")) if argument.is_dir() else [argument]


sys.exit(main(sys.argv[1:]))
