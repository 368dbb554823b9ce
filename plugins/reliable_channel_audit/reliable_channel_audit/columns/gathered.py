"""Journal lines of a participant with one log, as columns in the order of the lines.

`joined` joins the columns of several files with one log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from ..journals import Lives, Noted, Participant, Reading
from ..lines import CONTINUED, OPENED
from ..log_order import Hour, together
from .arrays import Array, NeedsRowReader, Whole
from .messages import Ids, Messages

MISSING, REQUESTED, REPAIRED = "message_missing", "repair_requested", "repair_sent"
IDS: Final = frozenset({"message_id", "sender_id", "acknowledged_by"})
"""Columns with numbers from `Gathered.ids`."""
WORDS: Final = frozenset({"source", "outcome", "event"})
"""Columns with numbers from `Gathered.words`."""
DIGESTS: Final = frozenset({"content_sha256", "message_hash"})
"""Columns with rows of 32 bytes."""
FLAGS: Final = frozenset({"is_own", "is_in"})


class Log(NamedTuple):
    """Messages that entered the participant's log, as columns."""

    line: Whole
    at_ms: Whole
    message_id: Whole
    sender_id: Whole
    lamport_timestamp: Whole
    position: Whole
    evicted: Whole
    is_own: Array
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
    sender_id: Whole
    lamport_timestamp: Whole
    content_sha256: Array


class Emitted(NamedTuple):
    line: Whole
    at_ms: Whole
    message_id: Whole
    source: Whole
    acknowledged_by: Whole


class Repairs(NamedTuple):
    """Messages that were missing, were requested, or were sent again for others, as columns."""

    line: Whole
    at_ms: Whole
    event: Whole
    message_id: Whole


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
    repairs: Repairs
    hours: dict[int, Hour]
    """Summary of the message log, by hours of Lamport timestamps."""
    ids: Ids
    words: Ids
    """Numbers for the names of sources, outcomes and repair events."""

    def came_as(self, outcomes: Iterable[str]) -> Array:
        """True for received messages with one of some outcomes."""
        codes = [self.words[each] for each in outcomes if each in self.words]
        found: Array = self.wire.is_in & np.isin(self.wire.outcome, codes)
        return found

    def is_repair(self, event: str) -> Array:
        """True for repair events of one kind."""
        found: Array = self.repairs.event == self.words.get(event, -1)
        return found


TABLES: Final = ("log", "wire", "messages", "received", "emitted", "repairs")


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
    *begins, lines = np.cumsum([0, *(part.lines for part in parts)]).tolist()
    seams = [max(one.times.last_ms - other.times.first_ms, 0) for one, other in pairwise(parts)]
    times = Times(
        parts[0].times.first_ms,
        parts[-1].times.last_ms,
        max(part.times.until_ms for part in parts),
        max(*seams, *(part.times.step_back_ms for part in parts)),
        sum(seams) + sum(part.times.back_ms for part in parts),
    )
    placed = list(zip(parts, begins, strict=True))
    tables = {
        name: concatenated([_from_line(getattr(part, name), begin) for part, begin in placed])
        for name in TABLES
    }
    return first, parts[0]._replace(
        lines=lines,
        times=times,
        hours=reduce(together, [part.hours for part in parts]),
        **tables,
    )


def _from_line(table: Any, begin: int) -> Any:
    """A table whose lines are counted from another number on."""
    return table._replace(line=table.line + begin) if "line" in table._fields else table


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
