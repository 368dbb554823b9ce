"""Numbers of deliveries to other participants, by duration, hour, pair and path.

A delivery is settled if ingested parts have its sender's log entry, and the path of the message is
known. Later parts do not change a settled delivery. The counts of settled deliveries are kept
beside the facts, with the other deliveries as rows, so that each part is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Array, Whole
from ..columns.messages import Ids
from ..facts import way_of
from ..log_order import HOUR_MS
from ..promises import Context
from ..rates import Group
from . import layout
from .participants import Facts
from .remembered import keep, kept_in, path_of
from .stored_part import coded
from .tally import NO, Counts, Tally

FORMAT: Final = 1
"""Version of kept counts, which is raised when equal parts give other counts."""
WAYS: Final = "live", "retransmission", "repair", "store", "unknown"
AGAIN: Final = frozenset({"retransmission", "repair", "store"})
"""Paths of a message other than its first broadcast."""
MAX_BINS: Final = 1 << 12
"""Maximum number of time bins for a channel's deliveries."""
BITS: Final = 6
"""Number of the highest bits of a delay that are kept, which is enough for a picture."""
BATCH: Final = 500_000
"""Number of deliveries that are processed at a time."""
_COLUMNS: Final = (
    *("message_id", "sender_id", "at_ms", "is_own", "message_hash", "source", "missing_since_ms"),
)
_OTHERS: Final = 2**60
"""Beyond all times."""
_UNKNOWN: Final = WAYS.index("unknown")
Parts = dict[str, tuple[int, list[str]]]
"""Lead of each participant's clock (ms), and the SHA-256 of each of its parts."""
Kinds = tuple[pa.Array, Whole]
"""Hashes of all messages that went out, and the path of a copy with each hash."""


class Bins(NamedTuple):
    """Counts of equal deliveries in time bins, in the order in which messages were accepted."""

    begin_ms: Whole
    delay_ms: Whole
    """Delays, of which only the highest `BITS` bits are kept (ms)."""
    is_again: Array
    deliveries: Whole
    wide_ms: int
    """Width of a time bin, which is a power of two (ms)."""


class Arrivals(NamedTuple):
    """Deliveries of one channel, counted in several ways."""

    delays: dict[Group, Counts]
    """Latencies of deliveries (ms), by the same keys as `rates`."""
    by_way: dict[str, Counts]
    """Latencies of deliveries (ms), by the path of the message."""
    missing: dict[str, Counts]
    """Times from a reference to a missing message until the message arrived (ms), by path."""
    bins: Bins


class _Kept(msgspec.Struct):
    """Deliveries in ingested parts of a channel."""

    format: int
    parts: Parts
    sent: list[bytes]
    ways: Array
    """Path of each message in `sent`."""
    message_ids: list[str]
    accepted_ms: Array
    people: list[str]
    rows: bytes
    """Stream of Arrow data with the deliveries that are not settled."""
    tallies: list[list[Array]]
    """Counts of the settled deliveries."""
    wide: int
    """Exponent of the width of a time bin."""


_NOTHING: Final = _Kept(FORMAT, {}, [], NO, [], NO, [], b"", [[NO] * 3] * 4, 0)


def arrivals(
    channel_id: str, context: Context, known: Sequence[Facts], directory: Path
) -> Arrivals:
    """Count the deliveries of a channel. Times are corrected by the leads of clocks."""
    parts = {
        each.participant.participant_id: (
            context.ahead_ms[channel_id, each.participant.participant_id],
            [row["sha256"] for row in each.rows],
        )
        for each in known
        if each.rows
    }
    kinds, path = _kinds(known), path_of(directory, channel_id)
    kept = kept_in(path, _Kept)
    if kept is None or not _is_of(kept, parts, kinds):
        kept = _NOTHING
    found = _Channel(kept, context, known, directory, kinds)
    if found.is_outdated:
        kept = _NOTHING
        found = _Channel(kept, context, known, directory, kinds)
    found.count_settled()
    if kept.parts != parts:
        keep(path, found.kept(parts))
    return found.arrivals(channel_id)


def _is_of(kept: _Kept, parts: Parts, kinds: Kinds) -> bool:
    """True if parts, clocks and paths are those of before, beside new parts."""
    for name, (ahead_ms, before) in kept.parts.items():
        now_ms, now = parts.get(name, (ahead_ms, []))
        if (now_ms, now[: len(before)]) != (ahead_ms, before):
            return False
    return kept.format == FORMAT and np.array_equal(
        _ways(pa.array(kept.sent, layout.DIGEST), kinds), kept.ways
    )


