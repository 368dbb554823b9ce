"""Due times: of each kind of work of a participant, and of messages in a timetable."""

from collections.abc import Callable
from enum import IntEnum
from itertools import islice
from sys import maxsize
from typing import Final

from sortedcontainers import SortedList

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


Key = tuple[int, int, str]
"""Entry of a timetable, as due time, running number and message id."""


def _ignore(first_ms: int | None) -> None:
    """Plan nothing."""


class Timetable:
    """Message ids by due time. Among equal times, the id that was added first comes first.

    Args:
        plan: called with the time of the first id, or None, when another one became the first.
    """

    def __init__(self, plan: Callable[[int | None], object] = _ignore) -> None:
        self._plan = plan
        self.due_ms: dict[str, int] = {}
        self._order: SortedList[Key] = SortedList()
        self._keys: dict[str, Key] = {}
        self._added = 0
        self._first: Key | None = None

    def __contains__(self, message_id: str) -> bool:
        return message_id in self.due_ms

    def __len__(self) -> int:
        return len(self.due_ms)

    def add(self, message_id: str, due_ms: int) -> None:
        """Add a message id that is not in the timetable yet."""
        self._added += 1
        key = (due_ms, self._added, message_id)
        self.due_ms[message_id], self._keys[message_id] = due_ms, key
        self._order.add(key)
        if self._first is None or key < self._first:
            self._first = key
            self._plan(due_ms)

    def remove(self, message_id: str) -> None:
        """Remove a message id, if it is in the timetable."""
        if message_id in self.due_ms:
            del self.due_ms[message_id]
            key = self._keys.pop(message_id)
            self._order.remove(key)
            if key is self._first:
                self._first = self._order[0] if self.due_ms else None
                self._plan(self.first_ms())

    def first_ms(self) -> int | None:
        """Return the earliest due time in the timetable."""
        return None if self._first is None else self._first[0]

    def last(self) -> tuple[int, str] | None:
        """Return the message id that is due last, with its due time."""
        return (self._order[-1][0], self._order[-1][2]) if self._order else None

    def until(self, now_ms: int, most: int) -> list[str]:
        """Return the first message ids that are due by `now_ms`."""
        if not self.due_ms:
            return []
        due = self._order.irange(maximum=(now_ms + 1, 0, ""))
        return [message_id for _, _, message_id in islice(due, most)]


_Rank = tuple[int, Key, str]
"""Number of entries, the key of the one due last, owner: the first to evict comes last."""


class OwnedTimetable(Timetable):
    """Message ids by due time and by owner, for a limited table that evicts entries fairly.

    The owner of an entry is the participant whose message brought it. The owner with the most
    entries loses an entry first, so an equal share is safe from others. Among the entries of an
    owner, the entry that is due last is evicted. Each operation costs a few look-ups in sorted
    lists.
    """

    def __init__(self, plan: Callable[[int | None], object] = _ignore) -> None:
        super().__init__(plan)
        self._owners: dict[str, str] = {}
        self._of_owner: dict[str, SortedList[Key]] = {}
        self._ranks: SortedList[_Rank] = SortedList()

    def add(self, message_id: str, due_ms: int, owner: str = "") -> None:
        """Add a message id that is not in the timetable yet."""
        super().add(message_id, due_ms)
        self._give(message_id, owner)

    def remove(self, message_id: str) -> None:
        """Remove a message id, if it is in the timetable."""
        if message_id in self:
            self._take(message_id)
            super().remove(message_id)

    def claim(self, message_id: str, owner: str) -> bool:
        """Move an entry to another owner if that has fewer entries. Return True if the entry was
        moved.

        In this way, a flooder that is the first to name a message cannot have its entry evicted.
        """
        is_lighter = self.weight_of(owner) < self.weight_of(self._owners[message_id])
        if is_lighter:
            self._take(message_id)
            self._give(message_id, owner)
        return is_lighter

    def weight_of(self, owner: str) -> int:
        """Return the number of entries of an owner."""
        return len(self._of_owner.get(owner, ()))

    def owner_of(self, message_id: str) -> str:
        """Return the owner of an entry."""
        return self._owners[message_id]

    def first_to_evict(self) -> str:
        """Return the entry that is due last, among the entries of the owners with the most."""
        rank: _Rank = self._ranks[-1]
        return rank[1][2]

    def has_no_place(self, due_ms: int, owner: str) -> bool:
        """Return True if `first_to_evict` would return an entry that is added now. The timetable
        must not be empty."""
        most, last, heaviest = self._ranks[-1]
        own_last = self._of_owner[owner][-1] if owner in self._of_owner else None
        is_own_last: bool = own_last is None or due_ms >= own_last[0]
        if owner == heaviest or self.weight_of(owner) == most:
            return is_own_last
        is_last: bool = due_ms >= last[0]
        return self.weight_of(owner) + 1 == most and is_own_last and is_last

    def _give(self, message_id: str, owner: str) -> None:
        entries = self._of_owner.get(owner)
        if entries is None:
            entries = self._of_owner[owner] = SortedList()
        else:
            self._ranks.remove((len(entries), entries[-1], owner))
        entries.add(self._keys[message_id])
        self._ranks.add((len(entries), entries[-1], owner))
        self._owners[message_id] = owner

    def _take(self, message_id: str) -> None:
        owner = self._owners.pop(message_id)
        entries = self._of_owner[owner]
        self._ranks.remove((len(entries), entries[-1], owner))
        entries.remove(self._keys[message_id])
        if entries:
            self._ranks.add((len(entries), entries[-1], owner))
        else:
            del self._of_owner[owner]
