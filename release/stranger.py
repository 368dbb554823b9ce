"""`make dist WHAT=stranger`: the pages that a newcomer follows, with the time of each.

A virtual environment with nothing in it, an empty home, and the wheels of this tree: the pages are
typed as tests/docs does it, but pip installs. No page may need what only a developer's machine has.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from release.bare import Bare
from release.building import ROOT, build_all
from tests.docs.sessions import Mismatch, Session, blocks

PAGES: Final = (
    "start/install.md",
    "start/first-message.md",
    "start/tutorial.md",
    "how-to/deploy.md",
)
"""In the order in which a newcomer meets them."""


class Step(NamedTuple):
    """A section of a page, and how long its commands took."""

    page: str
    heading: str
    took_s: float


def sections(page: str) -> list[tuple[str, str]]:
    """Heading and text of each section of a page that has something to run."""
    found = []
    for part in re.split(r"(?m)^## ", page):
        heading, _, text = part.partition("\n")
        if any(block.language == "console" or block.title for block in blocks(text)):
            found.append((heading.removeprefix("# "), text))
    return found


def follow(session: Session, name: str) -> Iterator[Step]:
    """Do what a page says, section by section.

    Raises:
        Mismatch: something else happened than the page shows.
    """
    for heading, text in sections((ROOT / "docs" / name).read_text()):
        begun = time.monotonic()
        session.play(text)
        yield Step(name, heading, time.monotonic() - begun)
    session.finish()


def table(steps: list[Step]) -> str:
    lines = ["| page | section | seconds |", "|---|---|--:|"]
    lines += [f"| {step.page} | {step.heading} | {step.took_s:.0f} |" for step in steps]
    total = sum(step.took_s for step in steps)
    return "\n".join([*lines, f"| all | | {total:.0f} |"])


def main() -> None:
    """Build, follow all pages, and print the table."""
    parser = argparse.ArgumentParser(prog="make dist WHAT=stranger", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter to use")
    parser.add_argument("--dist", type=Path, help="wheels of an earlier `make dist`")
    parser.add_argument("--container", action="store_true", help="in a bare Debian container")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reliable-channel-stranger-") as work:
        place = Path(work)
        dist = given.dist and given.dist.resolve()
        if dist is None:
            dist = place / "dist"
            build_all(dist, place / "builds")
        if given.container:
            from release.container import run_in_container  # which needs more than the pages do

            sys.exit(run_in_container(dist))
        try:
            steps = list(_everything(Bare(place / "bare", given.python), place, dist))
        except Mismatch as error:
            sys.exit(f"error: {error}")
    print(table(steps))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def _everything(bare: Bare, place: Path, dist: Path) -> Iterator[Step]:
    for number, name in enumerate(PAGES):
        folder = place / f"home-{number}"
        folder.mkdir()
        with Session(folder, programs=Path(bare.python).parent, settings=bare.pip(dist)) as session:
            for step in follow(session, name):
                print(f"{step.took_s:6.1f} s  {step.page}: {step.heading}", flush=True)
                yield step


if __name__ == "__main__":
    main()