class _Channel:
    """Deliveries of a channel. Those in `kept` are not read again."""

    def __init__(
        self,
        kept: _Kept,
        context: Context,
        known: Sequence[Facts],
        directory: Path,
        kinds: Kinds,
    ) -> None:
        self._before, self._kinds, self._context = kept, kinds, context
        self._people, self._ids = Ids(*kept.people), pa.array(kept.message_ids, pa.string())
        self._stored_ms = self._accepted_ms = kept.accepted_ms
        self._tallies = Tally(), Tally(), Tally(), Tally()
        """Deliveries by hour and path, by pair, and by time bin; and missing messages by path."""
        rows = [pa.ipc.open_stream(kept.rows).read_all()] if kept.rows else []
        self._batches = [_with_ways(each, kinds) for each in rows]
        for batch in _batches(known, directory, kept.parts):
            self._add(batch)
        every_ms = self._accepted_ms
        self._since_ms = np.where(every_ms < _OTHERS // 2, every_ms, every_ms - _OTHERS)
        begin_ms = int(self._since_ms.min(initial=_OTHERS))
        span_ms = max(int(self._since_ms.max(initial=begin_ms)) - begin_ms, 1)
        self._wide = max(span_ms // MAX_BINS, 1).bit_length()
        is_own = kept.accepted_ms < _OTHERS // 2
        now_ms = self._accepted_ms[: len(is_own)]
        self.is_outdated = kept.wide > self._wide or (now_ms != kept.accepted_ms)[is_own].any()
        """True if other participants accepted messages before those that were counted."""

    def _add(self, batch: Sequence[tuple[Facts, pa.Table]]) -> None:
        texts = pa.chunked_array([table["message_id"].combine_chunks() for _, table in batch])
        found = pc.index_in(texts, value_set=self._ids)
        if found.null_count:
            new = pc.unique(texts.filter(found.is_null()))
            self._ids = pa.concat_arrays([self._ids, new])
            found = pc.index_in(texts, value_set=self._ids)
        tables = [_came(each, table, self._context, self._people) for each, table in batch]
        came = pa.concat_tables(tables).append_column("message", found)
        own, stored = came["is_own"].to_numpy(), came["is_stored"].to_numpy()
        at_ms, messages = came["at_ms"].to_numpy(), found.to_numpy()
        accepted_ms, count = np.where(own, at_ms, at_ms + _OTHERS), len(self._ids)
        self._accepted_ms = _accepted(self._accepted_ms, count, messages, accepted_ms)
        self._stored_ms = _accepted(self._stored_ms, count, messages[stored], accepted_ms[stored])
        is_others = ~own & (came["sender"].to_numpy() != came["receiver"].to_numpy())
        self._batches.append(_with_ways(came, self._kinds).filter(pa.array(is_others)))

    def count_settled(self) -> None:
        """Count the deliveries that later parts do not change."""
        hours, pairs, bins, missing = self._before.tallies
        sender, receiver = np.divmod(pairs[0], max(len(self._before.people), 1))
        pairs = [sender * len(self._people) + receiver, *pairs[1:]]
        place, again = np.divmod(bins[0], 2)
        bins = [(place >> (self._wide - self._before.wide)) * 2 + again, *bins[1:]]
        for tally, columns in zip(self._tallies, (hours, pairs, bins, missing), strict=True):
            tally.add(*columns)
        own_ms = self._stored_ms
        is_own = (own_ms < _OTHERS // 2) & (own_ms == self._accepted_ms)
        for nth, came in enumerate(self._batches):
            is_known = came["is_stored"].to_numpy() & (came["way"].to_numpy() != _UNKNOWN)
            is_settled = is_known & is_own[came["message"].to_numpy()]
            self._count(came.filter(pa.array(is_settled)))
            self._batches[nth] = came.filter(pa.array(~is_settled))

    def _count(self, came: pa.Table) -> None:
        hours, pairs, bins, missing = self._tallies
        names = "message", "at_ms", "sender", "receiver", "way"
        columns = (came[name].to_numpy() for name in names)
        message, at_ms, sender, receiver, way = (each.astype(np.int64) for each in columns)
        since_ms = self._since_ms[message]
        delay_ms = at_ms - since_ms
        hours.add(since_ms // HOUR_MS * len(WAYS) + way, delay_ms)
        pairs.add(sender * len(self._people) + receiver, delay_ms)
        again = np.isin(way, [WAYS.index(name) for name in AGAIN])
        bins.add((since_ms >> self._wide) * 2 + again, _highest_bits(delay_ms))
        missing_ms = pc.fill_null(came["missing_ms"], -1).to_numpy()
        was_missing = missing_ms >= 0
        missing.add(way[was_missing], missing_ms[was_missing])

    def kept(self, parts: Parts) -> _Kept:
        """Return what was counted and the other deliveries in parts, after `count_settled`."""
        is_stored = self._stored_ms < 2 * _OTHERS
        numbers = np.cumsum(is_stored) - 1
        rest = pa.concat_tables(came.filter(came["is_stored"]) for came in self._batches)
        message = pa.array(numbers[rest["message"].to_numpy()], layout.NUMBER)
        rest = rest.set_column(rest.column_names.index("message"), "message", message)
        rows = pa.BufferOutputStream()
        with pa.ipc.new_stream(rows, rest.schema) as stream:
            stream.write_table(rest)
        hashes, ways = self._kinds
        return _Kept(
            FORMAT,
            parts,
            hashes.to_pylist(),
            ways[:-1],
            self._ids.filter(pa.array(is_stored)).to_pylist(),
            self._stored_ms[is_stored],
            list(self._people),
            rows.getvalue().to_pybytes(),
            [list(tally.merged()) for tally in self._tallies],
            self._wide,
        )

    def arrivals(self, channel_id: str) -> Arrivals:
        """Return all deliveries, after `count_settled`."""
        for came in self._batches:
            self._count(came)
        hours, pairs, bins, missing = self._tallies
        people = list(self._people)
        delays: dict[Group, Counts] = {}
        for _, each in hours.by_group(np.zeros_like):
            delays[channel_id, None, None, None] = each
        for hour, each in hours.by_group(lambda groups: groups // len(WAYS)):
            delays[channel_id, hour * HOUR_MS, None, None] = each
        for pair, each in pairs.by_group():
            sender, receiver = divmod(pair, len(people))
            delays[channel_id, None, people[sender], people[receiver]] = each
        by_way = hours.by_group(lambda groups: groups % len(WAYS))
        groups, delays_ms, counts = bins.merged()
        return Arrivals(
            delays,
            {WAYS[way]: each for way, each in by_way},
            {WAYS[way]: each for way, each in missing.by_group()},
            Bins(groups // 2 << self._wide, delays_ms, groups % 2 == 1, counts, 1 << self._wide),
        )


def _batches(
    known: Iterable[Facts], directory: Path, parts: Parts
) -> Iterator[list[tuple[Facts, pa.Table]]]:
    """Yield the deliveries that are not in the given parts."""
    batch, rows = [], 0
    for each in known:
        _, before = parts.get(each.participant.participant_id, (0, []))
        table = each.tables("delivery", directory, _COLUMNS, since=len(before))
        batch.append((each, table))
        rows += table.num_rows
        if rows >= BATCH:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _kinds(known: Iterable[Facts]) -> Kinds:
    kinds: dict[bytes, str] = {}
    for each in known:
        for message_hash, kind in each.sent.items():
            kinds[message_hash] = min(kind, kinds.get(message_hash, kind))
    ways = [WAYS.index(way_of(None, kind)) for kind in kinds.values()]
    return pa.array(list(kinds), layout.DIGEST), np.array([*ways, _UNKNOWN])


def _ways(hashes: pa.Array | pa.ChunkedArray, kinds: Kinds) -> Whole:
    """Return the path of a copy with each hash."""
    every, ways = kinds
    places = pc.index_in(hashes.cast(layout.DIGEST), value_set=every)
    return ways[pc.fill_null(places, -1).to_numpy()]


def _came(each: Facts, table: pa.Table, context: Context, people: Ids) -> pa.Table:
    """The deliveries of a participant, with numbers for names."""
    whose = each.participant.channel_id, each.participant.participant_id
    at_ms, rows = table["at_ms"], table.num_rows
    columns = {
        "at_ms": pc.subtract(at_ms, context.ahead_ms[whose]),
        "is_own": table["is_own"],
        "sender": coded(table["sender_id"], people).astype(np.int32),
        "receiver": np.full(rows, people[whose[1]], np.int32),
        "is_store": coded(table["source"], Ids("store")) == 0,
        "message_hash": table["message_hash"],
        "missing_ms": pc.subtract(at_ms, table["missing_since_ms"]),
        "is_stored": np.arange(rows) < each.ingested_of(table),
    }
    return pa.table(columns)


def _with_ways(came: pa.Table, kinds: Kinds) -> pa.Table:
    """The deliveries with their paths. Hashes that gave a path are dropped, to save memory."""
    way = _ways(came["message_hash"], kinds)
    way[came["is_store"].to_numpy()] = WAYS.index("store")
    if "way" in came.column_names:
        before = came["way"].to_numpy()
        way = np.where(before == _UNKNOWN, way, before)
        came = came.drop_columns(["way"])
    hashes = came["message_hash"]
    rest = pc.if_else(pa.array(way == _UNKNOWN), hashes, pa.scalar(None, hashes.type))
    place = came.column_names.index("message_hash")
    came = came.set_column(place, "message_hash", rest.cast(pa.binary()))
    return came.append_column("way", pa.array(way, pa.int8()))


def _accepted(known_ms: Whole, count: int, messages: Whole, accepted_ms: Whole) -> Whole:
    """When each message was accepted: by its sender, or by anybody (`_OTHERS` later) where no
    sender's journal has it."""
    found = np.full(count, 2 * _OTHERS)
    found[: len(known_ms)] = known_ms
    np.minimum.at(found, messages, accepted_ms)
    return found


def _highest_bits(values: Whole) -> Whole:
    values = np.maximum(values, 1)
    dropped = np.maximum(np.frexp(values.astype(np.float64))[1] - BITS, 0)
    return values >> dropped << dropped
