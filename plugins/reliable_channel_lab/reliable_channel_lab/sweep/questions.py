"""Questions to the records of a sweep, answered by plots or by the best values for a target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .curves import Conditions, Target
from .runs import Run


@dataclass(frozen=True, slots=True)
class Plot:
    """Row of diagrams, one for each value of `panels`, with a line for each value of `lines`."""

    x: str
    y: str
    lines: str = ""
    panels: str = ""
    where: Conditions = field(default_factory=dict)
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"


@dataclass(frozen=True, slots=True)
class BestOf:
    """Question for the values of the settings `of` that meet a target at the lowest `least`."""

    of: tuple[str, ...]
    target: Target
    least: str
    each: tuple[str, ...] = ()
    where: Conditions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """Section of the page that answers a question."""

    name: str
    experiments: tuple[str, ...]
    title: str
    text: str = ""
    answer: str = ""
    """Answer in a sentence, perhaps with means in the form `{measure | setting=value, … |
    format}`."""
    remark: str = ""
    """Further text of the section, perhaps with means in the same form as `answer`."""
    plots: tuple[Plot, ...] = ()
    best: tuple[BestOf, ...] = ()


class Asked(Protocol):
    """Interface of an experiment for its questions."""

    @property
    def kind(self) -> type[Run]: ...

    @property
    def grid(self) -> Mapping[str, Sequence[Any]]: ...


def read_question(
    name: str, table: Mapping[str, Any], experiments: Mapping[str, Asked]
) -> Question:
    """Return a question from its table in a sweep file.

    Raises:
        ValueError: a key is wrong; the text names it.
    """
    where = f"questions.{name}"
    _only(table, where, Question.__slots__[1:])
    asked = _words(table, where, "experiments")
    for one in asked:
        if one not in experiments:
            raise ValueError(
                f"{where}.experiments names {one!r}; known experiments are {', '.join(experiments)}"
            )
    if not asked:
        raise ValueError(f"{where}.experiments is missing; name at least one experiment")
    kinds = [experiments[one].kind for one in asked]
    reader = _Reader(
        where,
        words={
            setting
            for one in asked
            for setting, values in experiments[one].grid.items()
            if not _are_numbers(values)
        },
        settings={setting for kind in kinds for setting in (*kind.setting_names(), "run")},
        measures={measure for kind in kinds for measure in kind.measures},
    )
    return Question(
        name,
        asked,
        title=_text(table, where, "title") or name,
        text=_text(table, where, "text"),
        answer=_text(table, where, "answer"),
        remark=_text(table, where, "remark"),
        plots=tuple(map(reader.plot, _tables(table, where, "plots"))),
        best=tuple(map(reader.best, _tables(table, where, "best"))),
    )


def default_question(name: str, experiment: Asked) -> Question:
    """Return the default question, a plot of each measure over the first setting that varies."""
    varied = [name for name, values in experiment.grid.items() if len(values) > 1]
    x = next((name for name in varied if _are_numbers(experiment.grid[name])), None)
    if x is None:
        return Question(name, (name,), name)
    lines, panels = (*(other for other in varied if other != x), "", "")[:2]
    plots = tuple(Plot(x, y, lines, panels) for y in experiment.kind.measures)
    return Question(name, (name,), name, plots=plots)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads plots and answers of a question that knows these names."""

    where: str
    words: set[str]
    """The settings whose values are no numbers."""
    settings: set[str]
    measures: set[str]

    def plot(self, table: Mapping[str, Any]) -> Plot:
        where = f"{self.where}.plots"
        _only(table, where, Plot.__slots__)
        given = dict(table)
        for key in ("x", "lines", "panels"):
            if key in given or key == "x":
                self._known(f"{where}.{key}", given.get(key), self.settings)
        if given["x"] in self.words:
            raise ValueError(f"{where}.x is {given['x']!r}, whose values are not numbers")
        self._known(f"{where}.y", given.get("y"), self.measures)
        for key in ("x_scale", "y_scale"):
            if given.get(key, "log") not in ("linear", "log"):
                raise ValueError(f"`{where}.{key}` must be 'linear' or 'log' (got {given[key]!r})")
        return Plot(**{**given, "where": self._conditions(where, table)})

    def best(self, table: Mapping[str, Any]) -> BestOf:
        where = f"{self.where}.best"
        _only(table, where, BestOf.__slots__)
        of, each = _words(table, where, "of"), _words(table, where, "each")
        for key, names in (("of", of), ("each", each)):
            for name in names:
                self._known(f"{where}.{key}", name, self.settings)
        try:
            target = Target.parse(_text(table, where, "target"))
        except ValueError as error:
            raise ValueError(f"{where}.target: {error}") from None
        self._known(f"{where}.target", target.measure, self.measures)
        self._known(f"{where}.least", table.get("least"), self.measures)
        return BestOf(of, target, table["least"], each, self._conditions(where, table))

    def _conditions(self, where: str, table: Mapping[str, Any]) -> Conditions:
        conditions = table.get("where", {})
        if not isinstance(conditions, dict):
            raise ValueError(f"{where}.where is {conditions!r}; it must be a table")
        for name in conditions:
            self._known(f"{where}.where", name, self.settings)
        return conditions

    def _known(self, where: str, name: object, allowed: set[str]) -> None:
        if name not in allowed:
            raise ValueError(
                f"`{where}` must be one of {', '.join(sorted(allowed))} (got {name!r})"
            )


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values)


def _only(table: Mapping[str, Any], where: str, allowed: Sequence[str]) -> None:
    for key in table:
        if key not in allowed:
            raise ValueError(f"{where}.{key} is unknown; known keys are {', '.join(allowed)}")


def _text(table: Mapping[str, Any], where: str, key: str) -> str:
    if not isinstance(value := table.get(key, ""), str):
        raise ValueError(f"{where}.{key} is {value!r}; it must be a text")
    return value.strip()


def _words(table: Mapping[str, Any], where: str, key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{where}.{key} is {value!r}; it must be a list of names")
    return tuple(value)


def _tables(table: Mapping[str, Any], where: str, key: str) -> list[Mapping[str, Any]]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{where}.{key} is {value!r}; write [[{where}.{key}]]")
    return value
