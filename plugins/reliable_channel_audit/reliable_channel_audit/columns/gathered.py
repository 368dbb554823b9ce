"""Journal lines of a participant with one log, as columns in the order of the lines.

`gathered_part` returns the columns of one file. `joined` joins the columns of several files with
one log.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain, compress, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from ..journals import MAX_LINE_BYTES, Lives, Noted, Participant, Reading, opened_file
from ..lines import CONTINUED, LOGGED, OPENED, WIRE_IN, ids_in, line_of
from ..log_order import HOUR_MS, SUMS, Hour, together
from .known import Known
from .messages import DIGEST_BYTES, Ids, Messages
from .reading import RECEIVED, Lines, Payloads, blocks_of, hashed
from .tables import NOT_GIVEN, Log, Wire
from .wire import Array, NeedsRowReader, Whole

EXTRAORDINARY: Final = frozenset(
    {"message_forged", "message_lost", "message_rejected", "delivery_failed", "send_failed"}
)
"""Events because of which a journal is judged row by row."""
MISSING, REQUESTED, REPAIRED = "message_missing", "repair_requested", "repair_sent"
MAX_MS: Final = 2**53
"""Latest time in columns (in 285,000 years), so that sums of times fit into 64 bits."""
T = TypeVar("T")


class Received(NamedTuple):
    line: Whole
    message_id: Whole
    sender: Whole
    lamport_timestamp: Whole
    content_sha256: Array


class Emitted(NamedTuple):
    line: Whole
    at_ms: Whole
    message_id: Whole
    source: Whole
    acknowledged_by: Whole


class RepairEvent(NamedTuple):
    """Event with messages that are missing, were requested, or were sent again for others."""

    line: int
    at_ms: int
    event: str
    message_ids: list[str]


class Times(NamedTuple):
    """Times of journal lines, and backward steps of the participant's clock."""

    first_ms: int
    last_ms: int
    until_ms: int
    """Latest time of any line."""
    step_back_ms: int
    """Largest backward step of the clock between two lines."""
    back_ms: int
    """Sum of all backward steps of the clock."""


class Gathered(NamedTuple):
    """Columns of a participant's journal, or of a part of it, without unusual events."""

    path: str
    opened: bytes
    """First line of the journal or part."""
    lines: int
    times: Times
    log: Log
    wire: Wire
    messages: Messages
    received: Received
    emitted: Emitted
    repairs: list[RepairEvent]
    hours: dict[int, Hour]
    """Summary of the message log, by hours of Lamport timestamps."""
    ids: Ids
    words: Ids
    """Numbers for the names of sources and outcomes."""

    def of(self, event: str) -> list[RepairEvent]:
        """Return the repair events of one kind."""
        return [each for each in self.repairs if each.event == event]


TABLES: Final = ("log", "wire", "messages", "received", "emitted")


def gathered_part(path: Path, known: Known) -> Gathered:
    """Return one file of a participant's journals. Ids and words become the numbers of `known`,
    and known copies of messages are not decoded.

    Raises:
        NeedsRowReader: lines that are not understood here.
    """
    ids, words = known.ids, known.words
    columns: dict[str, list[Any]] = {
        "log": [_log(_NONE, ids)],
        "wire": [_wire(_NONE, words)],
        "received": [_received(_NONE, ids)],
        "emitted": [_emitted(_NONE, ids, words)],
    }
    repairs: list[RepairEvent] = []
    payloads = Payloads(known)
    with opened_file(path) as file:
        opened = file.readline(MAX_LINE_BYTES)
        at_ms = [line_of(opened).at_ms or 0]
        for block in blocks_of(file, 1):
            if not EXTRAORDINARY.isdisjoint(block.by_event):
                raise NeedsRowReader("the journal has an event that only the row reader can judge")
            at_ms += block.at_ms
            columns["log"].append(_log(block.lines(LOGGED), ids))
            columns["wire"].append(_wire(block.wire, words))
            columns["received"].append(_received(block.lines(RECEIVED), ids))
            columns["emitted"].append(_emitted(block.lines("message_acknowledged"), ids, words))
            for event in (MISSING, REQUESTED, REPAIRED):
                repairs += _repairs(event, block.lines(event))
            payloads.add(block.texts)
        payloads.decode()
    times_ms = np.array(at_ms, np.int64)
    if times_ms.min() < -MAX_MS or times_ms.max() > MAX_MS:
        raise NeedsRowReader("the time of a line is out of range")
    tables = {name: _joined(parts) for name, parts in columns.items()}
    tables["messages"] = _joined(payloads.messages)
    tables["received"] = tables["received"]._replace(
        content_sha256=np.concatenate(payloads.contents)
    )
    times = times_of(times_ms)
    return Gathered(
        *(str(path), opened, len(at_ms), times),
        **tables,
        repairs=repairs,
        hours=_hours(tables["log"], known),
        ids=ids,
        words=words,
    )


