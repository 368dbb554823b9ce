"""Plots of a comparison over the share of lost messages and over the size of the group."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ..plots import Curve, Dashes, Panel, draw
from ..sim.comparison import CONTROL, VARIANTS, ComparedCell
from ..sim.figures import over_seeds
from ..sim.floor import Floor, floor_of
from ..sim.measures import Measures

_COLOURS: Final = {
    "SDS": 0,
    "SDS-R": 1,
    "SDS-R tuned": 4,
    "MVDS": 2,
    "MVDS tuned": 5,
    "SVS": 3,
    "auto": 6,
    "floor": 7,
}
_MEASURES: Final[tuple[tuple[str, Callable[[Measures], float | None]], ...]] = (
    ("latency, 95 % (s)", lambda m: None if m.latency_p95_ms is None else m.latency_p95_ms / 1000),
    ("kB sent for a message", lambda m: m.bytes_per_message / 1000),
    ("Store requests a message", lambda m: m.store_requests / max(1, m.messages)),
)
_FLOORS: Final[Mapping[str, Callable[[Floor], float]]] = {
    "latency, 95 % (s)": lambda floor: floor.latency_p95_ms / 1000,
    "kB sent for a message": lambda floor: floor.bytes_per_message / 1000,
}
"""Of the measures that have one (`sim/floor.py`)."""
_SCENARIOS: Final = ("1:1", "group", "community")


def plots(figures: Sequence[ComparedCell]) -> dict[str, bytes]:
    """Return the plots as SVG images by file name.

    Raises:
        PlotsUnavailable: matplotlib is not installed.
    """
    drawn = {}
    columns = [_over_loss(figures, scenario) for scenario in _SCENARIOS]
    if rows := _rows(columns):
        drawn["loss.svg"] = draw(rows, title="More and more copies get lost")
    columns = [_over_size(figures, scenario) for scenario in _SCENARIOS]
    if rows := _rows(columns):
        drawn["size.svg"] = draw(rows, title="The group grows")
    return drawn


def _rows(columns: list[list[Panel]]) -> list[list[Panel]]:
    """One row for each measure, from one column for each scenario."""
    return [list(row) for row in zip(*filter(None, columns), strict=True)]


def _over_loss(figures: Sequence[ComparedCell], scenario: str) -> list[Panel]:
    mine = [figure for figure in figures if figure.cell.scenario == scenario]
    losses = Counter(size for size, _ in {(f.cell.participants, f.cell.loss) for f in mine})
    if not losses:
        return []
    size = max(losses, key=lambda size: (losses[size], -size))
    shown = [figure for figure in mine if figure.cell.participants == size]
    title = f"{scenario}, {size} participants" if size > 2 else scenario
    return _column(shown, title, "% lost", lambda figure: 100 * figure.cell.loss)


def _over_size(figures: Sequence[ComparedCell], scenario: str) -> list[Panel]:
    mine = [figure for figure in figures if figure.cell.scenario == scenario]
    sizes = Counter(loss for _, loss in {(f.cell.participants, f.cell.loss) for f in mine})
    if not sizes or sizes[loss := max(sizes, key=lambda lost: (sizes[lost], -lost))] < 2:
        return []
    shown = [figure for figure in mine if figure.cell.loss == loss]
    title = f"{scenario}, {100 * loss:g} % lost"
    return _column(shown, title, "participants", lambda figure: figure.cell.participants)


def _column(
    figures: list[ComparedCell], title: str, x_label: str, x_of: Callable[[ComparedCell], float]
) -> list[Panel]:
    return [
        Panel(
            title,
            [*_lines(figures, x_of, value), *_floor(figures, x_of, y_label)],
            x_label,
            y_label,
            x_scale="log" if x_label == "participants" else "linear",
            y_scale="log",
            note=_note(figures),
        )
        for y_label, value in _MEASURES
    ]


def _lines(
    figures: list[ComparedCell],
    x_of: Callable[[ComparedCell], float],
    value: Callable[[Measures], float | None],
) -> Iterable[Curve]:
    for name, variant in VARIANTS.items():
        mine = [figure for figure in figures if figure.cell.variant == name]
        if name == CONTROL or not mine:
            continue
        xs = sorted({x_of(figure) for figure in mine})
        seen = {x: over_seeds([f for f in mine if x_of(f) == x], value) for x in xs}
        found = [(x, known) for x, known in seen.items() if known is not None]
        dashes: Dashes = "dashed" if variant.store else "solid"
        yield Curve(
            name,
            [(x, mean) for x, (mean, _, _) in found],
            _COLOURS[name.removesuffix(", Store")],
            dashes,
            [(x, least, most) for x, (_, least, most) in found],
            [x for x, known in seen.items() if known is None],
        )


def _floor(
    figures: list[ComparedCell], x_of: Callable[[ComparedCell], float], measure: str
) -> Iterable[Curve]:
    if (floor := _FLOORS.get(measure)) is not None:
        points = {x_of(figure): floor(floor_of(figure.cell)) for figure in figures}
        yield Curve("floor", sorted(points.items()), _COLOURS["floor"], "dotted")


def _note(figures: list[ComparedCell]) -> str:
    return "x above: not run" if any(figure.not_run for figure in figures) else ""
