"""A bounded memory of hashes."""

from collections import OrderedDict
from typing import Final

LIMIT: Final = 20_000


class RecentHashes:
    """The hashes that were added last; the oldest are forgotten."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, message_hash: bytes) -> bool:
        return message_hash in self._hashes

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, message_hash: bytes) -> bool:
        """Remember a hash; return whether it is new."""
        new = message_hash not in self._hashes
        self._hashes[message_hash] = None
        self._hashes.move_to_end(message_hash)
        if len(self._hashes) > self._limit:
            self._hashes.popitem(last=False)
        return new
