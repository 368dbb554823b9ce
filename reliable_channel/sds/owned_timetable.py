"""A timetable whose entries have owners, for a bounded table that must evict fairly.

An owner is the participant whose message brought an entry. The heaviest owner pays, so that an
owner with no more than an equal share loses nothing to others; and of all that the heaviest owners
have, the entry due last goes, so that the earliest ones stay until they are due.
"""

from sortedcontainers import SortedList

from .timetable import Key, Timetable

_Rank = tuple[int, Key, str]
"""Number of entries, the key of the one due last, owner: the first to evict comes last."""


class OwnedTimetable(Timetable):
    """Message ids by due time and by owner; each operation costs a few look-ups in sorted lists."""

    def __init__(self) -> None:
        super().__init__()
        self._owners: dict[str, str] = {}
        self._of_owner: dict[str, SortedList[Key]] = {}
        self._ranks: SortedList[_Rank] = SortedList()

    def add(self, message_id: str, due_ms: int, owner: str = "") -> None:
        """Note an id that is not noted yet."""
        super().add(message_id, due_ms)
        self._give(message_id, owner)

    def remove(self, message_id: str) -> None:
        """Forget an id, if it is noted."""
        if message_id in self:
            self._take(message_id)
            super().remove(message_id)

    def claim(self, message_id: str, owner: str) -> bool:
        """Give an entry to another owner with fewer entries; return whether that was so.

        Else a flooder that is first to name what others miss would have it evicted with its own.
        """
        is_lighter = self.weight_of(owner) < self.weight_of(self._owners[message_id])
        if is_lighter:
            self._take(message_id)
            self._give(message_id, owner)
        return is_lighter

    def weight_of(self, owner: str) -> int:
        """The number of an owner's entries."""
        return len(self._of_owner.get(owner, ()))

    def owner_of(self, message_id: str) -> str:
        """The owner of an entry."""
        return self._owners[message_id]

    def first_to_evict(self) -> str:
        """The entry due last among those of all owners with the most."""
        rank: _Rank = self._ranks[-1]
        return rank[1][2]

    def has_no_place(self, due_ms: int, owner: str) -> bool:
        """Whether `first_to_evict` would be an entry that was added now; there must be others."""
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