def joined(participant: Participant, parts: Sequence[Gathered]) -> tuple[Noted, Gathered]:
    """Return the opening line and the joined columns of several files with one log.

    Raises:
        NeedsRowReader: they are no life, or more than one.
    """
    lives, first = Lives(), None
    for nth, part in enumerate(parts):
        reading = Reading(participant.channel_id, participant.participant_id)
        noted = lives.noted(part.path, 1, reading.line(part.opened))
        if noted.line.event != (CONTINUED if nth else OPENED) or noted.life:
            raise NeedsRowReader(
                "the first line of the file does not begin a journal or the next part of a journal"
            )
        first = first or noted
    if first is None:
        raise NeedsRowReader("the participant has no journal")
    if len(parts) == 1:
        return first, parts[0]
    firsts = np.cumsum([0, *(part.lines for part in parts)]).tolist()
    placed = [_from_line(part, begin) for part, begin in zip(parts, firsts[:-1], strict=True)]
    seams = [max(one.times.last_ms - other.times.first_ms, 0) for one, other in pairwise(parts)]
    times = Times(
        parts[0].times.first_ms,
        parts[-1].times.last_ms,
        max(part.times.until_ms for part in parts),
        max(*seams, *(part.times.step_back_ms for part in parts)),
        sum(seams) + sum(part.times.back_ms for part in parts),
    )
    tables = {name: _joined([getattr(part, name) for part in placed]) for name in TABLES}
    return first, placed[0]._replace(
        lines=firsts[-1],
        times=times,
        repairs=[each for part in placed for each in part.repairs],
        hours=reduce(together, [part.hours for part in placed]),
        **tables,
    )


def _from_line(part: Gathered, begin: int) -> Gathered:
    """A part whose lines are counted from another number on."""
    tables = {
        name: getattr(part, name)._replace(line=getattr(part, name).line + begin)
        for name in TABLES
        if name != "messages"
    }
    repairs = [each._replace(line=each.line + begin) for each in part.repairs]
    return part._replace(repairs=repairs, **tables)


def times_of(at_ms: Whole) -> Times:
    """Return the times of lines that are given in their order."""
    back_ms = -np.minimum(np.diff(at_ms), 0)
    ends = int(at_ms[0]), int(at_ms[-1]), int(at_ms.max())
    return Times(*ends, int(back_ms.max(initial=0)), int(back_ms.sum()))


def _hours(log: Log, known: Known) -> dict[int, Hour]:
    """`hours_of` the log, with the digests added up an hour at a time."""
    digests = known.entry_digests(log)
    hours_ms = log.lamport_timestamp - log.lamport_timestamp % HOUR_MS
    order = np.argsort(hours_ms, kind="stable")
    begins = np.flatnonzero(np.diff(hours_ms[order], prepend=-1))
    if not len(begins):
        return {}
    at_ms, limbs = log.at_ms[order], digests[order].astype(np.int64)
    columns = (
        hours_ms[order][begins],
        np.diff(begins, append=len(order)),
        np.add.reduceat(limbs, begins),
        np.minimum.reduceat(at_ms, begins),
        np.maximum.reduceat(at_ms, begins),
    )
    return {
        hour_ms: Hour(entries, sum(n << 32 * (3 - i) for i, n in enumerate(sums)) % SUMS, *span)
        for hour_ms, entries, sums, *span in zip(*(each.tolist() for each in columns), strict=True)
    }


def _repairs(event: str, lines: Lines) -> list[RepairEvent]:
    if event == REPAIRED:
        found = [[row.message_id or ""] for row in lines.rows]
    else:
        found = [ids_in(row) or [] for row in lines.rows]
    places = zip(lines.numbers.tolist(), lines.rows, found, strict=True)
    return [RepairEvent(line, row.at_ms, event, ids) for line, row, ids in places]


