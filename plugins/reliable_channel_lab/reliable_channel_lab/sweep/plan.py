"""Sweep file, with experiments, which consist of runs, and questions to the results.

In an experiment, every setting has a value or a list of values. An experiment has a run for each
combination of values and each seed. An error of the sweep file names the key that is wrong.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

from .kinds import KINDS
from .questions import Question, read_question
from .runs import Run

MAX_RUNS: Final = 1_000_000


@dataclass(frozen=True)
class Experiment:
    """Set of runs that differ in the settings with several values, and in the seed."""

    name: str
    kind: type[Run]
    grid: Mapping[str, Sequence[Any]]
    """Values of each setting, by the name of the setting."""
    seeds: range

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Runs of the experiment, for all combinations and seeds.

        Raises:
            ValueError: a setting is wrong; the text begins with its name.
        """
        combinations = product(*self.grid.values())
        return tuple(
            self.kind.of({**dict(zip(self.grid, values, strict=True)), "seed": seed})
            for values in combinations
            for seed in self.seeds
        )


@dataclass(frozen=True)
class Plan:
    experiments: Mapping[str, Experiment]
    questions: Sequence[Question] = ()
    introduction: str = field(default="", repr=False)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs of the whole sweep, each once, in the order of the file."""
        every = (run for experiment in self.experiments.values() for run in experiment.runs)
        return tuple({run.id: run for run in every}.values())


def read_plan(path: Path) -> Plan:
    """Return the plan in a sweep file.

    Raises:
        ValueError: it is no sweep file. The text names the place and the allowed values.
        OSError: it cannot be read.
    """
    try:
        return _plan(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: the file is not TOML: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _plan(document: Mapping[str, Any]) -> Plan:
    _only(document, "", ("introduction", "experiments", "questions"))
    tables = _table(document, "", "experiments")
    if not tables:
        raise ValueError(
            "the table `experiments` is missing; a sweep needs at least one experiment"
        )
    experiments = {name: _experiment(name, _table(tables, "experiments.", name)) for name in tables}
    questions = _table(document, "", "questions") if "questions" in document else {}
    return Plan(
        experiments,
        [
            read_question(name, _table(questions, "questions.", name), experiments)
            for name in questions
        ],
        _text(document, "introduction"),
    )


def _experiment(name: str, table: Mapping[str, Any]) -> Experiment:
    where = f"experiments.{name}"
    given = dict(table)
    kind = given.pop("run", "group")
    if kind not in KINDS:
        raise ValueError(f"`{where}.run` must be {' or '.join(map(repr, KINDS))} (got {kind!r})")
    count, first = given.pop("seeds", 1), given.pop("first_seed", 1)
    for key, value in (("seeds", count), ("first_seed", first)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"`{where}.{key}` must be a whole number of at least 1 (got {value!r})"
            )
    if "seed" in given:
        raise ValueError(
            f"{where}.seed must not be given: set the number of seeds with `seeds`, from "
            "`first_seed` on"
        )
    grid = {key: list(_values(f"{where}.{key}", value)) for key, value in given.items()}
    size = count
    for values in grid.values():
        size *= len(values)
    if size > MAX_RUNS:
        raise ValueError(f"{where} has {size} runs; at most {MAX_RUNS} are allowed")
    experiment = Experiment(name, KINDS[kind], grid, range(first, first + count))
    try:
        _ = experiment.runs  # so that a mistake is named before anything runs
    except ValueError as error:
        raise ValueError(f"{where}.{error}") from None
    return experiment


def _values(where: str, value: object) -> Iterable[object]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError(f"{where} is an empty list; name at least one value")
    for one in values:
        if isinstance(one, (dict, list)):
            raise ValueError(f"`{where}` must be numbers, words, true or false (got {one!r})")
    if len({repr(one) for one in values}) < len(values):
        raise ValueError(f"{where} lists a value twice")
    return values


def _only(table: Mapping[str, Any], where: str, allowed: Iterable[str]) -> None:
    for key in table:
        if key not in allowed:
            raise ValueError(f"{where}{key} is unknown; known keys are {', '.join(allowed)}")


def _table(parent: Mapping[str, Any], where: str, key: str) -> Mapping[str, Any]:
    if not isinstance(value := parent.get(key, {}), dict):
        raise ValueError(f"{where}{key} is {value!r}; it must be a table")
    return value


def _text(table: Mapping[str, Any], key: str, where: str = "") -> str:
    if not isinstance(value := table.get(key, ""), str):
        raise ValueError(f"{where}{key} is {value!r}; it must be a text")
    return value.strip()
