"""The make commands of README and pages: they exist, and those of README are run, here or by CI."""

import os
import re
import shlex
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MAKE: Final = ("make", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.ready")
"""make with this environment, which it does not set up again."""
OF_THE_TESTS: Final = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "RELIABLE_CHANNEL_PLUGINS"}
"""A make that knows of an outer one prints which folder it enters. And where the outer one has
`--output-sync`, it locks its standard output: with /dev/null, that waits for all who lock it, such
as a Docker engine."""
ENVIRONMENT: Final = {
    **{name: value for name, value in os.environ.items() if name not in OF_THE_TESTS},
    "NO_COLOR": "1",
    "FUZZ_SECONDS": "1",
}

CONTRIBUTING: Final = ROOT / "docs" / "contributing.md"
RUN: Final = {
    "help": "make site",
    "conformance WHAT=vectors": " passed, 0 failed",
    "demo ARGS='--messages 3 --seed 1 --timeout 100000'": "All 5 logs are equal",
    "hunt WHAT=crash ARGS='--kills 1 --seed 5'": " 0 promises broken",
    "hunt WHAT=fuzz ARGS=bloom": "0 of 1 failed",
}
"""Commands of README and contributing.md that are run to their end here, on something small, and
what they print."""


def commands(text: str) -> list[list[str]]:
    """The arguments of each `make …` in running text or at the beginning of a line of a block."""
    found = re.findall(r"`make ([^`…]+?)…?`|^\s*(?:\$ )?make ([a-z][^\n…]*)$", text, re.MULTILINE)
    return [shlex.split(inline or line, comments=True) for inline, line in found]


def targets(text: str) -> set[str]:
    return {word for line in commands(text) for word in line if re.fullmatch("[a-z][a-z-]*", word)}


def made_by(script: str) -> list[str]:
    """The targets of each `make` of a script."""
    words = [word for line in re.findall("make (.+)", script) for word in line.split()]
    return [word for word in words if re.fullmatch("[a-z][a-z-]*", word)]


def stages() -> set[str]:
    """Those that `.ci/run` makes itself, and those that it lists for `.ci/stage`."""
    return set(made_by((ROOT / ".ci" / "run").read_text().replace("printf '%s\\n'", "make")))


@cache
def output(*arguments: str) -> str:
    done = subprocess.run(
        [*MAKE, *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_commands_are_found_in_text_and_in_blocks() -> None:
    text = "Run `make one two`.\n```console\n$ make three ARGS='a b'  # a comment\n```\n"
    assert commands(text) == [["one", "two"], ["three", "ARGS=a b"]]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page.read_text())],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_what_a_page_makes_can_be_made(page: Path) -> None:
    for arguments in commands(page.read_text(encoding="utf-8")):
        output("--dry-run", *arguments)


def test_the_page_for_contributors_says_what_ci_makes() -> None:
    sentence = re.search("`make ([^`]+)` is what CI runs", CONTRIBUTING.read_text())
    assert sentence is not None
    assert set(sentence[1].split()) == stages()


def test_the_workflow_makes_what_ci_makes_in_four_jobs() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    scripts = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert len(jobs) == 4
    assert sorted(target for script in scripts for target in made_by(script)) == sorted(stages())


def test_each_command_of_readme_is_run_here_or_in_ci() -> None:
    here = {command.split()[0] for command in RUN}
    assert targets((ROOT / "README.md").read_text()) <= here | stages()


@pytest.mark.slow
@pytest.mark.parametrize("command", RUN)
def test_a_command_of_readme_runs(command: str) -> None:
    assert RUN[command] in output(*shlex.split(command))


@pytest.mark.slow
def test_sim_goes_on_until_it_is_stopped() -> None:
    command = [*MAKE, "sim", "FOREVER=1", "ARGS=--jobs 1 --digests"]
    with subprocess.Popen(
        command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, process_group=0
    ) as sim:
        assert sim.stdout is not None
        begun = sim.stdout.readline()
        os.killpg(sim.pid, signal.SIGINT)
        rest = sim.stdout.read()
    assert begun.startswith("seed ") and rest.rstrip().endswith(" 0 failed")
