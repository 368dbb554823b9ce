"""`reliable-channel simulate --compare`, which runs sync protocols side by side on the same
networks."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from reliable_channel.engine.sync_core import CoreContext, SyncCore
from reliable_channel.spi import Kind, err, make_sync_core, out, process_registry, warn

from ..plots import PlotsUnavailable
from ..sim.comparison import (
    ALL_VARIANTS,
    CONTROL,
    VARIANTS,
    Cell,
    ComparedCell,
    covering,
    full,
    presets,
    run_cell,
    self_tuning,
)
from ..sim.figures import over_seeds, to_csv, to_json_line
from ..sim.measures import Measures
from ..sim.running import spread
from ..sim.trial import Terms
from .comparison_plots import plots

QUICK_RECEIVES: Final = 100_000
FULL_RECEIVES: Final = 3_000_000
"""Number of received messages after which a run is stopped, some minutes on one core. A time limit
instead of a number of messages would make figures depend on the machine."""
FEW: Final = "few"
WHICH: Final = {FEW: covering, "full": full, "presets": presets, "auto": self_tuning}
"""Comparisons of protocols at few or many points, of the presets, or of `auto` alone."""
COLUMNS: Final[Sequence[tuple[str, Callable[[Measures], float | None], str]]] = (
    ("delivered", lambda m: 100 * m.delivery_probability, "{:.4g} %"),
    ("50 %", lambda m: _seconds(m.latency_p50_ms), "{:.2f} s"),
    ("95 %", lambda m: _seconds(m.latency_p95_ms), "{:.3g} s"),
    ("sent", lambda m: m.bytes_per_message / 1000, "{:,.1f} kB"),
    ("asked", lambda m: m.store_requests / max(1, m.messages), "{:,.2f}"),
    ("given", lambda m: m.store_bytes / 1000 / max(1, m.messages), "{:,.1f} kB"),
    ("idle", lambda m: m.idle_bytes_per_hour / 1e6, "{:.2f} MB/h"),
)
"""Column of a table, with its heading, its value and the value's format."""
EXPLAINED: Final = (
    "50 %, 95 %: latency of the deliveries. A message: sent is what all participants broadcast for "
    "it, asked how often Store was asked, given what Store gave. idle: broadcast in a quiet group."
)


def compare(
    *,
    seeds: range,
    which: str,
    participants: int | None,
    jobs: int,
    as_json: bool,
    out_dir: Path | None,
    stop: threading.Event,
    shown: Callable[[Iterable[ComparedCell], int], Iterator[ComparedCell]],
) -> bool:
    """Run the comparison of `WHICH` and print it. If all promises were kept, `compare` returns
    True."""
    began = time.monotonic()
    cells = list(WHICH[which](seeds))
    if participants is not None:
        sizes = sorted({cell.participants for cell in cells})
        if participants not in sizes:
            raise ValueError(
                f"`participants` is {participants}, but the comparison has runs only for {sizes}"
            )
        cells = [cell for cell in cells if cell.participants == participants]
    absent = dict(_absent())
    for sync, reason in absent.items():
        warn(f"{sync} is left out: {reason}")
    todo = [cell for cell in cells if _sync_of(cell) not in absent]
    terms = Terms(max_receives=QUICK_RECEIVES if which == FEW else FULL_RECEIVES)
    # The smallest first: whoever interrupts it has the most of it then.
    tasks = sorted(todo, key=lambda cell: cell.participants)
    done = spread(partial(_run, terms=terms), tasks, jobs=jobs, stopped=stop.is_set)
    found = {figure.cell: figure for figure in shown(done, len(tasks))}
    for cell in cells:
        found.setdefault(cell, ComparedCell(cell, None, absent.get(_sync_of(cell), "interrupted")))
    figures = [found[cell] for cell in cells]
    if as_json:
        for figure in figures:
            typer.echo(to_json_line(figure))
    else:
        for table in tables(figures):
            out.print(table, "")
        out.print(EXPLAINED)
    if out_dir is not None:
        _write(out_dir, figures)
    took_s = time.monotonic() - began
    told = f"{len(figures)} runs, seeds {seeds[0]} to {seeds[-1]}, in {took_s:.0f} s"
    err.print(told, highlight=False)
    return _told_of_broken(figures)


def _sync_of(cell: Cell) -> str:
    return ALL_VARIANTS[cell.variant].sync


def _run(cell: Cell, terms: Terms) -> ComparedCell:
    return run_cell(cell, _make, terms)


def _make(sync: str, context: CoreContext) -> SyncCore:
    return make_sync_core(process_registry(), sync, context)


def _absent() -> Iterator[tuple[str, str]]:
    """The protocols that no installed plugin brings, and how to get them."""
    known = {one.name for one in process_registry().registered(Kind.SYNC_CORE)}
    for sync in dict.fromkeys(variant.sync for variant in VARIANTS.values()):
        if sync not in known:
            yield sync, f"not installed (pip install reliable-channel-{sync})"


def tables(figures: Sequence[ComparedCell]) -> Iterator[Table]:
    """Yield a table for each group and network, with the means over the seeds."""
    for point in dict.fromkeys(map(_point, figures)):
        scenario, participants, loss = point
        title = f"{scenario}, {participants} participants, {100 * loss:g} % lost"
        table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
        table.add_column(no_wrap=True)
        for name, _, _ in COLUMNS:
            table.add_column(name, justify="right", no_wrap=True)
        for variant in ALL_VARIANTS:
            mine = [f for f in figures if f.cell.variant == variant and _point(f) == point]
            if mine:
                table.add_row(variant, *texts(mine))
        reasons = dict.fromkeys(f.not_run for f in figures if _point(f) == point and f.not_run)
        if reasons:
            table.caption, table.caption_justify = "not run: " + "; ".join(reasons), "left"
        yield table


def _point(figure: ComparedCell) -> tuple[str, int, float]:
    return figure.cell.scenario, figure.cell.participants, figure.cell.loss


def texts(figures: Sequence[ComparedCell]) -> list[str]:
    """Return the cells of a table for the runs of one variant."""
    if any(figure.not_run for figure in figures):
        return ["not run", *["-"] * (len(COLUMNS) - 1)]
    found = ((over_seeds(figures, value), written) for _, value, written in COLUMNS)
    return ["-" if known is None else written.format(known[0]) for known, written in found]


def _told_of_broken(figures: Iterable[ComparedCell]) -> bool:
    kept = True
    for figure in figures:
        measures, cell = figure.measures, figure.cell
        if measures is None or measures.is_kept or cell.variant == CONTROL:
            continue
        kept = False
        missed = measures.due - measures.delivered
        err.print(
            f"[bold red]broken:[/] {cell.variant}, {cell.scenario}, {cell.participants} "
            f"participants, {100 * cell.loss:g} % lost, seed {cell.seed}: {missed} of "
            f"{measures.due} deliveries not made, {measures.repeated} made twice, "
            f"{measures.different_logs} logs differ",
            highlight=False,
            soft_wrap=True,
        )
    return kept


def _write(directory: Path, figures: Sequence[ComparedCell]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.csv").write_text(to_csv(figures))
    if not any(figure.cell.variant in VARIANTS for figure in figures):
        return  # no plot has the presets
    try:
        for name, drawn in plots(figures).items():
            (directory / name).write_bytes(drawn)
    except PlotsUnavailable as error:
        warn(str(error))


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
