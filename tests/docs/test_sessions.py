"""Every page with a terminal does what it shows."""

from pathlib import Path

import pytest

from release import stranger

from .sessions import Mismatch, Session, blocks

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.timeout(1_500)  # ends what hangs; no result depends on it
FOLDERS = ("start", "how-to", "understand")
RUN = sorted(
    [
        DOCS.parent / "README.md",
        DOCS / "faq.md",
        *(page for name in FOLDERS for page in (DOCS / name).glob("*.md")),
    ]
)


LISTED = "lists commands of a longer job or of other machines; "
NOT_TYPED = {
    "auto.md": LISTED + "tests/plugins/lab/sim",
    "choosing.md": LISTED + "an hour of simulation; tests/plugins/lab runs small ones",
    "command-line.md": "fragments; tests/cli runs each flag",
    "conformance-kit.md": LISTED + "tests/conformance and `make conformance` run them",
    "fuzzing.md": LISTED + "`make fuzz`",
    "group-reliability.md": LISTED + "tests/plugins/audit/group_reliability",
    "implementations.md": "needs npm; `make conformance`",
    "interop.md": LISTED + "`make interop`, with Docker",
    "migration-0.2.md": "rewrites the reader's program; tests/test_migrate.py",
    "model.md": LISTED + "`make model`",
    "peer.md": "a program that is driven by another one; tests/cli/test_peer_lines.py",
    "pipeline.md": LISTED + "`make test-spark`",
    "plugins.md": "builds and uploads a plugin; tests/plugins/test_example.py installs and runs it",
    "releases.md": LISTED + "`make dist` in CI",
    "simulation.md": LISTED + "`make sim` in CI",
    "state.md": "fragments on the reader's files; tests/state/test_files.py",
    "status-bots.md": "needs a Status community; plugins/reliable_channel_status/tests",
    "status-communities.md": "needs a Status community; plugins/reliable_channel_status/tests",
    "status-framework.md": "runs until it is stopped; tests of reloading in the plugin",
    "status.md": "plugins/reliable_channel_status/tests runs the page's programs",
    "store.md": "needs nodes and databases of others; tests/plugins/audit/commands",
    "sweeps.md": LISTED + "tests/plugins/lab/sweep",
    "tuning.md": LISTED + "`make tuning`",
    "vectors.md": LISTED + "tests/vectors compares",
    "verdict.md": LISTED + "tests/plugins/audit/test_planted.py",
}
"""Pages whose terminals are not typed here, with what runs the commands instead."""


def test_every_page_with_a_terminal_is_typed_or_has_a_reason() -> None:
    pages = [page for page in DOCS.rglob("*.md") if page not in RUN]
    with_terminal = {
        str(page.relative_to(DOCS))
        for page in pages
        if any(block.language == "console" for block in blocks(page.read_text()))
    }
    assert with_terminal == NOT_TYPED.keys()


@pytest.mark.parametrize("page", RUN, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(page.read_text())


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
