"""The answers of a sweep as a page: Markdown with SVG beside it, the same bytes for the same
records."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ..plots import Line, Panel, draw
from .curves import Conditions, best, combinations, curve, figure, select, values_of
from .plan import Plan
from .questions import BestOf, Plot, Question, default_question
from .results import digest
from .runs import Record, Value

_FIGURE: Final = re.compile(r"\{(\w+) \|([^|{}]*)(?:\|([^{}]*))?\}")
_NO_FIGURE: Final = "none"


def render(
    plan: Plan, records: Mapping[str, Record], *, command: str, plots: str
) -> dict[str, bytes]:
    """The files of a page by name: `page.md`, and pictures, to which it refers in `plots`.

    Raises:
        ValueError: a text asks for figures that there are not.
        PlotsUnavailable: matplotlib is not installed.
    """
    named = {name for question in plan.questions for name in question.experiments}
    questions = [
        *plan.questions,
        *(
            default_question(name, experiment)
            for name, experiment in plan.experiments.items()
            if name not in named
        ),
    ]
    files: dict[str, bytes] = {}
    sections = [plan.introduction] if plan.introduction else []
    for question in questions:
        own = _records_of(plan, records, question)
        section = [f"## {question.title}"]
        section += [part for part in (question.text,) if part]
        if question.plots:
            rows = [_row(own, plot) for plot in question.plots]
            files[f"{question.name}.svg"] = draw(rows)
            section.append(f"![{question.title}]({plots}/{question.name}.svg)")
        if question.answer:
            section.append(f"**{fill_in(question.answer, own)}**")
        section += [_table_of_best(own, one) for one in question.best]
        sections.append("\n\n".join(section))
    sections.append(
        f"## How to get these figures\n\n```console\n$ {command}\n```\n\n"
        f"{len(records)} runs, digest `{digest(records)}`."
    )
    files["page.md"] = ("\n\n".join(sections) + "\n").encode()
    return files


def fill_in(text: str, records: Sequence[Record]) -> str:
    """Put measured means where a text has `{measure | setting=value, … | format}`.

    The format is one of Python's for floats, `s` for milliseconds told as seconds, or `kB` for
    bytes told as kilobytes; `.3g` where there is none.

    Raises:
        ValueError: no record has these values and this figure.
    """

    def filled(found: re.Match[str]) -> str:
        measure, conditions, form = found[1], found[2], (found[3] or ".3g").strip()
        where = dict(_condition(one) for one in conditions.split(",") if one.strip())
        chosen = [r for r in records if all(_is(r.get(n), v) for n, v in where.items())]
        measured = figure(chosen, measure)
        if measured is None:
            raise ValueError(f"{found[0]}: none of {len(chosen)} records has this figure")
        if form in ("s", "kB"):
            return f"{measured.mean / 1000:.3g} {form}"
        return format(measured.mean, form)

    return _FIGURE.sub(filled, text)


def _condition(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def _is(value: Value, text: str) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return value == float(text)
        except ValueError:
            return False
    return str(value) == text


def _records_of(plan: Plan, records: Mapping[str, Record], question: Question) -> list[Record]:
    runs = [run for name in question.experiments for run in plan.experiments[name].runs]
    return [records[key] for key in sorted({run.id for run in runs})]


# -- plots -----------------------------------------------------------------------------------------


def _row(records: Sequence[Record], plot: Plot) -> list[Panel]:
    chosen = select(records, plot.where)
    labels = values_of(chosen, plot.lines) if plot.lines else [None]
    panels = []
    for given in combinations(chosen, [plot.panels] if plot.panels else []):
        inside = select(chosen, given)
        lines = [_line(inside, plot, number, label) for number, label in enumerate(labels)]
        panels.append(
            Panel(
                _told(given or plot.where),
                [line for line in lines if line.points or line.absent],
                words(plot.x),
                words(plot.y),
                plot.x_scale,
                plot.y_scale,
            )
        )
    return panels


def _line(records: Sequence[Record], plot: Plot, number: int, label: Value) -> Line:
    points = curve(select(records, {plot.lines: label} if plot.lines else {}), plot.x, plot.y)
    return Line(
        f"{words(plot.lines)} {_value(label)}" if plot.lines else words(plot.y),
        [(x, y.mean) for x, y in points if y is not None],
        number,
        spread=[(x, y.low, y.high) for x, y in points if y is not None],
        absent=[x for x, y in points if y is None],
    )


# -- words -----------------------------------------------------------------------------------------


def _table_of_best(records: Sequence[Record], asked: BestOf) -> str:
    answers = best(
        select(records, asked.where),
        of=asked.of,
        target=asked.target,
        least=asked.least,
        each=asked.each,
    )
    head = [*map(words, asked.each), *(f"best {words(name)}" for name in asked.of)]
    rows = [[*head, words(asked.least)], ["---"] * (len(head) + 1)]
    for answer in answers:
        chosen = [_NO_FIGURE] * len(asked.of)
        if answer.choice is not None:
            chosen = [_value(answer.choice[name]) for name in asked.of]
        cost = _NO_FIGURE if answer.cost is None else f"{answer.cost:.4g}"
        rows.append([*(_value(answer.given[name]) for name in asked.each), *chosen, cost])
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    beside = f", {_told(asked.where)}" if asked.where else ""
    return f"{words(str(asked.target))} at the least {words(asked.least)}{beside}:\n\n{table}"


def words(name: str) -> str:
    """The name of a setting or a measure as people read it."""
    return name.replace("_", " ")


def _told(conditions: Conditions) -> str:
    return ", ".join(f"{words(name)} {_value(value)}" for name, value in conditions.items())


def _value(value: Value) -> str:
    return f"{value:,g}" if isinstance(value, (int, float)) else str(value)
