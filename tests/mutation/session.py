"""A session of pytest that runs the tests once for each defect, each time in a fork of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import pytest

from .operators import Mutant
from .target import Target

KILLED: Final = 0
SURVIVED: Final = 1
ENDLESS: Final = 2
JOBS: Final = os.cpu_count() or 1
"""So many processes run tests at a time."""
ROOM: Final = 20
"""So many times the steps of a test without a defect are allowed with one."""
MIN_STEPS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a defect."""

    target: Target
    mutant: Mutant
    killed: bool
    reached_by: int
    """Tests that enter the function."""

    def __str__(self) -> str:
        mutant = self.mutant
        what = "killed" if self.killed else f"survived {self.reached_by} tests"
        return f"{self.target.path}:{mutant.line} {mutant.function}: {mutant.change}: {what}"


class Session:
    """A plugin of pytest: it takes the place of the loop over the tests."""

    def __init__(self, planted: Sequence[tuple[Target, Mutant]]) -> None:
        self.verdicts: list[Verdict] = []
        self._planted = planted
        self._targets = list(dict.fromkeys(target for target, _ in planted))

    def pytest_configure(self) -> None:
        """Arbitrary inputs are the same for each defect, are not shrunk and leave no file."""
        from hypothesis import Phase, settings  # pytest wants to load this plugin of its own first

        profile = settings.get_profile("any machine")
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutation", profile, database=None, derandomize=True, phases=phases
        )
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests without a defect, and then with each: one on each core."""
        reached = _reached_in_forks(self._targets, session.items)
        verdicts: dict[int, Verdict] = {}
        running: dict[int, tuple[int, int]] = {}

        def judge(place: int, reached_by: int, *, killed: bool) -> None:
            verdicts[place] = Verdict(*self._planted[place], killed, reached_by)
            print(verdicts[place], flush=True)

        def judge_next() -> None:
            child, status = os.wait()
            killed = os.waitstatus_to_exitcode(status) != SURVIVED
            judge(*running.pop(child), killed=killed)

        for place, (target, mutant) in enumerate(self._planted):
            tests = reached.get(target.key(mutant.function), {})
            items = [item for item in session.items if item.nodeid in tests]
            items.sort(key=lambda item: tests[item.nodeid])
            if not items:
                judge(place, 0, killed=False)
                continue
            if len(running) == JOBS:
                judge_next()
            if not (child := os.fork()):
                _run_with(target, mutant, items, tests)
            running[child] = place, len(items)
        while running:
            judge_next()
        self.verdicts += (verdicts[place] for place in sorted(verdicts))
        return True


def _reached_in_forks(
    targets: Sequence[Target], items: Sequence[pytest.Item]
) -> dict[str, dict[str, int]]:
    """The tests that reach each function, with the steps that they take in all targets."""
    reached: dict[str, dict[str, int]] = {}
    for fork in [_reached_in_fork(targets, items[first::JOBS]) for first in range(JOBS)]:
        for key, steps in fork().items():
            reached.setdefault(key, {}).update(steps)
    return reached


def _reached_in_fork(
    targets: Sequence[Target], items: Sequence[pytest.Item]
) -> Callable[[], dict[str, dict[str, int]]]:
    """The same of one process; call what is returned to wait for it."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reading)
        _quietly(items)
        with os.fdopen(writing, "w") as pipe:
            json.dump(_reached(targets, items), pipe)
        os._exit(0)
    os.close(writing)

    def wait() -> dict[str, dict[str, int]]:
        with os.fdopen(reading) as pipe:
            written = pipe.read()
        os.waitpid(child, 0)
        reached: dict[str, dict[str, int]] | None = json.loads(written)
        if reached is None:
            raise pytest.UsageError("the tests fail without a defect")
        return reached

    return wait


def _reached(
    targets: Sequence[Target], items: Sequence[pytest.Item]
) -> dict[str, dict[str, int]] | None:
    entered: dict[str, int] = {}

    def step(key: str) -> None:
        entered[key] = entered.get(key, 0) + 1

    for target in targets:
        target.count(step)
    reached: dict[str, dict[str, int]] = {}
    for item in items:
        entered.clear()
        if not _passes(item):
            return None
        steps = sum(entered.values())
        for key in entered:
            reached.setdefault(key, {})[item.nodeid] = steps
    return reached


def _run_with(
    target: Target, mutant: Mutant, items: Sequence[pytest.Item], steps: Mapping[str, int]
) -> NoReturn:
    left = 0

    def step(key: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(ENDLESS)

    _quietly(items)
    target.count(step)
    target.plant(mutant)
    for item in items:
        left = max(MIN_STEPS, ROOM * steps[item.nodeid])
        if not _passes(item):
            os._exit(KILLED)
    os._exit(SURVIVED)


def _passes(item: pytest.Item) -> bool:
    """Whether a test passes, with everything that it needs made and ended for it alone."""
    reports: list[pytest.TestReport] = []

    class Reports:
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            reports.append(report)

    plugin = Reports()
    item.config.pluginmanager.register(plugin)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        item.config.pluginmanager.unregister(plugin)
    return not any(report.failed for report in reports)


def _quietly(items: Sequence[pytest.Item]) -> None:
    for item in items[:1]:
        item.config.pluginmanager.unregister(name="terminalreporter")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