def _joined(parts: Sequence[Any]) -> Any:
    columns = zip(*parts, strict=True)
    return type(parts[0])(
        *(
            list(chain(*column)) if isinstance(column[0], list) else np.concatenate(column)
            for column in columns
        )
    )


def _log(lines: Lines, ids: Ids) -> Log:
    outcomes, lost, missing, first, hashes, hints, *columns = lines.columns(
        *("outcome", "message_ids", "missing", "first_segment_id", "message_hash"),
        *("retrieval_hint", "content_sha256", "message_id", "sender_id"),
        *("lamport_timestamp", "position", "evicted", "at_ms"),
    )
    if any(outcomes) or any(lost) or any(missing) or any(hints):
        raise NeedsRowReader("messages were restored or declared lost")
    contents, message_ids, senders, lamport_timestamps, positions, evicted, at_ms = columns
    own = np.array([each is not None for each in first], bool)
    if (own == np.array([bool(each) for each in hashes], bool)).any():
        raise NeedsRowReader("a log entry has both a segment id and a message hash, or lacks both")
    of_own = [each for each in first if each is not None]
    if of_own != [*compress(message_ids, own.tolist())]:
        raise NeedsRowReader("a payload has several segments")
    segments = np.full(len(first), -1, np.int64)
    segments[own] = ids.codes(of_own)
    message_hashes = np.zeros((len(first), DIGEST_BYTES), np.uint8)
    message_hashes[~own] = _hashes([each for each in hashes if each])
    return Log(
        lines.numbers,
        _numbers(at_ms),
        ids.codes(_all(message_ids)),
        ids.codes(_all(senders)),
        _numbers(_all(lamport_timestamps)),
        _numbers(_all(positions)),
        _numbers(_all(evicted)),
        segments,
        _hashes(_all(contents)),
        message_hashes,
    )


def _wire(lines: Lines, words: Ids) -> Wire:
    events, outcomes, sources, timestamps, hashes, contents, at_ms = lines.columns(
        "event", "outcome", "source", "timestamp_ns", "message_hash", "content_sha256", "at_ms"
    )
    if any(contents) or not all(hashes):
        raise NeedsRowReader(
            "a message on the wire has no hash, or has a hash of its content beside the bytes"
        )
    if NOT_GIVEN in timestamps:
        raise NeedsRowReader("a timestamp has the number that stands for a missing timestamp")
    is_in = np.array([event == WIRE_IN for event in events], bool)
    found = np.full(len(events), -1, np.int64)
    came = [outcome for outcome, event in zip(outcomes, events, strict=True) if event == WIRE_IN]
    found[is_in] = words.codes(_all(came))
    return Wire(
        lines.numbers,
        _numbers(at_ms),
        is_in,
        words.codes(_all(sources)),
        found,
        _numbers([NOT_GIVEN if each is None else each for each in timestamps]),
        _hashes(hashes),
    )


def _received(lines: Lines, ids: Ids) -> Received:
    """Received messages without the hashes of their contents."""
    message_ids, senders, lamport_timestamps = lines.columns(
        "message_id", "sender_id", "lamport_timestamp"
    )
    return Received(
        lines.numbers,
        ids.codes(_all(message_ids)),
        ids.codes(_all(senders)),
        _numbers(_all(lamport_timestamps)),
        np.zeros((0, DIGEST_BYTES), np.uint8),
    )


def _emitted(lines: Lines, ids: Ids, words: Ids) -> Emitted:
    message_ids, sources, senders, at_ms = lines.columns(
        "message_id", "source", "acknowledged_by", "at_ms"
    )
    return Emitted(
        lines.numbers,
        _numbers(at_ms),
        ids.codes(_all(message_ids)),
        words.codes(_all(sources)),
        ids.codes(_all(senders)),
    )


_NONE: Final = Lines(np.zeros(0, np.int64), [])


def _numbers(values: Sequence[int]) -> Whole:
    return np.fromiter(values, np.int64, len(values))


def _hashes(texts: Sequence[str]) -> Array:
    return np.frombuffer(hashed(texts), np.uint8).reshape(-1, DIGEST_BYTES)


def _all(values: Sequence[T | None]) -> Sequence[T]:
    """Values none of which is missing."""
    if None in values:
        raise NeedsRowReader("a line lacks a value that other lines of its event have")
    return cast("Sequence[T]", values)
