"""All distributions are one train: one version, which the changelog names first, with its date."""

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any, Final

from reliable_channel import __version__

ROOT: Final = Path(__file__).parents[1]
PLUGINS: Final = sorted(ROOT.glob("plugins/*/pyproject.toml"))
MAX_CHANGELOG_LINES: Final = 60
"""A version that needs more has a page of its own."""


def project(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    return found


def test_plugins_have_the_version_of_the_sdk() -> None:
    assert {project(file)["version"] for file in PLUGINS} == {__version__}


def test_plugins_that_need_one_version_need_this_one() -> None:
    exact = [
        line
        for file in PLUGINS
        for line in project(file)["dependencies"]
        if line.startswith("reliable-channel") and "==" in line
    ]
    assert exact and {line.split("==")[1] for line in exact} == {__version__}


def test_the_changelog_begins_with_this_version_and_its_date() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    head, *_ = re.findall(r"(?m)^## (.+)$", changelog)
    version, dated = head.split(" - ")
    assert version == __version__ and date.fromisoformat(dated)
    newest = changelog.split("\n## ")[1]
    assert newest.count("\n") <= MAX_CHANGELOG_LINES
