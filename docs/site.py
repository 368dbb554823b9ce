"""Build the documentation site (`make site`): build/site/VERSION, `latest`, and a list of both.

Zensical builds it from mkdocs.yml. A page that loads anything from the network is an error, since
the site must work in a closed network and must not report its readers to others.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SITE: Final = ROOT / "build" / "site"
LATEST: Final = SITE / "latest"
VERSION: Final = runpy.run_path(str(ROOT / "reliable_channel" / "_version.py"))["__version__"]
_LOADED: Final = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}

_IN_SHEETS: Final = re.compile(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]+)")


class Loads(HTMLParser):
    """What a page loads, beside itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        given = dict(attrs)
        address = given.get(_LOADED.get(tag, "")) or ""
        if tag == "link" and given.get("rel") not in ("stylesheet", "preload", "icon"):
            return
        self.addresses.append(address)


def from_the_network(site: Path) -> Iterator[str]:
    """Everything that pages and style sheets load from elsewhere."""
    for page in sorted(site.rglob("*.html")):
        loads = Loads()
        loads.feed(page.read_text())
        for address in loads.addresses:
            if re.match(r"(https?:)?//", address):
                yield f"{page.relative_to(site)}: {address}"
    for sheet in sorted(site.rglob("*.css")):
        for address in _IN_SHEETS.findall(sheet.read_text()):
            yield f"{sheet.relative_to(site)}: {address}"


def search_guides_first(index: Path) -> None:
    """Leave members of classes and rows of results out of the search index."""
    search = json.loads(index.read_text(encoding="utf-8"))
    search["items"] = [
        item
        for item in search["items"]
        if not item["location"].startswith(("tables.html#", "compat-tests.html#"))
        and (item["level"] <= 2 or not item["location"].startswith("api/"))
    ]
    index.write_text(json.dumps(search), encoding="utf-8")


def main() -> None:
    """Build, check, and number the version."""
    shutil.rmtree(LATEST, ignore_errors=True)
    built = subprocess.run(
        (Path(sys.executable).with_name("zensical"), "build", "--clean"),
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    if built.returncode:
        sys.exit(f"error: the site was not built\n{built.stdout}{built.stderr}")
    if found := list(from_the_network(LATEST)):
        sys.exit("error: pages load from the network:\n" + "\n".join(found))
    search_guides_first(LATEST / "search.json")
    shutil.rmtree(SITE / VERSION, ignore_errors=True)
    shutil.copytree(LATEST, SITE / VERSION)
    numbers = [place.name for place in SITE.iterdir() if re.fullmatch(r"\d[\w.]*", place.name)]
    names = ["latest", *sorted(numbers, reverse=True)]
    versions = [{"version": name, "title": name, "aliases": []} for name in names]
    (SITE / "versions.json").write_text(json.dumps(versions))
    (SITE / "index.html").write_text(
        '<!doctype html><meta http-equiv="refresh" content="0; url=latest/index.html">\n'
    )
    pages = len(list(LATEST.rglob("*.html")))
    print(f"{pages} pages in {SITE.relative_to(ROOT)}/, for any server of files")


if __name__ == "__main__":
    main()
