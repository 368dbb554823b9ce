"""Set with a maximum size."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


class RecentSet(OrderedDict[K, None]):
    """Set of the keys that were added last. The oldest keys are evicted."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def add(self, key: K) -> bool:
        """Add a key as the newest. Return True if the key is new."""
        if key in self:
            self.move_to_end(key)
            return False
        self[key] = None
        if len(self) > self._limit:
            self.popitem(last=False)
        return True
