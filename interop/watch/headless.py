"""Chromium, headless, and the scripts that visit the page with it."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from ..go_build import ROOT
from ..node_install import installed

SOURCES: Final = ROOT / "interop" / "watch" / "page"


def visited(script: str, chromium: str, *arguments: str) -> Any:
    """What a script prints, as a value.

    Raises:
        NodeUnavailable: there is no Node.js, or npm does not answer.
        RuntimeError: the page did not do what the script expects.
    """
    folder: Path = installed(SOURCES).parent
    command = ["node", script, chromium, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-2_000:])
    return json.loads(done.stdout)
