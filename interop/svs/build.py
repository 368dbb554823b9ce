"""Builds the Go peer, once for each state of its sources."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent / "go"
BUILD = Path(__file__).parents[2] / "build"


class NoGo(Exception):
    """There is no Go here to build the peer with."""


def build_peer() -> Path:
    """The program; from `build/` if it was built before.

    Raises:
        NoGo: there is no `go` on the path.
        RuntimeError: it does not build; the text is the compiler's.
    """
    digest = hashlib.sha256()
    for file in sorted(SOURCES.iterdir()):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    program = BUILD / f"svspeer-{digest.hexdigest()[:16]}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise NoGo("no `go` on the path; put Go 1.24 or newer there to run against ndnd")
    BUILD.mkdir(exist_ok=True)
    unfinished = program.with_suffix(f".{os.getpid()}")
    # -mod=mod: module proxies that answer for exact versions alone are enough; go.sum is checked.
    environment = os.environ | {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    result = subprocess.run(
        [go, "build", "-trimpath", "-o", str(unfinished), "."],
        cwd=SOURCES, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode:
        raise RuntimeError(f"the Go peer does not build:\n{result.stderr}")
    unfinished.rename(program)
    return program
