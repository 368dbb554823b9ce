"""What is due when, by message id."""

from itertools import islice

from sortedcontainers import SortedList

Key = tuple[int, int, str]
"""When an id is due, a running number, the id."""


class Timetable:
    """Message ids by due time; of equal times, the first one added comes first."""

    def __init__(self) -> None:
        self.due_ms: dict[str, int] = {}
        self._order: SortedList[Key] = SortedList()
        self._keys: dict[str, Key] = {}
        self._added = 0

    def __contains__(self, message_id: str) -> bool:
        return message_id in self.due_ms

    def __len__(self) -> int:
        return len(self.due_ms)

    def add(self, message_id: str, due_ms: int) -> None:
        """Note an id that is not noted yet."""
        self._added += 1
        key = (due_ms, self._added, message_id)
        self.due_ms[message_id], self._keys[message_id] = due_ms, key
        self._order.add(key)

    def remove(self, message_id: str) -> None:
        """Forget an id, if it is noted."""
        if message_id in self.due_ms:
            del self.due_ms[message_id]
            self._order.remove(self._keys.pop(message_id))

    def first_ms(self) -> int | None:
        """When the first one is due."""
        return self._order[0][0] if self.due_ms else None

    def last(self) -> tuple[int, str] | None:
        """The one that is due last, after its time."""
        return (self._order[-1][0], self._order[-1][2]) if self._order else None

    def until(self, now_ms: int, most: int) -> list[str]:
        """The first ids that are due by `now_ms`."""
        if not self.due_ms:
            return []
        due = self._order.irange(maximum=(now_ms + 1,))
        return [message_id for _, _, message_id in islice(due, most)]
