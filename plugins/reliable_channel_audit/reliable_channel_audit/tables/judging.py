"""Verdict on a directory of facts together with open journal files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import time_ns
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa

from ..check import concluded
from ..clocks import Offset, clock_offsets
from ..facts import Lag
from ..findings import Audit, Gap, HeardSender
from ..journals import Group, Participant
from ..promises import Compared, Context
from ..rates import rated
from ..replay import Life
from ..verdict import SetAside, Verdict
from . import layout
from .arrivals import Arrivals, arrivals
from .comparing import ChannelLogs
from .ingest import Row, is_same, parts
from .participants import Acknowledged, Facts, known_of, participants_of
from .remembered import remembered

_NS: Final = 1_000_000


class Judged(NamedTuple):
    """Verdict with the participants and data that it is about."""

    run_id: str
    verdict: Verdict
    participants: list[Participant]
    few: Mapping[type, list[Any]]
    """Facts that are few for each participant, by kind."""
    offsets: Mapping[tuple[str, str], Offset]
    """Leads of clocks, by channel and participant."""
    acknowledged: list[Acknowledged]
    arrivals: Mapping[str, Arrivals]
    """Deliveries to other participants, by channel."""


def judge(
    directory: Path,
    group: Group,
    *,
    settle_ms: int | None = None,
    only_group: bool = False,
    progress: Callable[[str], None] = lambda what: None,
) -> Judged:
    """Judge all ingested files and the open files of a group, and store the verdict. With
    `only_group`, ingested files outside the group are left out."""
    known: list[Facts] = []
    facts: defaultdict[type, list[Any]] = defaultdict(list)
    given = {path for each in group.participants for path in each.paths}
    every_part = [
        row
        for row in parts(directory)
        if (is_same(Path(row["path"]), row) if row["path"] in given else not only_group)
    ]  # a file that was closed, and is written on, is open again
    for participant, rows in participants_of(every_part, group.participants):
        progress(participant.participant_id)
        known.append(remembered(participant, rows, directory, settle_ms, known_of))
        for fact in known[-1].few:
            facts[type(fact)].append(fact)
    lives: list[Life] = facts[Life]
    offsets = clock_offsets(_own_lags(facts[Lag], known), lives)
    context = Context(lives, offsets, facts[Gap], facts[HeardSender], settle_ms)
    there = {
        channel_id: [each for each in known if each.participant.channel_id == channel_id]
        for channel_id in sorted({life.channel_id for life in lives})
    }
    every = {
        channel_id: ChannelLogs(channel_id, context, here, directory).compare(facts)
        for channel_id, here in there.items()
    }
    compared = _together(each.compared for each in every.values())
    verdict = concluded(facts, context, compared, participants=len(known))
    verdict.messages = sum(each.messages for each in every.values())
    verdict.deliveries = sum(
        hour.entries for each in known for hours in each.hours.values() for hour in hours.values()
    )
    came = {
        channel_id: arrivals(channel_id, context, here, directory)
        for channel_id, here in there.items()
    }
    delays = {group: found for each in came.values() for group, found in each.delays.items()}
    verdict.rates = rated(delays, verdict.lost)
    verdict.set_aside = sorted(group.set_aside + facts[SetAside])
    run_id = uuid4().hex
    _keep_verdict(run_id, verdict, directory)
    for channel_id, each in every.items():
        differing = (one._asdict() for one in each.differences)
        _keep(run_id, "log_difference", channel_id, differing, directory)
    judged = [each.participant for each in known]
    told = [one for each in known for one in each.acknowledged]
    return Judged(run_id, verdict, judged, facts, offsets, told, came)


def _own_lags(lags: Iterable[Lag], known: Iterable[Facts]) -> Iterator[Lag]:
    """Those of messages that their sender sent out itself, by its journal."""
    sent = {
        (each.participant.channel_id, each.participant.participant_id): each.sent for each in known
    }
    for each in lags:
        if each.message_hash in sent.get((each.channel_id, each.sender_id), ()):
            yield each


def _together(every: Iterable[Compared]) -> Compared:
    found = Compared()
    for each in every:
        found.findings += each.findings
        found.on_the_way += each.on_the_way
        found.behind |= each.behind
        found.lost += each.lost
        for audit, reason in each.unjudged.items():
            found.add_reason(audit, reason)
    return found


def _keep_verdict(run_id: str, verdict: Verdict, directory: Path) -> None:
    """Write a verdict as a row an audit, and its findings."""
    judged_ms = time_ns() // _NS
    rows = (
        {
            "judged_ms": judged_ms,
            "audit": audit.value,
            "value": verdict.of(audit).value,
            "cases": verdict.judged.get(audit.value, 0),
            "broken": verdict.broken.get(audit.value, 0),
            "why": verdict.unknown.get(audit.value),
        }
        for audit in Audit
    )
    _keep(run_id, "verdict", None, rows, directory)
    _keep(run_id, "finding", None, (each._asdict() for each in verdict.findings), directory)


def _keep(
    run_id: str, kind: str, channel_id: str | None, rows: Iterable[Row], directory: Path
) -> None:
    """Write what a run has of a kind."""
    every = [{"run_id": run_id, **row} for row in rows]
    table = pa.Table.from_pylist(every, layout.SCHEMAS[kind])
    if table.num_rows:
        day = layout.day_of(time_ns() // _NS)
        folder = layout.partition(directory, kind, channel_id, day)
        layout.write(folder / f"{run_id}.parquet", table)
