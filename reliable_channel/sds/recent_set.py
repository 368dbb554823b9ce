"""Memory with a limit."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


class RecentSet(OrderedDict[K, None]):
    """Keys that were added last. The oldest are evicted."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def add(self, key: K) -> bool:
        """Add a key as the newest. Return True if it is new."""
        if key in self:
            self.move_to_end(key)
            return False
        self[key] = None
        if len(self) > self._limit:
            self.popitem(last=False)
        return True
