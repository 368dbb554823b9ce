"""`make dist`: build all distributions into dist/, and try them as a user would."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from release.bare import Bare, TrialFailed, Versions, execute
from release.building import ROOT, BuildFailed, build_all
from release.pythons import find
from release.trials import everything, foreign_waku, sdk_alone, types

Trial = Callable[[Bare, Path], str]
TRIALS: tuple[Trial, ...] = (sdk_alone, everything, types, foreign_waku)


def main() -> None:
    """Build, check the metadata, and try in a bare environment of each Python."""
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument(
        "--python", action="append", help="an interpreter; the default is PYTHONS, or this one"
    )
    parser.add_argument(
        "--versions",
        type=Versions,
        choices=[*Versions],
        default=Versions.TESTED,
        help="those of the tests (the default), the newest, or the lowest declared",
    )
    given = parser.parse_args()
    pythons = []
    for name in given.python or os.environ.get("PYTHONS", "").split() or [sys.executable]:
        if (python := find(name)) is None:
            sys.exit(f"error: there is no {name} here")
        pythons.append(python)
    with tempfile.TemporaryDirectory(prefix="reliable-channel-dist-") as work:
        try:
            _all(pythons, Path(work), given.versions)
        except (BuildFailed, TrialFailed, subprocess.CalledProcessError) as error:
            sys.exit(f"error: {error}")


def _all(pythons: list[str], work: Path, versions: Versions) -> None:
    dist = ROOT / "dist"
    built = build_all(dist, work / "builds")
    print(f"built   {len(built)} distributions in dist/, each twice, byte for byte the same")
    execute((sys.executable, "-m", "twine", "check", "--strict", *map(str, built)), cwd=work)
    print("checked their metadata (twine check --strict)")
    for number, python in enumerate(pythons):
        version = execute((python, "--version"), cwd=work).strip()
        for trial in TRIALS[:1]:
            alone = Bare(work / f"alone-{number}", python, versions)
            print(f"tried   {version}: {trial(alone, dist)}", flush=True)
        full = Bare(work / f"full-{number}", python, versions)
        for trial in TRIALS[1:]:
            print(f"tried   {version}: {trial(full, dist)}", flush=True)


if __name__ == "__main__":
    main()
