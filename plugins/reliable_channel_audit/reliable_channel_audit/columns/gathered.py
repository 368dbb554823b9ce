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
from ..log_order import Hour, together
from .arrays import Array, NeedsRowReader, Whole
from .messages import Ids, Messages

NOT_GIVEN: Final = -(2**63)
MISSING, REQUESTED, REPAIRED = "message_missing", "repair_requested", "repair_sent"


class Log(NamedTuple):
    """Messages that entered the participant's log, as columns."""

    line: Whole
    at_ms: Whole
    message_id: Whole
    sender: Whole
    lamport_timestamp: Whole
    position: Whole
    evicted: Whole
    first_segment: Whole
    """Number of the first segment's id (-1 for other participants' messages)."""
    content_sha256: Array
    message_hash: Array
    """Message hashes as rows of 32 bytes (zeros for the participant's own messages)."""


class Wire(NamedTuple):
    """Received and sent messages in a participant's journal, as columns. The contents of received
    and sent messages are in `Messages`."""

    line: Whole
    at_ms: Whole
    is_in: Array
    source: Whole
    outcome: Whole
    """Number of each message's outcome (-1 for sent messages)."""
    timestamp_ns: Whole
    message_hash: Array


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


def concatenated(parts: Sequence[Any]) -> Any:
    """Return the columns of several tables of one kind, one after the other."""
    columns = zip(*parts, strict=True)
    return type(parts[0])(
        *(
            list(chain(*column)) if isinstance(column[0], list) else np.concatenate(column)
            for column in columns
        )
    )
