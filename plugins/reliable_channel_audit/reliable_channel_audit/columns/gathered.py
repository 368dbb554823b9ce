"""Journal lines of a participant with one log, as columns in the order of the lines.

`joined` joins the columns of several files with one log.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from ..journals import Lives, Noted, Participant, Reading
from ..lines import CONTINUED, OPENED
from ..log_order import HOUR_MS, SUMS, Hour, together
from .known import Known
from .messages import Ids, Messages
from .tables import Log, Wire
from .wire import Array, NeedsRowReader, Whole

MISSING, REQUESTED, REPAIRED = "message_missing", "repair_requested", "repair_sent"


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
    tables = {name: concatenated([getattr(part, name) for part in placed]) for name in TABLES}
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


def hours_in_log(log: Log, known: Known) -> dict[int, Hour]:
    """Return `hours_of` the log, with the digests added up an hour at a time."""
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


def concatenated(parts: Sequence[Any]) -> Any:
    """Return the columns of several tables of one kind, one after the other."""
    columns = zip(*parts, strict=True)
    return type(parts[0])(
        *(
            list(chain(*column)) if isinstance(column[0], list) else np.concatenate(column)
            for column in columns
        )
    )
