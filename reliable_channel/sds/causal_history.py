"""The causal history that a message carries: the last entries of the log, encoded once each."""

from collections.abc import Callable

from .log import MessageLog
from .log_entry import LogEntry
from .message import HistoryEntry


class CausalTail:
    """Keeps the encoded form of the newest entries, so that a message of 200 entries is put
    together, not encoded."""

    def __init__(
        self,
        log: MessageLog,
        size: int,
        limit_bytes: int,
        encode: Callable[[HistoryEntry], bytes],
    ) -> None:
        self._log = log
        self._size = size
        self._limit_bytes = limit_bytes
        self._encode = encode
        self._pieces: dict[str, bytes] = {}

    def encoded(self) -> bytes:
        """The last `size` entries of the log, oldest first, as the bytes of a causal history
        field.

        The oldest are left out beyond `limit_bytes`: else one participant with a very long id could
        make everybody's messages too long to send.
        """
        pieces = self._pieces
        tail = self._log.last(self._size)
        if len(pieces) > 4 * self._size:
            self._pieces = pieces = {
                e.message_id: pieces[e.message_id] for e in tail if e.message_id in pieces
            }
        for entry in tail:
            if entry.message_id not in pieces:
                pieces[entry.message_id] = self._encode(history_entry(entry))
        encoded = [pieces[entry.message_id] for entry in tail]
        excess, first = sum(map(len, encoded)) - self._limit_bytes, 0
        while excess > 0:
            excess -= len(encoded[first])
            first += 1
        return b"".join(encoded[first:])

    def forget(self, message_id: str) -> None:
        """Encode an entry anew next time: its retrieval hint has become known."""
        self._pieces.pop(message_id, None)


def history_entry(entry: LogEntry) -> HistoryEntry:
    """The reference to a log entry that other participants are given."""
    return HistoryEntry(entry.message_id, entry.retrieval_hint, entry.sender_id)
