"""`reliable-channel simulate`, which runs groups in virtual time and reports broken promises."""

import json
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from reliable_channel.spi import err, say

from ..journals import journals_in
from ..sim import Result, Scenario, Simulation, big_group, cores, draw_scenario, run_all, shrink
from ..sim.disk_faults import draw_disk_faults
from ..sim.liveness import draw_liveness
from ..sim.self_tuning import draw_self_tuning
from ..sim.sometimes import SITUATIONS, never

_Item = TypeVar("_Item")

_DRAWINGS: Final = {
    "--disk-faults": draw_disk_faults,
    "--auto": draw_self_tuning,
    "--liveness": draw_liveness,
}
"""What a seed draws instead of `draw_scenario`."""


def register(app: typer.Typer) -> None:
    app.command()(simulate)


def simulate(
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds to run (default: 100).")
    ] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="First seed to run.")] = 1,
    forever: Annotated[
        bool, typer.Option("--forever", help="Run simulations until interrupted.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of processes (default: number of cores).")
    ] = None,
    participants: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "Number of participants in one large group with mild loss. With --compare: "
                "run only this group size."
            ),
        ),
    ] = None,
    messages: Annotated[
        int, typer.Option(min=1, help="Number of messages in the large group.")
    ] = 500,
    scenario: Annotated[
        str | None, typer.Option(help="Scenario to run, as JSON or the path of a file.")
    ] = None,
    shrinking: Annotated[
        bool,
        typer.Option(
            "--shrink/--no-shrink",
            help="Search smaller scenarios that fail like the failing scenario.",
        ),
    ] = True,
    digests: Annotated[
        bool,
        typer.Option(
            "--digests", help="Print a digest of each run. Digests are equal on any machine."
        ),
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print each step of the simulation with one seed.")
    ] = False,
    comparing: Annotated[
        bool, typer.Option("--compare", help="Measure SDS, SDS-R, MVDS and SVS on equal networks.")
    ] = False,
    disk_faults: Annotated[
        bool,
        typer.Option(
            "--disk-faults",
            help="Let the disks of participants fail, too: lost writes, flipped bits, full disks.",
        ),
    ] = False,
    self_tuning: Annotated[
        bool,
        typer.Option(
            "--auto",
            help=(
                "Let all or some participants adapt their own options. With --compare: "
                "measure the preset auto."
            ),
        ),
    ] = False,
    liveness: Annotated[
        bool,
        typer.Option(
            "--liveness",
            help=(
                "Restore the network only for a majority, which must make progress within a "
                "bounded time."
            ),
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="With --compare: measure all loss rates, with up to 1,000 participants."
        ),
    ] = False,
    presets: Annotated[
        bool, typer.Option("--presets", help="With --compare: measure the presets of options.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for each seed or run.")
    ] = False,
    journals: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Directory for the journals of each seed, which `check` reads, and for its "
                "faults (scenario.json)."
            ),
        ),
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="With --compare: directory for CSV files and plots."),
    ] = None,
) -> None:
    """Run groups of real cores over a faulty simulated network, and check every promise.

    The last line is `N passed, M failed`. The exit status is 1 if a promise was broken.
    """
    if (full or presets or out_dir is not None) and not comparing:
        raise ValueError("the flags --full, --presets and --out need --compare")
    if trace and as_json:
        raise ValueError("--trace prints lines for people, so it cannot be combined with --json")
    drawings = {"--disk-faults": disk_faults, "--auto": self_tuning, "--liveness": liveness}
    drawing = [flag for flag, is_given in drawings.items() if is_given]
    if len(drawing) > 1:
        raise ValueError(
            f"{' and '.join(drawing)} draw different scenarios; give only one of these flags"
        )
    if journals is not None and comparing:
        raise ValueError("the flag --journals cannot be combined with --compare")
    stop = threading.Event()

    def interrupt(*_: object) -> None:
        stop.set()  # an exception in a finaliser would be forgotten
        raise KeyboardInterrupt

    _on_signals(interrupt)  # whoever ends a soak has its report
    if comparing:
        from .compare import compare

        _on_signals(lambda *_: stop.set())
        kept = compare(
            seeds=range(first_seed, first_seed + (seeds or 1)),
            which=_which(full=full, presets=presets, self_tuning=self_tuning),
            participants=participants,
            jobs=jobs or cores(),
            as_json=as_json,
            out_dir=out_dir,
            stop=stop,
            shown=partial(_with_progress, what="runs"),
        )
        raise typer.Exit(0 if kept and not stop.is_set() else 1)
    if scenario is not None:
        results: Iterable[Result] = [_run_one(_read(scenario), trace, journals)]
        total: int | None = 1
    else:
        chosen: Callable[[int], Scenario] = _DRAWINGS.get("".join(drawing), draw_scenario)
        if participants is not None:
            chosen = partial(big_group, participants=participants, messages=messages)
        is_one = participants is not None or journals is not None
        total = None if forever else seeds or (1 if is_one else 100)
        numbers = count(first_seed) if total is None else range(first_seed, first_seed + total)
        workers = min(jobs or cores(), total or 1_000_000)
        results = _run_seeds(chosen, numbers, workers, stop, show=trace, journals=journals)
    command = None
    if scenario is None:
        command = _command(participants, messages, drawing)
    kind = _JsonReport if as_json else _Report
    report = kind(shrinking=shrinking, digests=digests, command=command)
    try:
        for result in _with_progress(results, total):
            report.add(result)
    except KeyboardInterrupt:
        stop.set()
    if stop.is_set():
        err.print("interrupted")
    report.end()
    raise typer.Exit(1 if report.failed else 0)


