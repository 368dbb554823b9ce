"""Agenda of a participant: one time for each kind of work."""

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
    """Check of the incoming buffer for ready and for lost messages."""
    FOLLOW = 5
    """References that wait until the budget permits a search."""
    TRIM = 6
    COPY = 7
    RECONCILIATION = 8
    SEGMENTS = 9
    """Payloads whose missing segment is overdue."""
    RECOVERY = 10
    """Repair requests that the repair policy permits."""


class Agenda:
    """Time of each slot, and the earliest of them.

    The code that plans something sets its slot, so the next deadline needs no search.
    """

    __slots__ = ("_at_ms", "next_ms")

    def __init__(self) -> None:
        self._at_ms = [_NEVER] * len(Slot)
        self.next_ms: int | None = None
        """The first deadline; None while nothing is planned."""

    def plan(self, slot: Slot, at_ms: int | None) -> None:
        """Set the time of a slot. None clears it."""
        self._at_ms[slot] = _NEVER if at_ms is None else at_ms
        first_ms = min(self._at_ms)
        self.next_ms = None if first_ms == _NEVER else first_ms

    def is_planned(self, slot: Slot) -> bool:
        """Return True if the slot has a time."""
        return self._at_ms[slot] != _NEVER

    def is_due(self, slot: Slot, now_ms: int) -> bool:
        """Return True if the time of the slot has come."""
        return self._at_ms[slot] <= now_ms
