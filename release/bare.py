"""Virtual environments with nothing in them but what a wheel brings."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from release.building import ROOT

_QUIET: Final = ("--quiet", "--disable-pip-version-check")


class TrialFailed(Exception):
    """A command failed in a bare environment; the text has its output."""


class Bare:
    """One virtual environment.

    Dependencies get the versions that the project's tests run with, unless `newest`: then those
    that pip finds, which is what a user gets today.
    """

    def __init__(self, place: Path, python: str, *, newest: bool = False) -> None:
        self.place = place
        self._constraints = () if newest else ("--constraint", str(_constraints(place)))
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


def _constraints(place: Path) -> Path:
    """The versions of requirements/, without hashes: those of our own wheels are not in there."""
    pinned: dict[str, str] = {}
    for name in ("dev", "release"):
        for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines():
            if found := re.match(r"[\w.-]+==[^\s;\\]+( ;[^\\]+)?", line):
                pinned.setdefault(found[0].split("==")[0], found[0].strip())
    place.mkdir(parents=True, exist_ok=True)
    file = place / "constraints.txt"
    file.write_text("\n".join(pinned.values()) + "\n")
    return file
