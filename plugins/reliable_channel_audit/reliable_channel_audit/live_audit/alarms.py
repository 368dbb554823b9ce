"""Alarms about conditions that last too long by the clock of this machine. An alarm is raised even
if no more lines arrive."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ..lines import CLOSED, LOGGED, OPENED, Line

PATIENCE_MS: Final = 300_000
"""Maximum time without an acknowledgement, a missing message, or a new journal line before an
alarm."""
MOST_OPEN: Final = 200_000
"""Maximum number of messages that are watched for one participant. Beyond the maximum, the oldest
messages are evicted."""
UNACKNOWLEDGED: Final = "unacknowledged"
MISSING: Final = "missing"
SILENT: Final = "silent"
Key = tuple[str, str, str]
"""Channel, participant and kind of an alarm."""


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


class Open:
    """Open messages of one participant, and the time of its last journal line."""

    def __init__(self) -> None:
        self.last_ms = 0
        self.is_closed = False
        self.unacknowledged: OrderedDict[str, int] = OrderedDict()
        self.missing: OrderedDict[str, int] = OrderedDict()
        self.let_go = 0

    def add(self, line: Line) -> None:
        at_ms, message_id = line.at_ms or 0, line.message_id or ""
        self.last_ms = max(self.last_ms, at_ms)
        match line.event:
            case event if event in (OPENED, CLOSED):
                self.is_closed = event == CLOSED
            case event if event == LOGGED:
                self.missing.pop(message_id, None)
                if line.first_segment_id == message_id and line.outcome != "restored":
                    self._open(self.unacknowledged, message_id, at_ms)
            case "message_acknowledged" | "delivery_failed" | "send_failed":
                self.unacknowledged.pop(message_id, None)
            case "message_lost":
                self.missing.pop(message_id, None)
            case "message_missing":
                for missing_id in line.message_ids or ():
                    self._open(self.missing, missing_id, at_ms)

    def _open(self, where: OrderedDict[str, int], message_id: str, at_ms: int) -> None:
        where.setdefault(message_id, at_ms)
        if len(where) > MOST_OPEN:
            where.popitem(last=False)
            self.let_go += 1


def alarms(
    watched: Mapping[tuple[str, str], Open],
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
        for kind, items in ((UNACKNOWLEDGED, each.unacknowledged), (MISSING, each.missing)):
            late = 0
            for since_ms in items.values():
                if theirs_ms - since_ms <= patience_ms:
                    break
                late += 1
            if late:
                oldest = next(iter(items))
                yield Alarm(kind, *whose, late, oldest, items[oldest])
        if theirs_ms - each.last_ms > patience_ms:
            yield Alarm(SILENT, *whose, 0, "", each.last_ms)
