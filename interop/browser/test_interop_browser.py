"""A page in headless Chromium and a Python program share a channel through the Python node."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..debian import ProgramUnavailable, debian_program
from ..go_build import ROOT
from ..needed import needed
from ..node_install import NodeUnavailable, installed

EXAMPLE: Final = ROOT / "examples" / "browser"
TEXT: Final = "hello from a browser"


def browser() -> str:
    """Chromium; installed, as root on Debian.

    Raises:
        ProgramUnavailable: it cannot be had: one line with the reason.
    """
    return debian_program("chromium", "chromium-browser", "google-chrome")


def page() -> Path:
    """The folder with the example's built page.

    Raises:
        NodeUnavailable: there is no Node.js, or npm does not have what the page needs.
    """
    folder = installed(EXAMPLE).parent
    command = ["npm", "run", "build"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NodeUnavailable(f"npm run build: {done.stderr.strip()[-300:]}")
    return folder


@contextmanager
def program(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """The example's program, and its node."""
    command = [sys.executable, str(EXAMPLE / "program.py"), str(folder)]
    environment = {**os.environ, "RELIABLE_CHANNEL_PLUGINS": "none"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_a_browser_and_a_python_program_share_a_channel() -> None:
    with needed("the browser", ProgramUnavailable, NodeUnavailable):
        chromium, folder = browser(), page()
    with program(folder) as python:
        assert python.stdout is not None
        url = python.stdout.readline().removeprefix("open ").strip()
        visit = ["node", "visit.mjs", chromium, url, TEXT]
        seen = subprocess.run(visit, cwd=folder, capture_output=True, text=True, check=False)
        assert seen.returncode == 0, seen.stderr
        heard = python.stdout.readline().strip()
    connected, answer, acknowledged = seen.stdout.splitlines()
    assert (connected, acknowledged) == ("connected", "acknowledged")
    assert heard.endswith(f": {TEXT}") and answer == f"python: I heard {heard!r}"
