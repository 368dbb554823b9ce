"""Installs NDNts for the peer in `ndnts/`, once for each state of its sources."""

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

SOURCES = Path(__file__).parent / "ndnts"
BUILT = Path(__file__).parents[2] / "build" / "interop"


class NdntsUnavailable(RuntimeError):
    """There is no Node.js here, or npm has not what the peer needs."""


def installed() -> Path:
    """The peer's script, beside the modules that it needs.

    Raises:
        NdntsUnavailable: there is no Node.js, or npm does not answer.
    """
    files = sorted(file for file in SOURCES.iterdir() if file.is_file())
    digest = sha256(b"".join(sha256(file.read_bytes()).digest() for file in files))
    folder = BUILT / f"ndnts-{digest.hexdigest()[:16]}"
    if (folder / "installed").exists():
        return folder / "peer.js"
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NdntsUnavailable("no `node` and `npm` on the path")
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)
    result = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    if result.returncode:
        raise NdntsUnavailable(f"npm ci: {result.stderr.strip()[-300:]}")
    (folder / "installed").touch()
    return folder / "peer.js"
