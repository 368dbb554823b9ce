"""Message ids. The specification only asks that they are unique."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import sha256

from Crypto.Hash import keccak

from .changes import NO_RECORDER, Recorder, Row, Table

IdFunction = Callable[[str, int, bytes], str]
"""`(sender_id, timestamp_ns, content) -> message_id`; must be unique in the channel."""


def reliable_channel_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """Hex keccak-256 of sender, decimal nanoseconds and content (LIP 173, Component rules).

    Unique for equal content from two senders, or twice from one.
    """
    digest = keccak.new(digest_bits=256)
    digest.update(sender_id.encode() + str(timestamp_ns).encode() + content)
    return digest.hexdigest()


def js_waku_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """Hex sha256 of the content alone, as js-waku makes its ids.

    Equal content from two senders is then one message. For comparison with js-waku only.
    """
    return sha256(content).hexdigest()


_UNNAMED = Table("", (("message_id", "TEXT"),))


class RecentIds:
    """The ids that were added last; the oldest make room."""

    def __init__(
        self, limit: int, *, recorder: Recorder = NO_RECORDER, table: Table | None = None
    ) -> None:
        self._limit = limit
        # Not a dict: taking the first key of one is linear in the keys deleted before it.
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._recorder = recorder if table else NO_RECORDER
        self._table = table or _UNNAMED

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, message_id: str) -> None:
        """Remember an id."""
        self._ids[message_id] = None
        self._recorder.put(self._table, message_id)
        if len(self._ids) > self._limit:
            self._recorder.delete(self._table, self._ids.popitem(last=False)[0])

    def restore(self, rows: Iterable[Row]) -> None:
        """Begin with the ids from before a restart."""
        self._ids = OrderedDict.fromkeys(str(row[0]) for row in rows)
