"""Message ids. The specification only requires that they are unique."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, KeysView
from hashlib import sha256
from typing import Final

from .changes import NO_RECORDER, Recorder, Row, Table

PROOF_AGE_MS: Final = 30 * 24 * 60 * 60 * 1000
"""Maximum age of a timestamp that proves an id. Sender, time and content are joined without
separators. With any time allowed, a content that begins with digits could be read in two ways."""
IdFunction = Callable[[str, int, bytes], str]
"""Function `(sender_id, timestamp_ns, content) -> message_id`. Its results must be unique in the
channel."""


def reliable_channel_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """Return the hex keccak-256 of sender, decimal nanoseconds and content (LIP 173, Component
    rules).

    It differs for equal content of two senders, and for repeated content of one sender.
    """
    from Crypto.Hash import keccak  # loaded with the first message: it loads a parser of C

    data = sender_id.encode() + str(timestamp_ns).encode() + content
    return keccak.new(digest_bits=256, data=data).digest().hex()


def js_waku_id(sender_id: str, timestamp_ns: int, content: bytes) -> str:
    """Return the hex sha256 of the content alone, the id function of js-waku.

    Equal content of two senders is then one message. Use it only for comparison with js-waku.
    """
    return sha256(content).hexdigest()


def is_proven(
    message_id: str, sender_id: str, content: bytes, sent_at_ns: int | None, now_ms: int
) -> bool:
    """Return True if an id was made for this content by this sender. Finding two that fit is
    infeasible.

    `sent_at_ns` is the time of sending by the transport. A new message carries the time from which
    its id was made. A participant that receives this first transmission can check the id. A
    repetition has another timestamp and proves nothing.
    """
    return (
        sent_at_ns is not None
        and abs(sent_at_ns // 1_000_000 - now_ms) <= PROOF_AGE_MS
        and reliable_channel_id(sender_id, sent_at_ns, content) == message_id
    )


_UNNAMED = Table("", (("message_id", "TEXT"),))


class RecentIds:
    """Newest added ids. The oldest are evicted."""

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

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def known(self, message_ids: KeysView[str]) -> set[str]:
        """Return the remembered ids out of the given ones."""
        return message_ids & self._ids.keys()

    def add(self, message_id: str) -> None:
        self._ids[message_id] = None
        self._recorder.put(self._table, message_id)
        if len(self._ids) > self._limit:
            self._recorder.delete(self._table, self._ids.popitem(last=False)[0])

    def discard(self, message_id: str) -> None:
        """Remove an id, if it is remembered."""
        if message_id in self._ids:
            del self._ids[message_id]
            self._recorder.delete(self._table, message_id)

    def restore(self, rows: Iterable[Row]) -> None:
        """Restore the ids from before a restart."""
        self._ids = OrderedDict.fromkeys(str(row[0]) for row in rows)
