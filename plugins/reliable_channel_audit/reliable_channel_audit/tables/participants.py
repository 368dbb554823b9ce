"""Facts about each participant alone, from its ingested parts, its open file, or its lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import NeedsRowReader, rows_of
from ..columns.copies import Copies
from ..columns.fast_facts import Whose, facts_of_parts
from ..columns.gathered import Gathered, joined
from ..columns.reading import gathered_part
from ..facts import Acknowledgement, Delivery, Dispatch, Fact, facts_of, uncollected
from ..journals import DAMAGE, Participant, in_order
from ..log_order import Hour, hours_of
from ..rates import levels
from ..reception import TAKEN
from . import layout
from .ingest import Row, paths_of, tables_in
from .stored_part import part_from, tables_of

NEVER: Final = "never"
"""Source of an acknowledgement that was never emitted."""


class Many(NamedTuple):
    """Deliveries and other numerous facts of a participant, as values."""

    deliveries: list[Delivery]
    acknowledgements: list[Acknowledgement]
    dispatches: list[Dispatch]


class Acknowledged(NamedTuple):
    """Acknowledgement times of a participant's messages (ms), for one kind of evidence."""

    channel_id: str
    participant_id: str
    source: str
    messages: int
    p50_ms: int | None
    p90_ms: int | None
    p99_ms: int | None
    max_ms: int | None


@dataclass(slots=True)
class Facts:
    """Facts about one participant, from its journals."""

    participant: Participant
    few: list[Fact]
    hours: dict[Whose, dict[int, Hour]]
    sent: dict[bytes, str]
    """Hashes of published messages, with the first reason in the alphabet."""
    acknowledged: list[Acknowledged]
    rows: list[Row]
    """Ingested parts of the participant, if they were read as columns."""
    live: list[dict[str, pa.Table]] = field(default_factory=list)
    """Tables of the participant's open files."""
    by_rows: Many | None = None
    """Numerous facts of the participant, if it was judged row by row."""

    def tables(
        self,
        kind: str,
        directory: Path,
        columns: Sequence[str],
        *,
        since: int = 0,
        within: tuple[int, int] | None = None,
    ) -> pa.Table:
        """Return columns of one kind of facts, from all files of the participant except the first
        parts, as many as `since`. With `within`, parts without a Lamport timestamp in this range
        are left out. For a participant that was judged row by row, only `delivery` is available."""
        if self.by_rows is not None:
            return _table_of(self.by_rows.deliveries, columns)
        stored = [path for row in self.rows[since:] for path in paths_of(row, directory, kind)]
        every = [layout.read([path], kind, columns, within) for path in stored]
        every += [tables[kind].select(columns) for tables in self.live]
        found = pa.concat_tables(every or [layout.read([], kind, columns)])
        return self._with_sources(found, directory) if kind == "delivery" else found

    def ingested_of(self, deliveries: pa.Table) -> int:
        """Return the number of rows that are from ingested parts, which are the first ones."""
        if self.by_rows is not None:
            return 0
        live: int = sum(each["delivery"].num_rows for each in self.live)
        return int(deliveries.num_rows) - live

    def _with_sources(self, found: pa.Table, directory: Path) -> pa.Table:
        """Deliveries with the sources of messages whose copy arrived in an earlier part."""
        if not {"source", "message_hash"} <= {*found.column_names}:
            return found
        is_earlier = pc.and_(pc.is_null(found["source"]), pc.is_valid(found["message_hash"]))
        if not pc.any(is_earlier).as_py():
            return found
        wire = self.tables("wire", directory, ("source", "outcome", "message_hash"))
        is_taken = pc.is_in(wire["outcome"].cast(pa.string()), pa.array(sorted(TAKEN)))
        wire = wire.filter(pc.and_(is_taken, pc.is_valid(wire["message_hash"]))).combine_chunks()
        places = pc.index_in(found["message_hash"], value_set=wire["message_hash"])
        source = pc.coalesce(
            found["source"].cast(pa.string()), wire["source"].cast(pa.string()).take(places)
        )
        return found.set_column(found.column_names.index("source"), "source", source)


def participants_of(
    rows: Iterable[Row], group: Iterable[Participant]
) -> Iterator[tuple[Participant, list[Row]]]:
    """Yield each participant with all of its files, ingested or open, and its rows of `part`."""
    stored: defaultdict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        stored[row["channel_id"], row["participant_id"]][row["path"]] = row
    given = {(each.channel_id, each.participant_id): each for each in group}
    for whose in sorted(stored.keys() | given.keys()):
        known = stored[whose]
        begun = [(row["first_ms"], Path(path)) for path, row in known.items()]
        size = sum(row["file_bytes"] for row in known.values())
        if (here := given.get(whose)) is not None:
            others = [path for path in here.paths if path not in known]
            latest_ms = max((at_ms for at_ms, _ in begun), default=0)
            begun += [(latest_ms, Path(path)) for path in others]
            size = max(size, here.size_bytes)
        paths = in_order(begun)
        yield (
            Participant(*whose, tuple(map(str, paths)), size),
            [known[str(path)] for path in paths if str(path) in known],
        )


