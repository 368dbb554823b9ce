"""Peers that are written for Node.js: their modules are installed once for each state of their
sources, as the lock beside them says."""

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

from .go_build import BUILT, TIMEOUT_S, locked


class NodeUnavailable(RuntimeError):
    """There is no Node.js here, or npm has not what the peer needs."""


def installed(sources: Path) -> Path:
    """The script `peer.js` of that folder, beside the modules that it needs.

    Raises:
        NodeUnavailable: there is no Node.js, or npm does not answer.
    """
    files = sorted(file for file in sources.iterdir() if file.is_file())
    digest = sha256(b"".join(sha256(file.read_bytes()).digest() for file in files))
    folder = BUILT / f"{sources.parent.name}-{sources.name}-{digest.hexdigest()[:16]}"
    with locked(folder.with_suffix(".lock")):
        if not (folder / "installed").exists():
            _install(folder, files)
    return folder / "peer.js"


def _install(folder: Path, files: list[Path]) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NodeUnavailable("no `node` and `npm` on the path")
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NodeUnavailable(f"npm ci takes more than {TIMEOUT_S} s") from error
    if result.returncode:
        raise NodeUnavailable(f"npm ci: {result.stderr.strip()[-300:]}")
    (folder / "installed").touch()
