"""Finds the interpreters that a version needs: on the path, or among those of pyenv.

`python -m release.pythons python3.13` prints the path of one. If there is none, it says so on
standard error and ends with status 1.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def find(name: str) -> str | None:
    """Return the path of an interpreter by its name or path, or None if there is none that runs."""
    return next((path for path in _candidates(name) if _runs(path)), None)


def _candidates(name: str) -> Iterator[str]:
    if (found := shutil.which(name)) is not None:
        yield found
    # pyenv puts `python3.13` on the path also where the chosen version is another one, and then
    # it does not run.
    if (pyenv := shutil.which("pyenv")) is not None:
        root = subprocess.run((pyenv, "root"), capture_output=True, text=True).stdout.strip()
        for found_in in sorted(Path(root, "versions").glob(f"*/bin/{name}"), reverse=True):
            yield str(found_in)


def _runs(path: str) -> bool:
    try:
        return subprocess.run((path, "--version"), capture_output=True).returncode == 0
    except OSError:
        return False


def main() -> None:
    """Print the path of the interpreter that the command line names."""
    name = sys.argv[1]
    found = find(name)
    if found is None:
        sys.exit(f"there is no {name} here: neither on the path nor among the versions of pyenv")
    print(found)


if __name__ == "__main__":
    main()
