"""Virtual environments with nothing in them but what a wheel brings."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.version import Version

from release.building import ROOT, packages

_QUIET: Final = ("--quiet", "--disable-pip-version-check")


class TrialFailed(Exception):
    """A command failed in a bare environment; the text has its output."""


class Versions(StrEnum):
    """Versions of dependencies in an environment."""

    TESTED = "tested"
    """Versions in `requirements/`, with which the project's tests run."""
    NEWEST = "newest"
    """Versions that pip finds, which is what a user gets today."""
    LOWEST = "lowest"
    """Lower bounds in the `pyproject.toml` of each package."""


class Bare:
    """One virtual environment."""

    def __init__(self, place: Path, python: str, versions: Versions = Versions.TESTED) -> None:
        self.place = place
        self._constraints: tuple[str, ...] = ()
        if versions is not Versions.NEWEST:
            place.mkdir(parents=True, exist_ok=True)
            file = place / "constraints.txt"
            chosen = _tested() if versions is Versions.TESTED else _lowest()
            file.write_text("".join(f"{line}\n" for line in chosen))
            self._constraints = ("--constraint", str(file))
        execute((python, "-m", "venv", str(place / "venv")), cwd=place)

    @property
    def python(self) -> str:
        return str(self.place / "venv" / "bin" / "python")

    def pip(self, dist: Path) -> dict[str, str]:
        """Environment variables with which a plain `pip install` does what `install` does."""
        inherited = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
        links = [inherited.pop("PIP_FIND_LINKS", ""), str(dist)]
        settings = {"PIP_FIND_LINKS": " ".join(filter(None, links)), "PIP_QUIET": "1"}
        if self._constraints:
            settings["PIP_CONSTRAINT"] = self._constraints[1]
        return inherited | settings | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def install(self, *wanted: str, dist: Path) -> None:
        """Install distributions by name, our own from `dist`."""
        pip = (self.python, "-m", "pip", "install", *_QUIET, "--find-links", str(dist))
        execute([*pip, *self._constraints, *wanted], cwd=self.place)

    def run(self, *command: str) -> str:
        """Run a program of the environment, or `python`; returns what it prints."""
        program = str(self.place / "venv" / "bin" / command[0])
        return execute((program, *command[1:]), cwd=self.place)


def execute(command: Sequence[str], *, cwd: Path) -> str:
    """Run a command that finds nothing of the source tree; returns standard output.

    Raises:
        TrialFailed: It ended with another status than 0.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        text = f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        raise TrialFailed(text.strip())
    return done.stdout


def _tested() -> Iterator[str]:
    """Yield the versions of requirements/, without hashes: there are none of our own wheels."""
    pinned: dict[str, str] = {}
    for name in ("dev", "release"):
        for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines():
            if found := re.match(r"[\w.-]+==[^\s;\\]+( ;[^\\]+)?", line):
                pinned.setdefault(found[0].split("==")[0], found[0].strip())
    yield from pinned.values()


def _lowest() -> Iterator[str]:
    """Yield the lowest version that all packages accept, for each dependency that is declared."""
    lowest: dict[str, Version] = {}
    for package in packages():
        project = tomllib.loads((ROOT / package / "pyproject.toml").read_text())["project"]
        extras = project.get("optional-dependencies", {}).values()
        for text in (*project["dependencies"], *(each for extra in extras for each in extra)):
            wanted = Requirement(text)
            bounds = [Version(each.version) for each in wanted.specifier if each.operator == ">="]
            if bounds:
                lowest[wanted.name] = max(bounds[0], lowest.get(wanted.name, bounds[0]))
    yield from (f"{name}=={version}" for name, version in lowest.items())
