"""Open messages of participants, and alarms about conditions that last too long.

`check --live` raises alarms by the clock of this machine, even if no more lines arrive. The Spark
stream (`live.notices`) watches the same messages.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..lines import CLOSED, LOGGED, OPENED, Line

PATIENCE_MS: Final = 300_000
"""Maximum time without an acknowledgement, a missing message, or a new journal line before an
alarm."""
KEEP_MS: Final = 86_400_000
"""Time for which an open message is watched after it was accepted or first missing."""
MAX_OPEN: Final = 10_000
"""Maximum number of open messages that are watched for one participant. Beyond the maximum, the
oldest open messages are evicted."""
MOST_OPEN: Final = 200_000
"""The same maximum in `check --live`."""
UNACKNOWLEDGED: Final = "unacknowledged"
MISSING: Final = "missing"
SILENT: Final = "silent"
_SETTLES: Final = {
    "message_logged": ("recovered", MISSING),
    "message_lost": ("lost", MISSING),
    "message_acknowledged": ("acknowledged", UNACKNOWLEDGED),
    "delivery_failed": ("failed", UNACKNOWLEDGED),
    "send_failed": ("failed", UNACKNOWLEDGED),
}
"""Kind of the notice for each event that closes an open message, and kind of that message."""
WATCHED: Final = (*_SETTLES, "message_missing")
Key = tuple[str, str, str]
"""Channel, participant and kind of an alarm."""
WatchedLine = tuple[int, str, str | None, str | None, Iterable[str] | None]
"""Columns `at_ms`, `event`, `message_id`, `first_segment_id` and `message_ids` of a line."""


class Notice(NamedTuple):
    """Notice about a message, such as its acknowledgement."""

    kind: str
    message_id: str
    at_ms: int
    after_ms: int


class Open(NamedTuple):
    """Open message, which is not delivered or not acknowledged yet."""

    kind: str
    """Kind of the open message, `UNACKNOWLEDGED` (own) or `MISSING` (known only by reference)."""
    since_ms: int
    is_alarmed: bool = False


@dataclass(slots=True)
class Watch:
    """Open messages of one participant. Time is that of the journal's lines, and continues with
    this machine's clock between lines."""

    open: dict[str, Open] = field(default_factory=dict)
    newest_ms: int = 0
    """Time of the participant's newest line."""
    read_ms: int = 0
    """Time at which the newest line was read, by this machine's clock."""
    max_open: int = MAX_OPEN

    def take(self, lines: Iterable[WatchedLine], now_ms: int) -> Iterator[Notice]:
        """Process new lines of a participant. For each message that the lines close, `take` yields
        a notice."""
        for at_ms, event, message_id, first_segment_id, message_ids in lines:
            if at_ms > self.newest_ms:
                self.newest_ms, self.read_ms = at_ms, now_ms
            one = self.open.get(message_id or "")
            what, kind = _SETTLES.get(event, ("", ""))
            if event == "message_missing":
                for missing_id in message_ids or ():
                    self.open.setdefault(missing_id, Open(MISSING, at_ms))
            elif event == LOGGED and message_id and first_segment_id == message_id:
                self.open[message_id] = Open(UNACKNOWLEDGED, at_ms)
            elif message_id and one is not None and one.kind == kind:
                del self.open[message_id]
                yield Notice(what, message_id, at_ms, at_ms - one.since_ms)
        while len(self.open) > self.max_open:
            yield self._forgotten(next(iter(self.open)), self.newest_ms)

    def due(self, now_ms: int, patience_ms: int) -> Iterator[Notice]:
        """Yield an alarm once for each message that has been open for too long."""
        at_ms = self.newest_ms + max(0, now_ms - self.read_ms)
        for message_id, one in list(self.open.items()):
            after_ms = at_ms - one.since_ms
            if not one.is_alarmed and after_ms > patience_ms:
                self.open[message_id] = one._replace(is_alarmed=True)
                yield Notice(one.kind, message_id, at_ms, after_ms)
            if after_ms > max(KEEP_MS, patience_ms):
                yield self._forgotten(message_id, at_ms)

    def next_ms(self, patience_ms: int) -> int | None:
        """Return the time of the next call of `due` by this machine's clock, or None without open
        messages."""
        keep_ms = max(KEEP_MS, patience_ms)
        times = (
            one.since_ms + (keep_ms if one.is_alarmed else patience_ms)
            for one in self.open.values()
        )
        first_ms = min(times, default=None)
        return None if first_ms is None else first_ms - self.newest_ms + self.read_ms + 1

    def _forgotten(self, message_id: str, at_ms: int) -> Notice:
        since_ms = self.open.pop(message_id).since_ms
        return Notice("forgotten", message_id, at_ms, at_ms - since_ms)


@dataclass(slots=True)
class Followed(Watch):
    """Participant whose journal is followed."""

    max_open: int = MOST_OPEN
    is_closed: bool = False

    def add(self, line: Line) -> None:
        self.newest_ms = max(self.newest_ms, line.at_ms or 0)
        if line.event in (OPENED, CLOSED):
            self.is_closed = line.event == CLOSED
        elif line.event in WATCHED and line.outcome != "restored":
            about = line.message_id, line.first_segment_id, line.message_ids
            deque(self.take([(line.at_ms or 0, line.event, *about)], 0), maxlen=0)

    def count(self, kind: str) -> int:
        return sum(one.kind == kind for one in list(self.open.values()))


class Alarm(NamedTuple):
    """Alarm about a condition at one participant that lasts too long."""

    kind: str
    channel_id: str
    participant_id: str
    messages: int
    """Number of messages that the alarm is about, or 0 for alarms without messages."""
    message_id: str
    """Id of the oldest message that the alarm is about."""
    since_ms: int


def alarms(
    watched: Mapping[tuple[str, str], Followed],
    now_ms: int,
    *,
    patience_ms: int = PATIENCE_MS,
    ahead_ms: Mapping[tuple[str, str], int] = {},
) -> Iterator[Alarm]:
    """Yield an alarm for each condition that lasts longer than `patience_ms` at the time `now_ms`.
    `ahead_ms` is the time by which a participant's clock is certainly ahead."""
    for whose, each in watched.items():
        theirs_ms = now_ms + ahead_ms.get(whose, 0)
        if each.is_closed:
            continue  # nothing is expected of a participant that has left
        late, oldest = Counter[str](), dict[str, tuple[str, int]]()
        for message_id, one in each.open.items():
            if theirs_ms - one.since_ms <= patience_ms:
                break
            late[one.kind] += 1
            oldest.setdefault(one.kind, (message_id, one.since_ms))
        for kind in (UNACKNOWLEDGED, MISSING):
            if kind in oldest:
                yield Alarm(kind, *whose, late[kind], *oldest[kind])
        if theirs_ms - each.newest_ms > patience_ms:
            yield Alarm(SILENT, *whose, 0, "", each.newest_ms)
