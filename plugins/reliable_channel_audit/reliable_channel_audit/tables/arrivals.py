"""Numbers of deliveries to other participants, by duration, hour, pair and path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.messages import Ids
from ..columns.wire import Array, Whole
from ..facts import way_of
from ..log_order import HOUR_MS
from ..promises import Context
from ..rates import Group
from .participants import Known
from .stored_part import coded

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


class Counts(Sequence[int]):
    """Sorted values, each stored with its count."""

    def __init__(self, values: Whole, counts: Whole) -> None:
        self.values, self.counts = values, counts
        self._up_to = np.cumsum(counts)

    def __len__(self) -> int:
        return int(self._up_to[-1]) if len(self._up_to) else 0

    def __getitem__(self, place: Any) -> Any:
        return int(self.values[np.searchsorted(self._up_to, place, side="right")])


class Tally:
    """Counts of each value in each group of values."""

    def __init__(self) -> None:
        self._parts: list[tuple[Whole, Whole, Whole]] = []

    def add(self, groups: Whole, values: Whole, counts: Whole | None = None) -> None:
        self._parts.append(_counted(groups, values, counts))

    def merged(self) -> tuple[Whole, Whole, Whole]:
        """Return groups, values and counts in order."""
        if len(self._parts) > 1:
            self._parts = [_counted(*map(np.concatenate, zip(*self._parts, strict=True)))]
        none = np.zeros(0, np.int64)
        return self._parts[0] if self._parts else (none, none, none)

    def by_group(
        self, of: Callable[[Whole], Whole] = lambda groups: groups
    ) -> Iterator[tuple[int, Counts]]:
        """Yield the values of each group, where groups with an equal `of` are joined."""
        groups, values, counts = self.merged()
        groups, values, counts = _counted(of(groups), values, counts)
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        ends = np.append(begins, len(groups))[1:]
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield int(groups[begin]), Counts(values[begin:end], counts[begin:end])


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


class _Came(NamedTuple):
    """Some deliveries, in arrays."""

    message: Whole
    at_ms: Whole
    own: Array
    sender: Whole
    receiver: Whole
    way: Whole
    missing_ms: Whole
    """-1 if the message was not missed."""


def arrivals(
    channel_id: str, context: Context, known: Sequence[Known], directory: Path
) -> Arrivals:
    """Count the deliveries of a channel. Times are corrected by the leads of clocks."""
    people, ids = Ids(), pa.array([], pa.string())
    kinds = _kinds(known)
    batches: list[_Came] = []
    accepted_ms = np.zeros(0, np.int64)
    for batch in _batches(known, directory):
        texts = pa.chunked_array([table["message_id"].combine_chunks() for _, table in batch])
        found = pc.index_in(texts, value_set=ids)
        if found.null_count:
            ids = pa.concat_arrays([ids, pc.unique(texts.filter(found.is_null()))])
            found = pc.index_in(texts, value_set=ids)
        came = _came(batch, found.to_numpy(), context, people, kinds)
        accepted_ms = _accepted(accepted_ms, len(ids), came)
        is_others = ~came.own & (came.sender != came.receiver)
        batches.append(_Came(*(column[is_others] for column in came)))
    is_of_sender = accepted_ms < _OTHERS // 2
    accepted_ms = np.where(is_of_sender, accepted_ms, accepted_ms - _OTHERS)
    return _tallied(channel_id, batches, accepted_ms, list(people))


def _batches(known: Iterable[Known], directory: Path) -> Iterator[list[tuple[Known, pa.Table]]]:
    batch, rows = [], 0
    for each in known:
        table = each.tables("delivery", directory, _COLUMNS)
        batch.append((each, table))
        rows += table.num_rows
        if rows >= BATCH:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _kinds(known: Iterable[Known]) -> tuple[pa.Array, Whole]:
    """Hashes of all that went out, and by which way a copy came that has one."""
    kinds: dict[bytes, str] = {}
    for each in known:
        for message_hash, kind in each.sent.items():
            kinds[message_hash] = min(kind, kinds.get(message_hash, kind))
    ways = [WAYS.index(way_of(None, kind)) for kind in kinds.values()]
    return pa.array(list(kinds), pa.binary(32)), np.array([*ways, WAYS.index("unknown")])


def _came(
    batch: Sequence[tuple[Known, pa.Table]],
    messages: Whole,
    context: Context,
    people: Ids,
    kinds: tuple[pa.Array, Whole],
) -> _Came:
    hashes, ways = kinds
    parts = []
    for each, table in batch:
        whose = each.participant.channel_id, each.participant.participant_id
        words = Ids("store")
        copies = pc.fill_null(pc.index_in(table["message_hash"], value_set=hashes), -1)
        way = ways[copies.to_numpy()]
        way[coded(table["source"], words) == 0] = WAYS.index("store")
        at_ms = table["at_ms"].to_numpy()
        since_ms = table["missing_since_ms"]
        missing_ms = np.full(len(at_ms), -1)
        if since_ms.null_count < len(at_ms):
            missing_ms = pc.fill_null(pc.subtract(table["at_ms"], since_ms), -1).to_numpy()
        parts.append(
            (
                at_ms - context.ahead_ms[whose],
                table["is_own"].to_numpy(),
                coded(table["sender_id"], people),
                np.full(len(at_ms), people[whose[1]]),
                way,
                missing_ms,
            )
        )
    return _Came(messages, *map(np.concatenate, zip(*parts, strict=True)))


def _accepted(known_ms: Whole, count: int, came: _Came) -> Whole:
    """When each message was accepted: by its sender, or by anybody (`_OTHERS` later) where no
    sender's journal has it."""
    found = np.full(count, 2 * _OTHERS)
    found[: len(known_ms)] = known_ms
    np.minimum.at(found, came.message, np.where(came.own, came.at_ms, came.at_ms + _OTHERS))
    return found


