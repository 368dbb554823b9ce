"""Write the tables of docs/choosing.md, and its plots, from docs/choosing/results.csv, and the
table of presets of README and index (`make docs`)."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from reliable_channel_lab.commands.compare import COLUMNS, texts
from reliable_channel_lab.commands.comparison_plots import plots
from reliable_channel_lab.sim.comparison import PRESET_VARIANTS, VARIANTS, ComparedCell
from reliable_channel_lab.sim.figures import from_csv

PAGE = Path(__file__).with_name("choosing.md")
DIRECTORY = Path(__file__).with_name("choosing")
PRESETS = DIRECTORY / "presets"
_TABLE = re.compile(r"(<!-- (presets )?(\S+) (\d+) ([\d.]+) -->\n)(?:\|[^\n]*\n)*")
"""Where a table stands: its scenario, participants, and share that is lost."""
SHORT_PAGES = (PAGE.with_name("index.md"), PAGE.parents[1] / "README.md")
_SHORT = re.compile(r"(<!-- four presets -->\n)(?:\|[^\n]*\n)*")
SHORT_POINT = ("group", 20, 0.2)
HEADS = (
    "messages delivered",
    "median latency",
    "95th percentile latency",
    "bytes broadcast per message",
    "Store queries per message",
    "Store bytes per message",
    "idle traffic",
)
"""Heads of the tables, one for each of `COLUMNS`."""
FOUR_PRESETS = {
    "documented": "any group; the only preset for js-waku and nim-sds peers",
    "auto": "channels in which all participants use this SDK: the best choice for most programs",
    "small-group": "up to 100 participants, fixed times",
    "large-group": "100 participants and more, fixed times: the fewest bytes when idle",
}


def page() -> str:
    """The page as it stands, with the tables that the results make."""
    figures, of_presets = results(), results(PRESETS)

    def table(found: re.Match[str]) -> str:
        marker, presets, scenario, participants, loss = found.groups()
        point = scenario, int(participants), float(loss)
        if presets:
            lines = _table(of_presets, PRESET_VARIANTS, point)
        else:
            lines = _table(figures, VARIANTS, point)
        return marker + "".join(f"{line}\n" for line in lines)

    return _TABLE.sub(table, PAGE.read_text())


def short_page(page: Path) -> str:
    """A page with the four presets as it stands, with the table that the results make."""

    def seconds(value_ms: float | None) -> str:
        return "" if value_ms is None else f"{value_ms / 1000:.1f} s"

    measured = {
        figure.cell.variant: figure.measures
        for figure in results(PRESETS)
        if (figure.cell.scenario, figure.cell.participants, figure.cell.loss) == SHORT_POINT
        and figure.measures is not None
    }
    lines = [
        (
            "| preset | suitable for | bytes per message | 95 % of deliveries within "
            "| 50 % of acknowledgements within |"
        ),
        "|---|---|--:|--:|--:|",
    ]
    for name, purpose in FOUR_PRESETS.items():
        cost = measured[f"{name}, Store"]
        lines.append(
            f"| **{name}** | {purpose} | {cost.bytes_per_message / 1000:.1f} kB "
            f"| {seconds(cost.latency_p95_ms)} | {seconds(cost.acknowledgement_p50_ms)} |"
        )
    return _SHORT.sub(
        lambda found: found[1] + "\n".join([*lines, ""]), page.read_text(encoding="utf-8")
    )


def results(directory: Path = DIRECTORY) -> list[ComparedCell]:
    """What the command wrote."""
    return list(from_csv((directory / "results.csv").read_text()))


def _table(
    figures: list[ComparedCell], variants: Iterable[str], point: tuple[str, int, float]
) -> Iterator[str]:
    scenario, participants, loss = point
    turns = " in turns" if scenario == "1:1" else ""
    kind = "preset" if variants is PRESET_VARIANTS else "protocol"
    yield (
        f"| {kind} ({participants:,} participants{turns}, {100 * loss:g} % loss) | "
        + " | ".join(HEADS)
        + " |"
    )
    yield "|---|" + "--:|" * len(COLUMNS)
    for variant in variants:
        mine = [
            figure
            for figure in figures
            if (figure.cell.scenario, figure.cell.participants, figure.cell.loss) == point
            and figure.cell.variant == variant
        ]
        if any(figure.not_run for figure in mine):
            continue  # the page names the groups that were not simulated
        protocol, _, store = variant.partition(", ")
        yield f"| {protocol}, {'with' if store else 'no'} Store | " + " | ".join(texts(mine)) + " |"


if __name__ == "__main__":
    PAGE.write_text(page())
    for short in SHORT_PAGES:
        short.write_text(short_page(short))
    for name, drawn in plots(results()).items():
        (DIRECTORY / name).write_bytes(drawn)
