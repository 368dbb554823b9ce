"""Journal lines of a participant with one log, as columns in the order of the lines.

`gathered_part` returns the columns of one file. `joined` joins the columns of several files with
one log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ..journals import MAX_LINE_BYTES, Lives, Noted, Participant, Reading, opened_file
from ..lines import CONTINUED, LOGGED, OPENED, WIRE_IN, WIRE_OUT, ids_in, line_of
from ..log_order import HOUR_MS, SUMS, Hour, together
from .forms import RECEIVED
from .known import Known
from .messages import DIGEST_BYTES, Ids, Messages
from .reading import Block, Payloads, blocks_of
from .tables import Log, Wire
from .wire import Array, NeedsRowReader, Whole

MISSING, REQUESTED, REPAIRED = "message_missing", "repair_requested", "repair_sent"
MAX_MS: Final = 2**53
"""Latest time in columns (in 285,000 years), so that sums of times fit into 64 bits."""


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
    columns: dict[str, list[Any]] = {name: [none] for name, none in _NOTHING.items()}
    repairs: list[RepairEvent] = []
    payloads = Payloads(known)
    with opened_file(path) as file:
        opened = file.readline(MAX_LINE_BYTES)
        at_ms = [np.array([line_of(opened).at_ms or 0])]
        for block in blocks_of(file, 1):
            at_ms.append(block.at_ms)
            columns["log"].append(_log(block, ids))
            columns["wire"].append(_wire(block, words))
            columns["received"].append(_received(block, ids))
            columns["emitted"].append(_emitted(block, ids, words))
            repairs += _repairs(block)
            for texts in block.texts:
                payloads.add(texts)
        payloads.decode()
    times_ms = np.concatenate(at_ms)
    if times_ms.min() < -MAX_MS or times_ms.max() > MAX_MS:
        raise NeedsRowReader("the time of a line is out of range")
    tables = {name: _joined(parts) for name, parts in columns.items()}
    tables["messages"] = _joined(payloads.messages)
    tables["received"] = tables["received"]._replace(
        content_sha256=np.concatenate(payloads.contents)
    )
    times = times_of(times_ms)
    return Gathered(
        *(str(path), opened, len(times_ms), times),
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


def _repairs(block: Block) -> Iterator[RepairEvent]:
    for place, row in block.others:
        if row.event in (MISSING, REQUESTED):
            yield RepairEvent(block.first + place, row.at_ms, row.event, ids_in(row) or [])
        elif row.event == REPAIRED:
            yield RepairEvent(block.first + place, row.at_ms, row.event, [row.message_id or ""])


def _joined(parts: Sequence[Any]) -> Any:
    columns = zip(*parts, strict=True)
    return type(parts[0])(
        *(
            list(chain(*column)) if isinstance(column[0], list) else np.concatenate(column)
            for column in columns
        )
    )


def _log(block: Block, ids: Ids) -> Log:
    lines, places = block.lines, block.lines.of(LOGGED)
    codes = ids.codes(lines.texts("message_id", places))
    own = lines.has("first_segment_id", places)
    segments = np.full(len(places), -1)
    segments[own] = ids.codes(lines.texts("first_segment_id", places[own]))
    if (segments != codes)[own].any():
        raise NeedsRowReader("a payload has several segments")
    message_hashes = np.zeros((len(places), DIGEST_BYTES), np.uint8)
    message_hashes[~own] = lines.hashes("message_hash", places[~own])
    return Log(
        block.first + places,
        block.at_ms[places],
        codes,
        ids.codes(lines.texts("sender_id", places)),
        lines.numbers("lamport_timestamp", places),
        lines.numbers("position", places),
        lines.numbers("evicted", places),
        segments,
        lines.hashes("content_sha256", places),
        message_hashes,
    )


def _wire(block: Block, words: Ids) -> Wire:
    lines, places, came = block.lines, block.lines.of(WIRE_IN, WIRE_OUT), block.lines.of(WIRE_IN)
    is_in = np.isin(places, came)
    outcomes = np.full(len(places), -1)
    outcomes[is_in] = words.codes(lines.texts("outcome", came))
    return Wire(
        block.first + places,
        block.at_ms[places],
        is_in,
        words.codes(lines.texts("source", places)),
        outcomes,
        lines.numbers("timestamp_ns", places),
        lines.hashes("message_hash", places),
    )


def _received(block: Block, ids: Ids) -> Received:
    """Received messages without the hashes of their contents."""
    lines, places = block.lines, block.lines.of(RECEIVED)
    lines.hashes("message_hash", places)  # not needed here, but a line with another text is invalid
    lines.numbers("position", places)
    return Received(
        block.first + places,
        ids.codes(lines.texts("message_id", places)),
        ids.codes(lines.texts("sender_id", places)),
        lines.numbers("lamport_timestamp", places),
        _DIGESTS,
    )


def _emitted(block: Block, ids: Ids, words: Ids) -> Emitted:
    rows = [(place, row) for place, row in block.others if row.event == "message_acknowledged"]
    columns = [
        (block.first + place, row.at_ms, row.message_id, row.source, row.acknowledged_by)
        for place, row in rows
    ]
    if any(None in row for row in columns):
        raise NeedsRowReader("a line lacks a value that other lines of its event have")
    lines, at_ms, message_ids, sources, senders = zip(*columns, strict=True) if rows else ((),) * 5
    codes = ids.codes(message_ids), words.codes(sources), ids.codes(senders)
    return Emitted(np.array(lines, np.int64), np.array(at_ms, np.int64), *codes)


_NO: Final = np.zeros(0, np.int64)
_DIGESTS: Final = np.zeros((0, DIGEST_BYTES), np.uint8)
_NOTHING: Final = {
    "log": Log(*(_NO,) * 8, _DIGESTS, _DIGESTS),
    "wire": Wire(_NO, _NO, _NO.astype(bool), _NO, _NO, _NO, _DIGESTS),
    "received": Received(_NO, _NO, _NO, _NO, _DIGESTS),
    "emitted": Emitted(*(_NO,) * 5),
}
