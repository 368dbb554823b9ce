"""Page with a sweep's answers, in Markdown with SVG images, equal in every byte for equal
records."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..plots import Curve, Format, Panel, draw
from .curves import Conditions, best, combinations, curve, figure, select, values_of
from .plan import Plan
from .questions import BestOf, Plot, Question, default_question
from .results import digest
from .runs import Record, Value

_FIGURE: Final = re.compile(r"\{(\w+) \|([^|{}]*)(?:\|([^{}]*))?\}")
_NO_FIGURE: Final = "none"


def page_text(plan: Plan, records: Mapping[str, Record], *, command: str, plots: str) -> str:
    """Return the text of the page, with images in the directory `plots`.

    Raises:
        ValueError: a text asks for figures that there are not.
    """
    sections = [plan.introduction] if plan.introduction else []
    for question in _questions(plan):
        own = _records_of(plan, records, question)
        section = [f"## {question.title}", question.text]
        if question.plots:
            section.append(f"![{question.title}]({plots}/{question.name}.svg)")
        if question.answer:
            section.append(f"**{fill_in(question.answer, own)}**")
        section.append(fill_in(question.remark, own))
        section += [_table_of_best(own, one) for one in question.best]
        sections.append("\n\n".join(part for part in section if part))
    sections.append(
        f"## How to get these figures\n\n```console\n$ {command}\n```\n\n"
        f"{len(records)} runs, digest `{digest(records)}`."
    )
    return "\n\n".join(sections) + "\n"


def pictures(
    plan: Plan, records: Mapping[str, Record], *, to: Format = "svg"
) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the content of each image on the page.

    Raises:
        PlotsUnavailable: matplotlib is not installed.
    """
    for question in _questions(plan):
        if question.plots:
            own = _records_of(plan, records, question)
            rows = [_row(own, plot) for plot in question.plots]
            yield f"{question.name}.{to}", draw(rows, to=to)


def _questions(plan: Plan) -> list[Question]:
    named = {name for question in plan.questions for name in question.experiments}
    others = (each for name, each in plan.experiments.items() if name not in named)
    return [*plan.questions, *(default_question(each.name, each) for each in others)]


def fill_in(text: str, records: Sequence[Record]) -> str:
    """Replace `{measure | setting=value, … | format}` in a text by the mean of the measure.

    The format is one of Python's for floats, `s` for seconds, or `bytes` for bytes, kB or MB. The
    default format is `.3g`.

    Raises:
        ValueError: no record has these values and this figure.
    """

    def filled(found: re.Match[str]) -> str:
        measure, conditions, form = found[1], found[2], (found[3] or ".3g").strip()
        where = dict(_condition(one) for one in conditions.split(",") if one.strip())
        chosen = [r for r in records if all(_is(r.get(n), v) for n, v in where.items())]
        measured = figure(chosen, measure)
        if measured is None:
            raise ValueError(
                f"{found[0]}: none of {len(chosen)} records has a value for this expression"
            )
        if form == "s":
            return f"{measured.mean / 1000:.3g} s"
        if form == "bytes":
            return _bytes(measured.mean)
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
    (x_label, _), (y_label, _) = _axis(plot.x), _axis(plot.y)
    panels = []
    for given in combinations(chosen, [plot.panels] if plot.panels else []):
        inside = select(chosen, given)
        lines = [_line(inside, plot, number, label) for number, label in enumerate(labels)]
        panels.append(
            Panel(
                _told(given),
                [line for line in lines if line.points or line.absent],
                x_label,
                y_label,
                plot.x_scale,
                plot.y_scale,
                note=_told(plot.where),
            )
        )
    return panels


def _line(records: Sequence[Record], plot: Plot, number: int, label: Value) -> Curve:
    (_, x_unit), (y_label, y_unit) = _axis(plot.x), _axis(plot.y)
    chosen = select(records, {plot.lines: label}) if plot.lines else records
    points = [(x / x_unit, y) for x, y in curve(chosen, plot.x, plot.y)]
    return Curve(
        f"{words(plot.lines)} {_value(label)}" if plot.lines else y_label,
        [(x, y.mean / y_unit) for x, y in points if y is not None],
        number,
        spread=[(x, y.low / y_unit, y.high / y_unit) for x, y in points if y is not None],
        absent=[x for x, y in points if y is None],
    )


def _axis(name: str) -> tuple[str, int]:
    """What stands at an axis, and how much of the figure makes one of its units."""
    if name.endswith("_ms"):
        return words(name.removesuffix("_ms")) + " (s)", 1000
    if "bytes" in name:
        return words(name.replace("bytes", "kB")), 1000
    return words(name), 1


# -- words -----------------------------------------------------------------------------------------


def _table_of_best(records: Sequence[Record], asked: BestOf) -> str:
    answers = best(
        select(records, asked.where),
        of=asked.of,
        target=asked.target,
        least=asked.least,
        each=asked.each,
    )
    cost_label, cost_unit = _axis(asked.least)
    beside = f" ({_told(asked.where)})" if asked.where else ""
    best_of = [f"cheapest {_code(name)} with `{asked.target}`{beside}" for name in asked.of]
    head = [*map(_code, asked.each), *best_of, cost_label]
    rows = [head, ["---"] * len(head)]
    for answer in answers:
        chosen, cost = [_NO_FIGURE] * len(asked.of), _NO_FIGURE
        if answer.choice is not None and answer.cost is not None:
            chosen = [_value(answer.choice[name]) for name in asked.of]
            cost = f"{answer.cost / cost_unit:,.3g}"
        rows.append([*(_value(answer.given[name]) for name in asked.each), *chosen, cost])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _bytes(count: float) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.3g} bytes"


def _code(name: str) -> str:
    return f"`{name}`"


def words(name: str) -> str:
    """Return a readable name of a setting or a measure."""
    return name.replace("_", " ")


def _told(conditions: Conditions) -> str:
    return ", ".join(f"{words(name)} {_value(value)}" for name, value in conditions.items())


def _value(value: Value) -> str:
    return f"{value:,g}" if isinstance(value, (int, float)) else str(value)