def known_of(
    participant: Participant, rows: Sequence[Row], directory: Path, settle_ms: int | None
) -> Facts:
    """Return the facts about one participant, from columns if possible, otherwise from rows."""
    with uncollected():
        try:
            return _by_columns(participant, rows, directory, settle_ms)
        except (NeedsRowReader, *DAMAGE):
            return _by_rows(participant, settle_ms)


def _by_columns(
    participant: Participant, rows: Sequence[Row], directory: Path, settle_ms: int | None
) -> Facts:
    if odd := next((row["left_to_rows"] for row in rows if row["left_to_rows"]), None):
        raise NeedsRowReader(odd)
    by_path = {row["path"]: row for row in rows}
    copies = Copies()
    parts: list[Gathered] = []
    live = []
    for path in participant.paths:
        if path in by_path:
            tables = tables_in(by_path[path], directory)
            parts.append(part_from(by_path[path], tables, copies.ids, copies.words))
        else:
            parts.append(gathered_part(Path(path), copies))
            live.append(tables_of(parts[-1], participant.participant_id))
    opened, life = joined(participant, parts)
    few = facts_of_parts(participant, opened, life, settle_ms=settle_ms)
    is_out = ~life.wire.is_in
    kinds = map(list(life.words).__getitem__, life.wire.source[is_out].tolist())
    sent = _sent(zip(rows_of(life.wire.message_hash[is_out]), kinds, strict=True))
    told = acknowledged(participant, _waits(life))
    whose = participant.channel_id, participant.participant_id, 0
    return Facts(participant, few, {whose: life.hours}, sent, told, list(rows), live)


def _by_rows(participant: Participant, settle_ms: int | None) -> Facts:
    facts: defaultdict[type, list[Any]] = defaultdict(list)
    for fact in facts_of(participant, settle_ms=settle_ms):
        facts[type(fact)].append(fact)
    many = Many(*(facts.pop(kind, []) for kind in (Delivery, Acknowledgement, Dispatch)))
    few = [*chain.from_iterable(facts.values())]
    lives = groupby(many.deliveries, lambda each: each[:3])
    hours = {whose: _hours_of(entries) for whose, entries in lives}
    sent = _sent((each.message_hash, each.kind) for each in many.dispatches)
    waits = (
        (NEVER, 0)
        if each.acknowledged_ms is None or not each.source
        else (each.source, each.acknowledged_ms - each.accepted_ms)
        for each in many.acknowledgements
    )
    told = acknowledged(participant, waits)
    return Facts(participant, few, hours, sent, told, [], by_rows=many)


def _sent(copies: Iterable[tuple[bytes, str]]) -> dict[bytes, str]:
    """By hash the least kind, which comes last."""
    return dict(sorted(copies, key=itemgetter(1), reverse=True))


def _waits(life: Gathered) -> Iterator[tuple[str, int]]:
    """For each own message the source of its acknowledgement, and how long the message waited."""
    log, emitted, words = life.log, life.emitted, list(life.words)
    accepted_ms = np.zeros(len(life.ids), np.int64)
    accepted_ms[log.message_id[log.is_own]] = log.at_ms[log.is_own]
    took_ms = emitted.at_ms - accepted_ms[emitted.message_id]
    sources = map(words.__getitem__, emitted.source.tolist())
    yield from zip(sources, took_ms.tolist(), strict=True)
    yield from repeat((NEVER, 0), int(log.is_own.sum()) - len(took_ms))


def acknowledged(participant: Participant, waits: Iterable[tuple[str, int]]) -> list[Acknowledged]:
    """Return the acknowledgement times of a participant, including unacknowledged messages."""
    by_source: defaultdict[str, list[int]] = defaultdict(list)
    for source, took_ms in waits:
        by_source[source].append(took_ms)
    whose = participant.channel_id, participant.participant_id
    return [
        Acknowledged(*whose, source, len(every), *levels([] if source == NEVER else sorted(every)))
        for source, every in sorted(by_source.items())
    ]


def _table_of(deliveries: Sequence[Delivery], columns: Sequence[str]) -> pa.Table:
    schema = pa.schema([layout.SCHEMAS["delivery"].field(name) for name in columns])
    rows = [{**each._asdict(), "is_own": each.first_segment_id is not None} for each in deliveries]
    return pa.Table.from_pylist(rows, schema)


def _hours_of(deliveries: Iterable[Delivery]) -> dict[int, Hour]:
    return hours_of(
        ((each.lamport_timestamp, each.message_id, each.sender_id, each.content_sha256), each.at_ms)
        for each in deliveries
    )
