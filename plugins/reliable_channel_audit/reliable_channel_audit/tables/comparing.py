"""Comparison of logs by hours, so that only hours which differ are examined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.arrays import Array, Whole
from ..columns.fast_facts import Whose
from ..facts import Acknowledgement, Delivery, Dispatch, Outcome
from ..findings import Orphan
from ..log_order import HOUR_MS, Hour
from ..promises import Compared, Context, compare_messages, disordered, invented, unequal_logs
from ..replay import Life
from .participants import Facts
from .views import plain_schema

MEANING: Final = ("message_id", "sender_id", "lamport_timestamp", "content_sha256")
"""Columns that are equal in all logs that contain a message."""
COLUMNS: Final = (*MEANING, "at_ms", "is_own", "message_hash", "source")
_SCHEMA: Final = pa.schema(
    [*(plain_schema("delivery").field(name) for name in COLUMNS), pa.field("life", pa.int64())]
)


class Difference(NamedTuple):
    """Message that the log of a participant lacks."""

    hour_ms: int
    message_id: str
    participant_id: str
    in_logs: int
    """Number of logs that contain the message."""


@dataclass(slots=True)
class Comparison:
    """Results of comparing the logs of a channel."""

    compared: Compared
    messages: int
    differences: list[Difference]


class ChannelLogs:
    """Logs of all participants in one channel."""

    def __init__(
        self, channel_id: str, context: Context, known: Sequence[Facts], directory: Path
    ) -> None:
        self._channel_id, self._known, self._directory = channel_id, known, directory
        self._context = context.of_channel(channel_id)
        lives = self._context.lives
        self._lives: dict[Whose, Life] = {life[:3]: life for life in lives}
        self._hours: dict[Whose, Mapping[int, Hour]] = {whose: {} for whose in self._lives}
        for each in known:
            self._hours.update(each.hours)
        self._is_odd = any(not life.is_whole or life.impostors for life in lives)

    def compare(self, facts: Mapping[type, Sequence[Any]]) -> Comparison:
        """Compare the hours in which logs of the channel differ."""
        outcomes, orphans = (
            [each for each in facts[kind] if each.channel_id == self._channel_id]
            for kind in (Outcome, Orphan)
        )
        spans = self._spans()
        same = {hour_ms for hour_ms, span in spans.items() if self._is_same(hour_ms, span)}
        found = self._deliveries(spans.keys() - same)
        messages = sum(spans[hour_ms].entries for hour_ms in same)
        messages += len(pc.unique(found["message_id"]))
        differing = found.filter(pa.array(~self._is_everywhere(found, spans)))
        about = {*differing["message_id"].to_pylist(), *(each.message_id for each in orphans)}
        # A participant that was not there in an hour may have the message in another one.
        partly = {at for at in same if len(self._there(at, spans[at])) < len(self._lives)}
        rest = self._deliveries(partly) if about else found.slice(0, 0)
        held = [*self._facts(pa.concat_tables([found, rest]), about)]
        acknowledgements = list(self._acknowledgements(held, about))
        compared, false = compare_messages(self._context, held, outcomes, acknowledgements, orphans)
        compared.findings += invented(false, self._dispatches() if false else ())
        lives = list(self._lives.values())
        ordered = self._whole_logs() if disordered(lives) else ()
        compared.findings += unequal_logs(lives, ordered)
        differences = list(self._differences(held, spans))
        return Comparison(compared, messages, differences)

    def _spans(self) -> dict[int, Hour]:
        """The hours in which a log has something, each as long as in any log."""
        found: dict[int, Hour] = {}
        for hours in self._hours.values():
            for hour_ms, hour in hours.items():
                known = found.get(hour_ms, hour)
                span = min(known.first_ms, hour.first_ms), max(known.last_ms, hour.last_ms)
                found[hour_ms] = Hour(max(known.entries, hour.entries), 0, *span)
        return dict(sorted(found.items()))

    def _is_same(self, hour_ms: int, span: Hour) -> bool:
        """True if all that were there have the same, so that nothing can be found."""
        there = self._there(hour_ms, span)
        logs = {self._hours[whose].get(hour_ms, span)[:2] for whose in there}
        return not self._is_odd and len(logs) == 1 and len({whose[1] for whose in there}) > 1

    def _there(self, hour_ms: int, span: Hour) -> list[Whose]:
        """The lives that have something of an hour, or were there then."""
        is_timed = not any(whose[0] == self._channel_id for whose in self._context.clocks)
        return [
            whose
            for whose, life in self._lives.items()
            if hour_ms in self._hours[whose]
            or not is_timed
            or (
                min(life.opened_ms, life.owed_from_ms) <= span.last_ms
                and span.first_ms <= life.until_ms
            )
        ]

    def _deliveries(self, hours: Collection[int]) -> pa.Table:
        """What logs have of these hours; `life` is a number."""
        chosen = pa.array(sorted(hours), pa.int64())
        numbers = {whose: number for number, whose in enumerate(self._lives)}
        tables = [_SCHEMA.empty_table()]
        for each in self._known if hours else ():
            if not any(self._hours[whose].keys() & hours for whose in each.hours):
                continue
            within = min(hours), max(hours) + HOUR_MS - 1
            table = each.tables("delivery", self._directory, COLUMNS, within=within)
            if each.by_rows is not None:
                life = pa.array([numbers[one[:3]] for one in each.by_rows.deliveries], pa.int64())
            else:
                (whose,) = each.hours
                life = pa.repeat(numbers[whose], table.num_rows)
            table = table.append_column("life", life).cast(_SCHEMA)
            stamps = table["lamport_timestamp"].to_numpy()
            begins = pa.array(stamps - stamps % HOUR_MS)
            tables.append(table.filter(pc.is_in(begins, chosen)))
        return pa.concat_tables(tables).combine_chunks()

    def _is_everywhere(self, found: pa.Table, spans: Mapping[int, Hour]) -> Array:
        """True for messages that need no comparison: all logs that were there have them, with one
        meaning."""
        if self._is_odd or not found.num_rows:
            return np.zeros(found.num_rows, bool)
        if len(self._lives) == 1:  # of a log alone, acknowledged own messages are judged, at most
            (whose,) = self._lives
            is_judged = found["is_own"].to_numpy() & (whose[0] not in self._context.partial)
            return ~is_judged
        ids, *others = (_codes(found[name]) for name in MEANING)
        _, firsts = np.unique(ids, return_index=True)
        model = firsts[ids]
        is_one = np.logical_and.reduce([each == each[model] for each in others])
        stamps = found["lamport_timestamp"].to_numpy()
        begins = stamps - stamps % HOUR_MS
        there = {at: self._there(at, spans[at]) for at in set(begins.tolist())}
        several = {at for at, lives in there.items() if len({each[1] for each in lives}) > 1}
        wanted = np.array([len(there[at]) if at in several else -1 for at in begins.tolist()])
        rows, equal = np.bincount(ids), np.bincount(ids, weights=is_one)
        result: Array = (rows[ids] == wanted) & (equal[ids] == wanted)
        return result

    def _facts(self, found: pa.Table, about: Collection[str]) -> Iterator[Delivery]:
        """The deliveries of some messages. A position counts the rows of the same log."""
        by_rows = {
            (*delivery[:3], delivery.message_id): delivery
            for each in self._known
            if each.by_rows is not None
            for delivery in each.by_rows.deliveries
            if delivery.message_id in about
        }
        chosen = found.filter(pc.is_in(found["message_id"], pa.array(about, pa.string())))
        order = [(name, "ascending") for name in ("life", "lamport_timestamp", "message_id")]
        lives, places = list(self._lives), Counter[Whose]()
        for row in chosen.sort_by(order).to_pylist():
            whose: Whose = lives[row["life"]]
            key = (*whose, row["message_id"])
            yield (
                by_rows.pop(key)
                if key in by_rows
                else Delivery(
                    *whose,
                    message_id=row["message_id"],
                    sender_id=row["sender_id"],
                    lamport_timestamp=row["lamport_timestamp"],
                    content_sha256=row["content_sha256"],
                    at_ms=row["at_ms"],
                    first_segment_id=row["message_id"] if row["is_own"] else None,
                    message_hash=row["message_hash"],
                    source=None if row["is_own"] else row["source"] or "live",
                    missing_since_ms=None,
                    log_position=places[whose],
                )
            )
            places[whose] += 1
        yield from by_rows.values()  # of hours that need not be read

    def _acknowledgements(
        self, held: Sequence[Delivery], about: Collection[str]
    ) -> Iterator[Acknowledgement]:
        """The acknowledgements of own messages among these."""
        own = {(*each[:4],): each.at_ms for each in held if each.first_segment_id is not None}
        wanted = pa.array(about, pa.string())
        for each in self._known if own else ():
            if each.by_rows is not None:
                told = each.by_rows.acknowledgements
                yield from (one for one in told if one.message_id in about)
                continue
            (whose,) = each.hours
            names = "message_id", "at_ms", "source"
            table = each.tables("acknowledgement", self._directory, names)
            table = table.filter(pc.is_in(table["message_id"], wanted))
            for message_id, at_ms, source in zip(
                *(table[name].to_pylist() for name in names), strict=True
            ):
                accepted_ms = own.get((*whose, message_id))
                if accepted_ms is not None:
                    yield Acknowledgement(*whose, message_id, accepted_ms, at_ms, source)

    def _dispatches(self) -> Iterator[Dispatch]:
        for each in self._known:
            if each.by_rows is not None:
                yield from each.by_rows.dispatches
                continue
            (whose,) = each.hours
            yield from (Dispatch(*whose, one, "") for one in each.sent)

    def _whole_logs(self) -> Iterator[Delivery]:
        """All deliveries, with their positions."""
        every = self._deliveries({at for hours in self._hours.values() for at in hours})
        return self._facts(every, {*every["message_id"].to_pylist()})

    def _differences(
        self, held: Sequence[Delivery], spans: Mapping[int, Hour]
    ) -> Iterator[Difference]:
        logs: dict[str, set[Whose]] = {}
        stamps: dict[str, int] = {}
        for each in held:
            logs.setdefault(each.message_id, set()).add(each[:3])
            stamps[each.message_id] = each.lamport_timestamp
        for message_id, having in logs.items():
            hour_ms = stamps[message_id] - stamps[message_id] % HOUR_MS
            for whose in self._there(hour_ms, spans[hour_ms]):
                if whose not in having:
                    yield Difference(hour_ms, message_id, whose[1], len(having))


def _codes(column: pa.ChunkedArray) -> Whole:
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
