"""Every page with a terminal does what it shows."""

import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from docs import commands as program

from .sessions import Mismatch, Session, blocks, steps
from .untyped import GIVEN, NOT_TYPED

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.timeout(1_500)  # ends what hangs; no result depends on it
TEXTS = {page: page.read_text() for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]}


def commands(page: Path) -> list[str]:
    consoles = [block.text for block in blocks(TEXTS[page]) if block.language == "console"]
    typed = [step.typed for console in consoles for step in steps(console) if not step.is_key]
    return [command for command in typed if command]


def untyped(page: Path) -> Mapping[str, str]:
    return NOT_TYPED.get(str(page.relative_to(DOCS.parent)), {})


def typed(page: Path) -> list[str]:
    return [line for line in commands(page) if not line.startswith(tuple(untyped(page)))]


def test_each_exemption_is_of_a_command_that_a_page_has() -> None:
    for page in TEXTS:
        lines = commands(page)
        for begin in untyped(page):
            assert any(line.startswith(begin) for line in lines), f"{page.name}: {begin}"
    pages = {str(page.relative_to(DOCS.parent)) for page in TEXTS}
    assert {*NOT_TYPED, *GIVEN} <= pages


@cache
def flags_of_commands() -> dict[str, set[str]]:
    return {
        command.name: {
            flag.rstrip(",/") for row in command.rows.values() for flag in row.flags.split()
        }
        for command in program.commands()
    }


@pytest.mark.parametrize("page", NOT_TYPED)
def test_what_is_not_typed_has_the_flags_that_exist(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RELIABLE_CHANNEL_PLUGINS", raising=False)
    known = flags_of_commands()
    every = {"--help", "--help-all", "-o", "--log-level", "--verbose", "-v", "-h"}
    for line in commands(DOCS.parent / page):
        words = shlex.split(line, comments=True)
        for at in (at for at, word in enumerate(words) if word == "reliable-channel"):
            names = [" ".join(words[at : at + count]) for count in (2, 3)]
            if not (found := [name for name in names if name in known]):
                assert f"def {words[at + 1]}(" in TEXTS[DOCS.parent / page], line  # of the page
                continue
            name = max(found)
            given = [word.partition("=")[0] for word in words[at:] if re.match("--?[a-z]", word)]
            assert {*given} <= known[name] | every, line


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    sorted(page for page in TEXTS if typed(page)),
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    with Session(tmp_path, untyped=untyped(page)) as session:
        session.play(GIVEN.get(str(page.relative_to(DOCS.parent)), ""))
        session.run(TEXTS[page])


@pytest.mark.parametrize(
    ("console", "error"),
    [
        ("$ echo hello\ngood-bye", "printed\nhello"),
        ("$ echo hello\n$ echo again\nagain", "nothing more"),
        ("$ echo no page shows this", "nothing more"),
        ("$ pip install 'reliable-channel[colour]'\n$ true", "no extra"),
    ],
)
def test_a_page_that_shows_something_else_is_an_error(
    console: str, error: str, tmp_path: Path
) -> None:
    with Session(tmp_path) as session, pytest.raises(Mismatch, match=error):
        session.run(f"```console\n{console}\n```\n")
