"""Pictures of web pages for the documentation, of the journals of a demo: `watch` and `audit`.

`python -m docs.page_pictures` makes them anew, and so does `make site`. They need Chromium, which
is installed as root on Debian, and Node.js; the audit's page Java and Spark as well (`make
test-spark` installs it). Where these cannot be had, `make site` fails in CI; elsewhere it keeps the
committed pictures, and prints which and why.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from interop.browser.test_interop_browser import browser
from interop.debian import ProgramUnavailable
from interop.node_install import NodeUnavailable
from interop.watch.headless import visited
from tests.cli.processes import PROGRAM

DOCS: Final = Path(__file__).parent
WIDTH: Final = 1280
HEIGHT: Final = 1110
_HEAD: Final = "<style>.matrix ~ * { display: none }</style>"
"""The page of `audit` up to the table of participants and promises, so that no part is cut."""
MAX_BYTES: Final = 250_000
"""Of a committed picture."""


def journals(folder: Path) -> Path:
    """Journals of a demo, always of the same losses."""
    made = folder / "journals"
    demo = ("demo", "--seed", "1", "--timeout", "600", "--journals", str(made))
    subprocess.run((*PROGRAM, *demo), check=True, stdout=subprocess.DEVNULL)
    return made


def watch(journals: Path, picture: Path) -> None:
    """The page of `watch`, gone back in time to a gap, with a message explained."""
    command = [*PROGRAM, "watch", str(journals)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as served:
        try:
            assert served.stdout is not None
            url = served.stdout.readline().removeprefix("open ").strip()
            visited("use.mjs", browser(), url, str(picture.resolve()))
        finally:
            served.terminate()


def audit(journals: Path, picture: Path) -> None:
    """The head of the page of `audit`: the verdict, and participants by promises."""
    with TemporaryDirectory() as report:
        command = [*PROGRAM, "audit", str(journals), "--out", report]
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True)
        page = Path(report) / "index.html"
        if not page.exists():
            raise RuntimeError(f"`audit` wrote no page: {done.stderr.strip()[-500:]}")
        page.write_text(page.read_text().replace("</head>", f"{_HEAD}</head>", 1))
        size = f"--window-size={WIDTH},{HEIGHT}"
        flags = ("--headless", "--no-sandbox", "--hide-scrollbars", size)
        shot = (browser(), *flags, f"--screenshot={picture.resolve()}", page.as_uri())
        subprocess.run(shot, check=True, capture_output=True)


MADE: Final[dict[str, Callable[[Path, Path], None]]] = {
    "how-to/watch.png": watch,
    "pictures/audit.png": audit,
}
"""Pictures by their place in the documentation."""


def make(folder: Path) -> None:
    """Make all pictures in a folder of the documentation.

    Raises:
        ProgramUnavailable, NodeUnavailable: Chromium or Node.js cannot be had.
        RuntimeError: a page is not there, or not as it should be.
    """
    browser()  # before the demo runs
    with TemporaryDirectory() as work:
        made = journals(Path(work))
        for name, draw in MADE.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            draw(made, folder / name)


def make_or_keep(folder: Path) -> None:
    """As `make`; outside CI the committed pictures stay where a program is missing.

    Raises:
        ProgramUnavailable, NodeUnavailable, RuntimeError: in CI, as `make`.
    """
    try:
        make(folder)
    except (ProgramUnavailable, NodeUnavailable, RuntimeError) as reason:
        if os.environ.get("CI") == "true":
            raise
        print(f"kept as committed where not made: {', '.join(MADE)}: {reason}")


def _environment() -> dict[str, str]:
    return os.environ | {"RELIABLE_CHANNEL_PLUGINS": "watch,audit"}


if __name__ == "__main__":
    make(DOCS)
    sys.exit(any((DOCS / name).stat().st_size > MAX_BYTES for name in MADE))
