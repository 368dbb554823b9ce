"""`reliable-channel simulate` as a person or a script meets it."""

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from reliable_channel_lab.sim import Result, Scenario, draw_scenario, run_all, shrink
from reliable_channel_lab.sim.scenario import Parameters, Write
from tests.cli.forked import Process
from tests.cli.in_process import run

IMPATIENT = replace(
    draw_scenario(22), settle_within_ms=1, parameters=Parameters(retry_interval_ms=5_000)
)
"""Break a promise: no participant is that quick."""


def simulate(*arguments: str) -> tuple[int, list[str]]:
    done = run("simulate", *arguments)
    return done.returncode, done.stdout.splitlines()


def test_what_passes_ends_with_status_0() -> None:
    status, lines = simulate("--seeds", "4", "--first-seed", "7", "--jobs", "2")
    assert (status, lines[-1]) == (0, "4 passed, 0 failed")


def test_what_fails_says_how_to_repeat_it_in_small_and_ends_with_status_1() -> None:
    status, lines = simulate("--scenario", IMPATIENT.to_json())
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")
    assert lines[0].startswith("seed 22: in the end all logs are equal")
    assert "--scenario" in lines[1]
    small = Scenario.from_json(lines[3].split("'")[1])
    assert len(small.writes) + len(small.faults) < 4
    assert simulate("--scenario", small.to_json(), "--no-shrink")[0] == 1


def test_a_seed_is_a_json_line() -> None:
    status, lines = simulate("--seeds", "2", "--first-seed", "7", "--json")
    found = [json.loads(line) for line in lines]
    assert status == 0 and sorted(each["seed"] for each in found) == [7, 8]
    assert all(each["kept"] and each["violation"] is None for each in found)
    status, lines = simulate("--scenario", IMPATIENT.to_json(), "--json")
    (broken,) = map(json.loads, lines)
    assert status == 1 and "in the end all logs are equal" in broken["violation"]
    assert simulate("--seeds", "1", "--trace", "--json")[0] == 2


def test_one_seed_can_be_read_along() -> None:
    _, lines = simulate("--seeds", "1", "--first-seed", "2", "--trace")
    assert any("publishes content" in line for line in lines)
    assert any("delivers" in line for line in lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_without_end_it_runs_until_it_is_told_to_stop(number: int, jobs: str) -> None:
    flags = ("--forever", "--jobs", jobs, "--digests")
    process = Process("simulate", *flags, stdout=PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("seed ")
        process.send_signal(number)
        with process.stdout as rest:
            told = rest.read()
        process.wait()
        assert told.splitlines()[-1].endswith(" passed, 0 failed")
        assert process.returncode == 0
    finally:
        with suppress(ProcessLookupError):  # whatever the test found, nothing of it goes on
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_in_a_finaliser_ends_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def interrupted(*arguments: Any, **settings: Any) -> Iterator[Result]:
        for result in run_all(*arguments, **settings):
            Finalised()
            yield result

    monkeypatch.setattr("reliable_channel_lab.commands.simulate.run_all", interrupted)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        status, lines = simulate("--forever", "--jobs", "1")
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    assert (status, lines[-1]) == (0, "1 passed, 0 failed")


def test_shrinking_keeps_what_is_needed_and_nothing_else() -> None:
    scenario = replace(draw_scenario(3), writes=tuple(Write(n, n % 3) for n in range(50)))

    def breaks(smaller: Scenario) -> str | None:
        needed: Sequence[int] = [write.at_ms for write in smaller.writes]
        return "needs 7 and 33" if {7, 33} <= set(needed) else None

    small = shrink(scenario, "needs 7 and 33", breaks=breaks)
    assert {write.at_ms for write in small.writes} == {7, 33}
    assert small.participants == 2
    assert small.faults == ()
    assert small.store is None


def test_journals_are_written_with_the_faults_of_their_group(tmp_path: Path) -> None:
    status, lines = simulate("--journals", str(tmp_path), "--first-seed", "7")
    assert (status, lines[-1]) == (0, "1 passed, 0 failed")
    directory = tmp_path / "seed-7"
    scenario = Scenario.from_json((directory / "scenario.json").read_text())
    assert scenario == draw_scenario(7)
    names = {path.stem for path in directory.glob("*.jsonl")}
    assert names == {f"p{number}" for number in range(scenario.participants)}
    assert simulate("--journals", str(tmp_path), "--first-seed", "7")[0] != 0