def _which(*, full: bool, presets: bool, self_tuning: bool) -> str:
    """The name of what is compared."""
    names = {"auto": self_tuning, "presets": presets, "full": full, "few": True}
    return next(name for name, chosen in names.items() if chosen)


def _run_seeds(
    chosen: Callable[[int], Scenario],
    numbers: Iterable[int],
    workers: int,
    stop: threading.Event,
    *,
    show: bool,
    journals: Path | None,
) -> Iterable[Result]:
    if show or journals is not None:
        return (_run_one(chosen(seed), show, journals) for seed in numbers)
    if workers > 1:
        # An exception in the middle of a process pool would leave it waiting for itself.
        _on_signals(lambda *_: stop.set())
    return run_all(chosen, numbers, jobs=workers, stopped=stop.is_set)


def _on_signals(handler: Callable[[int, FrameType | None], Any]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


class _Report:
    """Counts, and prints for each failure the command that repeats it."""

    def __init__(self, *, shrinking: bool, digests: bool, command: str | None) -> None:
        self.passed = self.failed = 0
        self._steps = 0
        self._reached = set[str]()
        self._slowest_ms = 0
        self._began = time.monotonic()
        self._shrinking = shrinking
        self._digests = digests
        self._command = command

    def count(self, result: Result) -> None:
        self.passed += result.violation is None
        self.failed += result.violation is not None
        self._steps += result.steps
        self._reached |= result.reached
        self._slowest_ms = max(self._slowest_ms, result.settled_after_ms)

    def add(self, result: Result) -> None:
        """Count a run, and print what is to be known of it."""
        self.count(result)
        if self._digests:
            say(f"seed {result.scenario.seed}: {result.digest}")
        if result.violation is None:
            return
        say(f"seed {result.scenario.seed}: {result.violation}")
        say(f"  {self._repeats(result.scenario)}")
        if self._shrinking:
            small = shrink(result.scenario, result.violation.invariant)
            say(
                f"  shrunk to {small.participants} participants, {len(small.writes)} messages, "
                f"{len(small.faults)} faults:"
            )
            say(f"  reliable-channel simulate --scenario {shlex.quote(small.to_json())}")

    def _repeats(self, scenario: Scenario) -> str:
        if self._command is None:
            return f"reliable-channel simulate --scenario {shlex.quote(scenario.to_json())}"
        return f"{self._command} --seeds 1 --first-seed {scenario.seed}"

    def end(self) -> None:
        seconds = max(time.monotonic() - self._began, 0.001)
        runs = self.passed + self.failed
        say(
            f"{runs} seeds in {seconds:.1f} s, {60 * runs / seconds:.0f} a minute; "
            f"{self._steps} messages received; all logs equal at most "
            f"{self._slowest_ms / 1000:.0f} s after the last fault"
        )
        missed = never([self._reached])
        say(f"{len(SITUATIONS) - len(missed)} of {len(SITUATIONS)} situations reached")
        if missed:
            say(f"never: {', '.join(missed)}")
        say(f"{self.passed} passed, {self.failed} failed")


class _JsonReport(_Report):
    """The same as JSON: a line for each seed."""

    def add(self, result: Result) -> None:
        """Count a run and print it."""
        self.count(result)
        violation = result.violation
        line = {
            "seed": result.scenario.seed,
            "kept": violation is None,
            "violation": violation and str(violation),
            "digest": result.digest,
            "steps": result.steps,
            "equal_after_ms": result.settled_after_ms,
            "repeat": self._repeats(result.scenario),
        }
        typer.echo(json.dumps(line))

    def end(self) -> None:
        """Nothing: the lines have everything."""


def _with_progress(
    results: Iterable[_Item], total: int | None, *, what: str = "seeds"
) -> Iterator[_Item]:
    """Hand on results, and show on a terminal how far it is."""
    columns = (
        TextColumn("simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} " + what + " a minute"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("", total=total, rate="0")
        began = time.monotonic()
        for number, result in enumerate(results, 1):
            rate = 60 * number / max(time.monotonic() - began, 0.001)
            progress.update(task, advance=1, rate=f"{rate:.0f}")
            yield result


def _run_one(scenario: Scenario, show: bool, journals: Path | None) -> Result:
    """Run a scenario; with `journals` in a directory of the seed.

    Raises:
        FileExistsError: there are journals of this seed already.
    """
    kept = None
    if journals is not None:
        directory = journals / f"seed-{scenario.seed}"
        kept = journals_in(directory, scenario)
        (directory / "scenario.json").write_text(scenario.to_json(), encoding="utf-8")
    return Simulation(scenario, show=say if show else None, journals=kept).run()


def _read(scenario: str) -> Scenario:
    text = (
        scenario
        if scenario.lstrip().startswith("{")
        else Path(scenario).read_text(encoding="utf-8")
    )
    return Scenario.from_json(text)


def _command(participants: int | None, messages: int, drawing: Sequence[str]) -> str:
    size = f" --participants {participants} --messages {messages}" if participants else ""
    return " ".join((f"reliable-channel simulate{size}", *drawing))
