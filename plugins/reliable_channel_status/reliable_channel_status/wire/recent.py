"""Dictionary with a limited number of entries."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(OrderedDict[Key, Value], Generic[Key, Value]):
    """Dictionary with a limited number of entries. Beyond the limit, the entry that was added first
    is evicted."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit: Final = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self._limit:
            self.popitem(last=False)

    def renew(self, key: Key, value: Value) -> None:
        """Put an entry last, even if its key exists already."""
        self[key] = value
        self.move_to_end(key)
