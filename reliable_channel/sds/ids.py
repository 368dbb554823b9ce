"""Functions that make message ids, and sets of the newest ids.

The specification requires only that ids are unique.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from hashlib import sha256
from typing import Any, Final, TypeVar

from .changes import NO_RECORDER, Recorder, Row, Table

K = TypeVar("K", bound=Hashable)
PROOF_AGE_MS: Final = 30 * 24 * 60 * 60 * 1000
"""Maximum age (ms) of a timestamp that proves a message id. Sender, time and content are joined
without separators in the hash. With any time allowed, a content that begins with digits could be
read in two ways."""
IdFunction = Callable[[str, int, bytes], str]
"""Function `(sender_id, timestamp_ns, content) -> message_id`. The returned ids must be unique in
the channel."""


def reliable_channel_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """Return the hex keccak-256 of sender, decimal nanoseconds and content (LIP 173, Component
    rules).

    The id differs for equal content of two senders, and for repeated content of one sender.
    """
    data = sender_id.encode() + str(timestamp_ns).encode() + content
    digest: bytes = _keccak()(data=data, digest_bits=256).digest()
    return digest.hex()


@cache
def _keccak() -> Callable[..., Any]:
    from Crypto.Hash import keccak  # loaded with the first message: it loads a parser of C

    return keccak.new


def js_waku_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """Return the hex sha256 of the content alone, as the id function of js-waku does.

    Two senders of equal content thus send one message. Use this function only for comparison with
    js-waku.
    """
    return sha256(content).hexdigest()


def is_proven(
    message_id: str, sender_id: str, content: bytes, sent_at_ns: int | None, now_ms: int
) -> bool:
    """Return True if the id was made from this content by this sender. Finding another content for
    the same id is infeasible.

    `sent_at_ns` is the time at which the transport sent the message. A new message carries the time
    from which its id was made. A participant that receives this first transmission can check the
    id. A repeated message has another timestamp, which proves nothing.
    """
    return (
        sent_at_ns is not None
        and abs(sent_at_ns // 1_000_000 - now_ms) <= PROOF_AGE_MS
        and reliable_channel_id(sender_id, sent_at_ns, content) == message_id
    )


_UNNAMED = Table("", (("message_id", "TEXT"),))


class RecentIds(OrderedDict[str, None]):
    """Set of the ids that were added last. The oldest ids are evicted."""

    # Not a dict: taking the first key of one is linear in the keys deleted before it.

    def __init__(
        self, limit: int, *, recorder: Recorder = NO_RECORDER, table: Table | None = None
    ) -> None:
        super().__init__()
        self._limit = limit
        self._recorder = recorder if table else NO_RECORDER
        self._table = table or _UNNAMED

    def add(self, message_id: str) -> None:
        self[message_id] = None
        self._recorder.put(self._table, message_id)
        if len(self) > self._limit:
            self._recorder.delete(self._table, self.popitem(last=False)[0])

    def discard(self, message_id: str) -> None:
        """Remove an id from the set, if it is there."""
        if message_id in self:
            del self[message_id]
            self._recorder.delete(self._table, message_id)

    def restore(self, rows: Iterable[Row]) -> None:
        """Restore the ids that were saved before a restart."""
        self.update(dict.fromkeys(str(row[0]) for row in rows))


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
