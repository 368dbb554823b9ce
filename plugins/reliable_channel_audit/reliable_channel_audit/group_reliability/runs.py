"""Runs of groups on disk, with their files, descriptions and figures."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..clocks import clock_offsets, own_lags
from ..facts import Delivery, Dispatch, Lag, Outcome, Repair, facts_of, way_of
from ..findings import ALWAYS_MS, Gap, HeardSender
from ..journals import PACKED, Participant, group_of, lines_of, settings
from ..lines import OPENED
from ..promises import Context
from ..replay import Life
from .field_logs import ENTERED, WAKU, FieldLog
from .figures import Figures
from .tally import Tally

METADATA: Final = "metadata.json"
"""File that 10ksim writes beside the logs of an experiment (its `POST_RUN_ANALYSIS.md`)."""
NOT_OF_NODES: Final = frozenset({METADATA, "events.log", "out.log"})
"""Files of 10ksim about the whole experiment, which contain no node's log."""
_KINDS: Final = (".log", ".txt", ".json", ".jsonl", ".ndjson", ".journal")
JOURNALS: Final = "reliable-channel"


@dataclass(slots=True)
class Run:
    name: str
    scenario: str
    implementation: str
    settings: dict[str, str]
    figures: Figures
    warnings: list[str]
    """Reasons why figures of the run may be unreliable."""

    def to_dict(self) -> dict[str, object]:
        return {
            "run": self.name,
            "scenario": self.scenario,
            "implementation": self.implementation,
            "settings": self.settings,
            "figures": self.figures.values(),
            "warnings": self.warnings,
        }


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


def measure(name: str, files: list[Path], metadata: Mapping[str, Any], *, settle_ms: int) -> Run:
    """Return the figures of a run, from the logs in its files."""
    tally, warnings = Tally(), list[str]()
    group, others, _ = group_of(files)
    options = _flat(metadata.get("params"))
    found = Counter[str]()
    if group:
        found[JOURNALS] = len(group)
        options = _read_journals(group, tally, settle_ms, warnings) | options
    found += _read_field_logs(others, tally, warnings, metadata, alone=not group)
    figures = tally.figures(settle_ms * 1000)
    _warn(figures, warnings, metadata)
    experiment = metadata.get("experiment")
    experiment = experiment if isinstance(experiment, dict) else {}
    scenario = metadata.get("scenario") or experiment.get("name") or experiment.get("class")
    return Run(
        name,
        str(scenario or name),
        _implementation(metadata, options, found),
        options,
        figures,
        warnings,
    )


def _runs_in(path: Path) -> Iterator[tuple[str, list[Path], dict[str, Any]]]:
    if path.is_file():
        yield path.name.split(".")[0], [path], {}
        return
    metadata = path / METADATA
    direct = [each for each in sorted(path.iterdir()) if _is_log(each)]
    if metadata.is_file():
        files = [each for each in sorted(path.rglob("*")) if _is_log(each)]
        yield path.resolve().name, files, _metadata(metadata)
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