def _tallied(
    channel_id: str, batches: Sequence[_Came], accepted_ms: Whole, people: Sequence[str]
) -> Arrivals:
    begin_ms = int(accepted_ms.min(initial=_OTHERS))
    span_ms = max(int(accepted_ms.max(initial=begin_ms)) - begin_ms, 1)
    wide = max(span_ms // MAX_BINS, 1).bit_length()
    first_hour, first_bin = begin_ms // HOUR_MS, begin_ms >> wide
    hours, pairs, missing, bins = Tally(), Tally(), Tally(), Tally()
    for came in batches:
        since_ms = accepted_ms[came.message]
        delay_ms = came.at_ms - since_ms
        hours.add((since_ms // HOUR_MS - first_hour) * len(WAYS) + came.way, delay_ms)
        pairs.add(came.sender * len(people) + came.receiver, delay_ms)
        was_missing = came.missing_ms >= 0
        missing.add(came.way[was_missing], came.missing_ms[was_missing])
        again = np.isin(came.way, [WAYS.index(way) for way in AGAIN])
        bins.add(((since_ms >> wide) - first_bin) * 2 + again, _highest_bits(delay_ms))
    delays: dict[Group, Counts] = {}
    for _, each in hours.by_group(np.zeros_like):
        delays[channel_id, None, None, None] = each
    for hour, each in hours.by_group(lambda groups: groups // len(WAYS)):
        delays[channel_id, (hour + first_hour) * HOUR_MS, None, None] = each
    for pair, each in pairs.by_group():
        sender, receiver = divmod(pair, len(people))
        delays[channel_id, None, people[sender], people[receiver]] = each
    groups, delays_ms, counts = bins.merged()
    return Arrivals(
        delays,
        {WAYS[way]: each for way, each in hours.by_group(lambda groups: groups % len(WAYS))},
        {WAYS[way]: each for way, each in missing.by_group()},
        Bins((groups // 2 + first_bin) << wide, delays_ms, groups % 2 == 1, counts, 1 << wide),
    )


def _highest_bits(values: Whole) -> Whole:
    values = np.maximum(values, 1)
    dropped = np.maximum(np.frexp(values.astype(np.float64))[1] - BITS, 0)
    return values >> dropped << dropped


def _counted(
    groups: Whole, values: Whole, counts: Whole | None = None
) -> tuple[Whole, Whole, Whole]:
    """Each group and value once, in order, with its counts added up. A count is 1 if not given."""
    if not len(groups):
        return groups, values, groups
    every, least = values, int(values.min())
    width = int(values.max()) - least + 1
    if is_wide := (int(groups.max()) + 1) * width >= _OTHERS:  # a clock was set by ages
        every, values = np.unique(values, return_inverse=True)
        least, width = 0, len(every)
    keys = groups * width + (values - least)
    if counts is None:
        found, sums = np.unique(keys, return_counts=True)
    else:
        found, numbers = np.unique(keys, return_inverse=True)
        sums = np.bincount(numbers, weights=counts).astype(np.int64)
    values = found % width + least
    return found // width, every[values] if is_wide else values, sums
