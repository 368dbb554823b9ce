"""Agenda of a participant, with one due time for each kind of work."""

from enum import IntEnum
from sys import maxsize
from typing import Final

_NEVER: Final = maxsize


class Slot(IntEnum):
    """Kind of work that waits for its time."""

    SYNC = 0
    RETRY = 1
    REPAIR_REQUEST = 2
    REPAIR_ANSWER = 3
    SWEEP = 4
    """Check of the incoming buffer for messages that are ready or lost."""
    FOLLOW = 5
    """Wait of references until the budget permits a search."""
    TRIM = 6
    COPY = 7
    RECONCILIATION = 8
    SEGMENTS = 9
    """Check for payloads whose missing segment is overdue."""
    RECOVERY = 10
    """Repair requests that the repair policy permits now."""


class Agenda:
    """Due time of each kind of work, and the earliest of these times.

    Code that plans work sets its due time, so the next deadline needs no search.
    """

    __slots__ = ("_at_ms", "next_ms")

    def __init__(self) -> None:
        self._at_ms = [_NEVER] * len(Slot)
        self.next_ms: int | None = None
        """The first deadline; None while nothing is planned."""

    def plan(self, slot: Slot, at_ms: int | None) -> None:
        """Set the due time of a kind of work. If `at_ms` is None, the due time is removed."""
        self._at_ms[slot] = _NEVER if at_ms is None else at_ms
        first_ms = min(self._at_ms)
        self.next_ms = None if first_ms == _NEVER else first_ms

    def is_planned(self, slot: Slot) -> bool:
        """Return True if this kind of work is planned."""
        return self._at_ms[slot] != _NEVER

    def is_due(self, slot: Slot, now_ms: int) -> bool:
        """Return True if this kind of work is due."""
        return self._at_ms[slot] <= now_ms
