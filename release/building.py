"""Wheels and sdists of all packages, built twice in two places, which must give the same bytes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


class BuildFailed(Exception):
    """A package did not build, or not to the same bytes twice."""


def packages() -> list[Path]:
    """The folders with a distribution each, relative to the root; the SDK first."""
    plugins = sorted((ROOT / "plugins").glob("*/pyproject.toml"))
    return [Path(), *(file.parent.relative_to(ROOT) for file in plugins)]


def build_all(out: Path, work: Path) -> list[Path]:
    """Build everything into `out`, which is emptied first.

    The sources are the files that git knows, copied to two folders of different names with
    different times. The wheel is built from the sdist, so a sdist that lacks a file fails here.

    Raises:
        BuildFailed: A build failed, or the two differ; the text names the file.
    """
    first, second = (_built_in(work / name) for name in ("one", "another-place"))
    for name in sorted({*first, *second}):
        if first.get(name) != second.get(name):
            raise BuildFailed(f"{name} is not reproducible: two builds of one tree differ")
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(work / "one" / "dist", out)
    return sorted(out.iterdir())


def _built_in(place: Path) -> dict[str, str]:
    sources = place / "sources"
    for file in _tracked():
        target = sources / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)
    for package in packages():
        _run("-m", "build", "--no-isolation", "--outdir", place / "dist", sources / package)
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in (place / "dist").iterdir()}


def _tracked() -> Iterator[str]:
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    done = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    yield from (name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())


def _run(*arguments: str | Path) -> None:
    """Run this Python with the time of the last commit as the time of all files in archives."""
    stamp = subprocess.run(
        ("git", "log", "-1", "--format=%ct"), cwd=ROOT, check=True, capture_output=True, text=True
    )
    done = subprocess.run(
        (sys.executable, *arguments),
        env={**os.environ, "SOURCE_DATE_EPOCH": stamp.stdout.strip()},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BuildFailed(f"{done.stdout}\n{done.stderr}".strip())
