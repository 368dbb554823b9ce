"""Every page with a terminal does what it shows."""

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from docs import commands as program
from release import stranger

from .sessions import Mismatch, Session, blocks, steps
from .test_make import ENVIRONMENT
from .untyped import GIVEN, NOT_TYPED

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.timeout(1_500)  # ends what hangs; no result depends on it
TEXTS = {page: page.read_text() for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]}


def commands(page: Path) -> list[str]:
    """What a page types."""
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


@cache
def can_be_made(arguments: tuple[str, ...]) -> bool:
    # Else make looks for a Python, each time that it needs one.
    run = ["make", "--dry-run", f"PYTHON={sys.executable}", *arguments]
    done = subprocess.run(run, cwd=DOCS.parent, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    return not done.returncode


@pytest.mark.parametrize("page", NOT_TYPED)
def test_what_is_not_typed_has_the_flags_and_targets_that_exist(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RELIABLE_CHANNEL_PLUGINS", raising=False)
    known = flags_of_commands()
    every = {"--help", "--help-all", "-o", "--log-level", "--verbose", "-v", "-h"}
    for line in commands(DOCS.parent / page):
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert can_be_made(tuple(words[1:])), line
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


def shown(*lines: str) -> str:
    return "\n".join(["```console", *lines, "```", ""])


def test_output_that_differs_is_an_error(tmp_path: Path) -> None:
    with Session(tmp_path) as session, pytest.raises(Mismatch, match="printed\nhello"):
        session.run(shown("$ echo hello", "good-bye"))


def test_output_that_is_not_shown_is_an_error(tmp_path: Path) -> None:
    with Session(tmp_path) as session, pytest.raises(Mismatch, match="nothing more"):
        session.run(shown("$ echo hello", "$ echo again", "again"))


def test_a_command_may_go_on_and_be_interrupted(tmp_path: Path) -> None:
    page = shown("$ echo begun; sleep 1000", "begun") + shown("^C", "", "$ echo ended", "ended")
    with Session(tmp_path) as session:
        session.run(page)


def test_a_last_command_that_shows_nothing_must_end(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(shown("$ touch done"))
    assert (tmp_path / "done").exists()
    with Session(tmp_path) as session, pytest.raises(Mismatch, match="nothing more"):
        session.run(shown("$ echo nobody shows this"))


def test_a_command_may_have_several_lines(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(shown("$ echo one \\", "    two", "one two"))


def test_a_command_that_is_not_typed_is_left_out_with_its_output(tmp_path: Path) -> None:
    with Session(tmp_path, untyped=["docker"]) as session:
        session.run(shown("$ docker run it", "a lot", "$ echo one", "one"))


def test_dots_stand_for_anything(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(shown("$ seq 1 9; echo an id: 7f3a", "1", "…", "9", "an id: …"))


def test_files_terminals_and_ports(tmp_path: Path) -> None:
    page = '```text title="a/port.txt"\n8645\n```\n' + shown("$ wc -l < a/port.txt", "1")
    page += (
        '```console title="second"\n$ test $(cat a/port.txt) != 86""45 && echo 8645\n8645\n```\n'
    )
    with Session(tmp_path) as session:
        session.run(page)


def test_pip_knows_the_packages(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(shown("$ pip install 'reliable-channel[cli]' pytest"))
    with Session(tmp_path) as session, pytest.raises(Mismatch, match="no extra"):
        session.run(shown("$ pip install 'reliable-channel[colour]'", "$ true"))


def test_blocks_may_be_indented() -> None:
    assert blocks('* a\n\n  ```python title="a.py"\n  if x:\n      pass\n  ```\n')[0] == (
        "python",
        "a.py",
        "if x:\n    pass\n",
    )


def test_the_pages_of_the_strangers_hour_have_steps() -> None:
    for name in stranger.PAGES:
        steps = stranger.sections((DOCS / name).read_text())
        assert steps and all(heading and "```" in text for heading, text in steps)
    assert stranger.sections("# A page\n```text\nx\n```\n## Do\n" + shown("$ true")) == [
        ("Do", shown("$ true"))
    ]


def test_the_times_of_steps_are_a_table(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        steps = list(stranger.follow(session, "start/install.md"))
    assert [step.heading for step in steps] == ["Install"]
    assert "| start/install.md | Install | " in stranger.table(steps)
