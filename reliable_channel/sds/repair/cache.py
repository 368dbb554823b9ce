"""Cache of wire messages, from which repair requests are answered."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from ..changes import NO_RECORDER, Recorder, Row
from ..draft import Draft
from ..log.differences import Assembled
from ..log.kept_messages import KeptMessages


class RepairCache:
    """Newest wire messages of all participants, to answer repair requests. The total size in bytes
    is limited.

    Args:
        evicted: called with the id of each saved message that leaves.
    """

    def __init__(
        self,
        limit_bytes: int,
        recorder: Recorder = NO_RECORDER,
        evicted: Callable[[str], object] = lambda message_id: None,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._evicted = evicted
        # Not a dict: taking the first key of one is linear in the keys deleted before it.
        self._messages: OrderedDict[str, bytes | Draft] = OrderedDict()
        self._is_recorded = recorder is not NO_RECORDER
        self._kept = KeptMessages(recorder)
        self.size_bytes = 0

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages

    def add(
        self,
        message_id: str,
        data: bytes | Draft,
        *,
        durably: bool = False,
        own: Assembled | None = None,
    ) -> bool:
        """Add a message to the cache, with `durably` also to the saved state. The oldest messages
        are evicted.

        Return True if the message is new and not too large.
        """
        size_bytes = len(own.data if own else data)
        if size_bytes > self._limit_bytes or message_id in self._messages:
            return False
        if durably and self._is_recorded:
            self._kept.put(message_id, own.data if own else bytes(data), own)
        self._messages[message_id] = data
        self.size_bytes += size_bytes
        if self.size_bytes > self._limit_bytes:
            self._make_room()
        return True

    def replace(self, message_id: str, data: bytes) -> None:
        """Replace the draft of an own message in the cache by the sent bytes. The saved state keeps
        the draft."""
        if (draft := self._messages.get(message_id)) is None:
            return
        if len(data) > self._limit_bytes:
            return self._evict(message_id)
        self._messages[message_id] = data
        self._messages.move_to_end(message_id)
        self.size_bytes += len(data) - len(draft)
        if self.size_bytes > self._limit_bytes:
            self._make_room()

    def discard(self, message_id: str) -> None:
        """Delete a message from the cache and from the saved state."""
        self._let_go(message_id)
        self._kept.remove(message_id, self._messages)

    def get(self, message_id: str) -> bytes | None:
        """Return the bytes of a message, or None if the message is not in the cache."""
        data = self._messages.get(message_id)
        return None if data is None else bytes(data)

    def restore(self, whole: Iterable[Row], differences: Iterable[Row]) -> dict[str, bytes]:
        """Read the messages that were saved before a restart, oldest first. `fill` adds the
        returned messages to the cache."""
        return self._kept.restore(whole, differences)

    def fill(self, restored: Mapping[str, bytes]) -> None:
        """Add the messages that `restore` returned to the cache."""
        for message_id, data in restored.items():
            if not self.add(message_id, data):
                self._evict(message_id)

    def _make_room(self) -> None:
        while self.size_bytes > self._limit_bytes:
            evicted_id, evicted = self._messages.popitem(last=False)
            self.size_bytes -= len(evicted)
            if self._is_recorded:
                self._evicted(evicted_id)
                self._kept.evicted(evicted_id)

    def _evict(self, message_id: str) -> None:
        self._let_go(message_id)
        self._kept.evicted(message_id)

    def _let_go(self, message_id: str) -> None:
        self.size_bytes -= len(self._messages.pop(message_id, b""))
        self._evicted(message_id)
