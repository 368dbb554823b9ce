"""A bounded memory."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class RecentSet(Generic[K]):
    """The keys that were added last; the oldest are forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._keys: OrderedDict[K, None] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: K) -> bool:
        """Remember a key as the newest; return whether it is new."""
        keys = self._keys
        if key in keys:
            keys.move_to_end(key)
            return False
        keys[key] = None
        if len(keys) > self._limit:
            keys.popitem(last=False)
        return True
