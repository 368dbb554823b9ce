"""Runs of groups on disk, with their files, descriptions and figures, and tables of runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ..check import by_kind
from ..facts import facts_of
from ..journals import PACKED, group_of, options_of
from ..rates import duration, percent
from .field_logs import WAKU, FieldLogs
from .figures import Figures, figures_of

METADATA: Final = "metadata.json"
"""File that 10ksim writes beside the logs of an experiment (its `POST_RUN_ANALYSIS.md`)."""
NOT_OF_NODES: Final = frozenset({METADATA, "events.log", "out.log"})
"""Files of 10ksim about the whole experiment, which contain no node's log."""
_KINDS: Final = (".log", ".txt", ".json", ".jsonl", ".ndjson", ".journal")
JOURNALS: Final = "reliable-channel"

UNKNOWN: Final = "-"
HEADINGS: Final = {
    "participants": "participants",
    "messages": "messages",
    "delivery_rate": "delivered",
    "missing": "missing",
    "holes": "holes",
    "latency_p50_ms": "p50",
    "latency_p99_ms": "p99",
    "latency_max_ms": "max",
    "repaired": "repaired",
}
"""Figures that a table shows, with their headings. `Figures.values` contains all figures of a
run."""


class Run(NamedTuple):
    name: str
    scenario: str
    implementation: str
    settings: dict[str, str]
    figures: Figures
    warnings: list[str]
    """Reasons why figures of the run may be unreliable."""

    def to_dict(self) -> dict[str, Any]:
        values = self._asdict()
        return {"run": values.pop("name"), **values, "figures": self.figures.values()}


def find_runs(paths: Iterable[Path]) -> Iterator[tuple[str, list[Path], dict[str, Any]]]:
    """Yield the name, files and metadata of each run.

    A file that is given as a path is a run of its own. A folder is a run if it contains logs or a
    `metadata.json`. In other folders, runs are searched in the subfolders.

    Raises:
        FileNotFoundError: a path that is not there.
        ValueError: a path with no logs at all, or a `metadata.json` that is not one.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; give logs, or directories of logs")
        found = list(_runs_in(path))
        if not found:
            raise ValueError(
                f"no logs in {path}; the command looked for {', '.join(_KINDS)}, also packed"
            )
        yield from found


def measure(
    name: str, files: list[Path], metadata: Mapping[str, Any], *, settle_ms: int | None
) -> Run:
    """Return the figures of a run, from the logs in its files."""
    group, others, _ = group_of(files)
    logs = FieldLogs()
    for path in others if not group else ():
        logs.read(path)
    logs.nodes |= {*_expected_nodes(logs, metadata)}
    of_journals = (facts_of(each, settle_ms=settle_ms) for each in group)
    facts = by_kind(chain(*of_journals, logs.facts()))
    figures, warnings = figures_of(facts, settle_ms)
    if logs.unreadable:
        warnings.append(f"{logs.unreadable} lines could not be read")
    options = options_of(group)[1] | dict(_flat(metadata.get("params")))
    wanted = options.get("num_messages", "")
    if wanted.isdecimal() and figures.messages < int(wanted):
        warnings.append(
            f"{wanted} messages were to be sent, and {figures.messages} are in the logs"
        )
    experiment = metadata.get("experiment")
    experiment = experiment if isinstance(experiment, dict) else {}
    scenario = metadata.get("scenario") or experiment.get("name") or experiment.get("class") or name
    image = ":".join(options[each] for each in ("image_repo", "image_tag") if each in options)
    found = " + ".join([JOURNALS] if group else sorted(logs.implementations))
    implementation = metadata.get("implementation") or image or found or "unknown"
    return Run(name, str(scenario), str(implementation), options, figures, warnings)


def by_scenario(runs: Iterable[Run]) -> list[Run]:
    """Return the runs of each scenario and implementation as one run, with their figures added up.
    They keep the order of scenarios, with implementations of a scenario together."""
    together: dict[str, dict[str, Run]] = {}
    for run in runs:
        names = run.scenario, run.implementation
        summed = Run(run.scenario, *names, {}, Figures(runs=0), [])
        together.setdefault(run.scenario, {}).setdefault(run.implementation, summed)
        together[run.scenario][run.implementation].figures.add(run.figures)
    return [each[name] for each in together.values() for name in sorted(each)]


def varied(runs: Sequence[Run]) -> list[str]:
    """Return the names of the settings that differ between runs."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    return [name for name in names if len({run.settings.get(name) for run in runs}) > 1]


def differences(first: Run, second: Run) -> list[dict[str, Any]]:
    """Return the values of every figure in two runs, with the change. A value that is unknown is
    None."""
    one, other = first.figures.values(), second.figures.values()
    return [
        {
            "figure": name,
            "first": was,
            "second": now,
            "change": None if was is None or now is None else now - was,
        }
        for (name, was), now in zip(one.items(), other.values(), strict=True)
    ]


def shown(name: str, value: float | int | None, *, signed: bool = False) -> str:
    """Return a figure as text, with its unit, or with a dash if it is unknown. A `signed` figure of
    0 is empty."""
    if value is None:
        return UNKNOWN
    if signed and value >= 0:
        return f"+{shown(name, value)}" if value else ""
    if name.endswith("_rate"):
        return percent(value)
    if name.endswith("_ms"):
        return "-" * (value < 0) + duration(abs(value))
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"


def _runs_in(path: Path) -> Iterator[tuple[str, list[Path], dict[str, Any]]]:
    if path.is_file():
        yield path.name.split(".")[0], [path], {}
        return
    metadata = path / METADATA
    direct = [each for each in sorted(path.iterdir()) if _is_log(each)]
    if metadata.is_file():
        files = [each for each in sorted(path.rglob("*")) if _is_log(each)]
        try:
            values = msgspec.json.decode(metadata.read_bytes(), type=dict[str, Any])
        except ValueError as error:
            raise ValueError(f"{metadata} must be a JSON object: {error}") from None
        yield path.resolve().name, files, values
    elif direct:
        yield path.resolve().name, direct, {}
    else:
        for each in sorted(path.iterdir()):
            if each.is_dir():
                yield from _runs_in(each)


def _is_log(path: Path) -> bool:
    name = path.name
    for packed in PACKED:
        name = name.removesuffix(packed)
    return name.endswith(_KINDS) and name not in NOT_OF_NODES and path.is_file()


def _expected_nodes(logs: FieldLogs, metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Nodes that the experiment had, whether or not they logged anything."""
    stack = metadata.get("stack")
    stack = stack if isinstance(stack, dict) else {}
    sets, sizes = stack.get("stateful_sets") or (), stack.get("nodes_per_statefulset") or ()
    known = {node for _, node in logs.nodes}
    for name, size in zip(sets, sizes, strict=False):
        pods = {f"{name}-{index}" for index in range(int(size))}
        shard = str(name).rpartition("-")[2] if WAKU in logs.implementations else ""
        if known & pods:
            yield from ((shard if shard.isdigit() else "", pod) for pod in pods - known)


def _flat(values: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings by name, those in others as `outer.inner`."""
    for name, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)
