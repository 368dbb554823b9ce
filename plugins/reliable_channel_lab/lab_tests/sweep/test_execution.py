"""Results do not depend on the partitioning, and a sweep that was killed goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from reliable_channel_lab.sweep import digest, execute, local_processes, read_results
from reliable_channel_lab.sweep.execution import Batch
from reliable_channel_lab.sweep.quiet import QuietRun
from reliable_channel_lab.sweep.results import write_batch
from tests.cli import forked

from . import killed as killed_sweep
from .killed import RUNS


def run_all(directory: Path, *, jobs: int = 1, batch_size: int = 2) -> str:
    return digest(execute(RUNS, directory, local_processes(jobs), batch_size=batch_size))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Results of all runs, and their digest."""
    directory = tmp_path_factory.mktemp("reference")
    return directory, run_all(directory)


@pytest.mark.parametrize(("jobs", "batch_size"), [(1, 1), (2, 1), (1, 4)])
def test_the_digest_is_the_same_with_any_processes_and_batches(
    tmp_path: Path, reference: tuple[Path, str], jobs: int, batch_size: int
) -> None:
    assert run_all(tmp_path, jobs=jobs, batch_size=batch_size) == reference[1]


def test_what_is_there_is_not_run_again(reference: tuple[Path, str]) -> None:
    directory, wanted = reference
    told: list[int] = []

    def nobody(_: Path, batches: Sequence[Batch]) -> Iterator[int]:
        assert not batches
        return iter(())

    again = execute(RUNS, directory, nobody, batch_size=1, progress=told.append)
    assert digest(again) == wanted
    assert told == [len(RUNS)]


def test_who_is_told_to_stop_keeps_what_is_done(
    tmp_path: Path, reference: tuple[Path, str]
) -> None:
    answers = iter([False, False, True])
    executor = local_processes(1, stopped=lambda: next(answers))
    assert len(execute(RUNS, tmp_path, executor, batch_size=2)) == 4
    assert run_all(tmp_path) == reference[1]


def test_results_of_others_in_the_directory_are_left_alone(
    tmp_path: Path, reference: tuple[Path, str]
) -> None:
    write_batch(tmp_path, [QuietRun(seed=99, participants=2, rounds=1).record()])
    assert run_all(tmp_path) == reference[1]
    assert len(read_results(tmp_path)) == len(RUNS) + 1


def test_executors_that_write_elsewhere_are_noticed(tmp_path: Path) -> None:
    def elsewhere(_: Path, batches: Sequence[Batch]) -> Iterator[int]:
        return map(len, batches)

    with pytest.raises(ValueError, match="all executors need the same directory"):
        execute(RUNS, tmp_path, elsewhere, batch_size=2)


def test_two_records_of_one_run_that_differ_are_noticed(tmp_path: Path) -> None:
    record = dict(RUNS[0].record())
    write_batch(tmp_path, [record])
    write_batch(tmp_path, [{**record, "missed": -1}, RUNS[1].record()])
    with pytest.raises(ValueError, match="has a different record elsewhere"):
        read_results(tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").write_text('{"id": "1"}\n{"id": \n')
    with pytest.raises(ValueError, match=r"0\.jsonl:2: the line is not a record"):
        read_results(tmp_path)


PLAN = """
[experiments.sync]
run = "quiet"
participants = [5, 10]
sync_schedule = ["suppressed", "js-waku", "svs"]
rounds = 3
seeds = 2
"""


def command(tmp_path: Path, results: str, *arguments: str) -> list[str]:
    (tmp_path / "sweep.toml").write_text(PLAN)
    return ["sweep", str(tmp_path / "sweep.toml"), "--results", str(tmp_path / results), *arguments]


def digest_of(tmp_path: Path, results: str, *arguments: str) -> str:
    done = forked.run(*command(tmp_path, results, *arguments), check=True)
    return done.stdout.split()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_sweep_that_was_killed_goes_on_to_the_same_digest(
    tmp_path: Path, reference: tuple[Path, str], jobs: str
) -> None:
    killed = subprocess.Popen(
        [sys.executable, killed_sweep.__file__, str(tmp_path), jobs],
        start_new_session=True,
    )
    assert killed.wait() == -signal.SIGKILL
    wait_for_group_to_end(killed.pid)
    there = read_results(tmp_path)
    assert there.keys() < {run.id for run in RUNS}
    assert len(there) == 3 or jobs == "2"
    assert run_all(tmp_path) == reference[1]


def wait_for_group_to_end(group: int) -> None:
    """The workers of a sweep that was killed end by themselves."""
    with suppress(ProcessLookupError):
        while True:
            os.killpg(group, 0)
            time.sleep(0.05)


def test_the_page_has_questions_that_nobody_asked_as_well(tmp_path: Path) -> None:
    page = tmp_path / "answers.md"
    told = digest_of(tmp_path, "paged", "--page", str(page))
    text = page.read_text()
    assert told in text
    assert "![sync](answers/sync.svg)" in text
    assert b"<svg" in (tmp_path / "answers" / "sync.svg").read_bytes()
    lines = (tmp_path / "answers" / "results.jsonl").read_text().splitlines()
    assert len(lines) == 12
    assert {json.loads(line)["run"] for line in lines} == {"quiet"}


def test_a_wrong_file_is_one_line_and_status_2(tmp_path: Path) -> None:
    line = command(tmp_path, "none")
    (tmp_path / "sweep.toml").write_text("[experiments.a]\nparticipant = 3")
    done = forked.run(*line)
    assert done.returncode == 2
    assert "experiments.a.participant is not a setting of a group run" in done.stderr
    assert "Traceback" not in done.stderr