def _metadata(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a JSON object")
    return values


def _read_field_logs(
    files: list[Path],
    tally: Tally,
    warnings: list[str],
    metadata: Mapping[str, Any],
    *,
    alone: bool,
) -> Counter[str]:
    found: Counter[str] = Counter()
    unreadable = 0
    for path in files:
        log = FieldLog(path)
        seen = 0
        for each in log.sightings():
            seen += 1
            found[each.implementation] += 1
            if each.sent_us is not None:
                tally.sent(each.message, each.sent_us, group=each.group)
            if each.kind == ENTERED:
                tally.entered(each.node, each.message, each.at_us, group=each.group)
            else:
                tally.had(each.node, each.message, each.at_us, group=each.group)
        unreadable += log.unreadable
        if not seen and not log.is_dump and alone and path.name.split(".")[1:2] == ["log"]:
            tally.participant(path.name.split(".")[0])  # a node that had nothing
    if unreadable:
        warnings.append(f"{unreadable} lines could not be read")
    _expect_pods(tally, metadata, found)
    return found


def _expect_pods(tally: Tally, metadata: Mapping[str, Any], found: Counter[str]) -> None:
    """Nodes that the experiment had, whether or not they logged anything."""
    stack = metadata.get("stack")
    stack = stack if isinstance(stack, dict) else {}
    sets, sizes = stack.get("stateful_sets") or (), stack.get("nodes_per_statefulset") or ()
    known = set(tally.names)
    for name, size in zip(sets, sizes, strict=False):
        pods = [f"{name}-{index}" for index in range(int(size))]
        if not known.isdisjoint(pods):
            shard = str(name).rpartition("-")[2] if WAKU in found else ""
            for pod in pods:
                if pod not in known:
                    tally.participant(pod, group=shard if shard.isdigit() else "")


def _read_journals(
    group: list[Participant], tally: Tally, settle_ms: int, warnings: list[str]
) -> dict[str, str]:
    """Count what journals say; return the options that all of them have.

    A participant whose clock is unknown, or whose journal lacks lines, is left out with a warning:
    its times would show losses and latencies that there were not, or hide some that there were.
    """
    facts: defaultdict[type, list[Any]] = defaultdict(list)
    kept = {Life, Delivery, Dispatch, Lag, Outcome, Repair, Gap, HeardSender}
    for participant in group:
        for fact in facts_of(participant, settle_ms=settle_ms):
            if type(fact) in kept:
                facts[type(fact)].append(fact)
    lives = facts[Life]
    offsets = clock_offsets(own_lags(facts[Lag], facts[Dispatch]), lives)
    context = Context(lives, offsets, facts[Gap], facts[HeardSender], settle_ms)
    left_out = {}
    for whose in sorted({life[:2] for life in lives}):
        gap = context.gap(whose, *ALWAYS_MS)
        if why := context.unknown_clock(whose) or (gap and gap.why):
            left_out[whose] = why
            warnings.append(f"{whose[1]} is left out: {why}")
    facts[Delivery] = [
        each
        for each in facts[Delivery]
        if left_out.keys().isdisjoint((each[:2], (each.channel_id, each.sender_id)))
    ]
    ahead_ms = context.ahead_ms
    kinds = {(each.channel_id, each.message_hash): each.kind for each in facts[Dispatch]}
    for life in lives:
        if life[:2] in left_out:
            continue
        ahead = ahead_ms[life[:2]]
        tally.participant(
            _name(life),
            group=life.channel_id,
            from_us=(life.owed_from_ms - ahead) * 1000 if life.owed_from_ms else 0,
            until_us=(life.until_ms - ahead) * 1000,
        )
    failures = {(each.channel_id, each.message_id) for each in facts[Outcome] if each.is_failure}
    for each in facts[Delivery]:
        at_us = (each.at_ms - ahead_ms[each[:2]]) * 1000
        message = f"{each.channel_id} {each.message_id}"
        if each.first_segment_id is not None:
            tally.entered(_name(each), message, at_us, group=each.channel_id)
            if (each.channel_id, each.first_segment_id) in failures:
                tally.failed(message)
            continue
        missing = each.missing_since_ms
        tally.had(
            _name(each),
            message,
            at_us,
            group=each.channel_id,
            way=_way(each, kinds),
            missing_us=-1 if missing is None else (each.at_ms - missing) * 1000,
        )
    for each in facts[Repair]:
        tally.repairs(each.requests, each.responses)
    return _options(group)


def _way(delivery: Delivery, kinds: Mapping[tuple[str, bytes | None], str]) -> str:
    return way_of(delivery.source, kinds.get((delivery.channel_id, delivery.message_hash)))


def _name(whose: Life | Delivery) -> str:
    return f"{whose.channel_id} {whose.participant_id} {whose.life}"


def _options(group: Iterable[Participant]) -> dict[str, str]:
    """The options that all participants began with."""
    shared: dict[str, str] | None = None
    for each in group:
        lines = lines_of(each.channel_id, each.participant_id, each.paths[0])
        opened = next((line for _, line in lines if line.event == OPENED), None)
        if opened is not None:
            own = _flat(settings(opened).get("options"))
            shared = own if shared is None else dict(shared.items() & own.items())
    return dict(sorted((shared or {}).items()))


def _implementation(
    metadata: Mapping[str, Any], options: Mapping[str, str], found: Counter[str]
) -> str:
    named = metadata.get("implementation")
    if named:
        return str(named)
    if "image_repo" in options:
        return ":".join(filter(None, (options["image_repo"], options.get("image_tag"))))
    return " + ".join(sorted(found)) or "unknown"


def _flat(values: object, prefix: str = "") -> dict[str, str]:
    """Settings by name, those in others as `outer.inner`."""
    if not isinstance(values, dict):
        return {}
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value if isinstance(value, str) else json.dumps(value)
    return found


def _warn(figures: Figures, warnings: list[str], metadata: Mapping[str, Any]) -> None:
    if not figures.expected:
        warnings.append("nothing was measured: no message was due at a second participant")
    if figures.silent:
        warnings.append(f"{figures.silent} participants had no message at all")
    if figures.without_origin:
        warnings.append(
            f"of {figures.without_origin} messages no line shows where they were sent: their "
            "latency counts from the first reception"
        )
    if figures.latency.negative:
        warnings.append(
            f"{figures.latency.negative} deliveries are earlier than sent, by clocks that disagree"
        )
    params = metadata.get("params")
    wanted = params.get("num_messages") if isinstance(params, dict) else None
    seen = figures.messages + figures.failed
    if isinstance(wanted, int) and seen < wanted and not figures.not_due:
        warnings.append(f"{wanted} messages were to be sent, and {seen} are in the logs")
