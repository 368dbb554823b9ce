"""Statistics of a sender in a Store, with its messages, their rate, and messages that it lacks."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from reliable_channel.spi import NIM, SPEC, BloomFilterError, BloomParameters, Message

RATE_WINDOW_MS: Final = 600_000
"""Length of an RLN epoch on Waku's networks (ms)."""
FILTER_EVERY_MS: Final = 10_000
"""Period in which only the first bloom filter of a sender is examined (ms)."""
MAX_RECENT: Final = 1_000
"""Maximum number of the newest messages in a channel that a sender's filters are checked for."""
MAX_TESTED: Final = 20
"""Maximum number of ids that are looked for in a filter, the newest that the sender could have
received."""
_PROFILES: Final = {profile.name: profile for profile in (SPEC, NIM)}


@dataclass(slots=True)
class Sender:
    """Statistics of one sender in a Store. Times are by the sender's clock (ms), and Store does not
    prove them."""

    sender_id: str
    first_ms: int
    last_ms: int
    contents: int = 0
    """Number of the sender's log messages, each counted once."""
    copies: int = 0
    """Number of repeated messages, which are retries of the sender and repairs by others."""
    syncs: int = 0
    total_bytes: int = 0
    max_per_window: int = 0
    """Maximum number of first copies and sync messages in one `RATE_WINDOW_MS`."""
    tested: int = 0
    """Number of ids that were looked for in the sender's filters."""
    lacking: int = 0
    """Number of ids that the sender's filters lacked."""
    last_lacking: int = 0
    """Number of ids that the sender's newest filter lacked."""
    lag_ms: int = 0
    """Age of the oldest id that the sender's newest filter lacked (ms)."""
    max_lag_ms: int = 0
    _window: int = field(default=0, repr=False)
    _in_window: int = field(default=0, repr=False)
    _filter_ms: int | None = field(default=None, repr=False)

    def sent(self, message: Message, at_ms: int, size_bytes: int, *, is_copy: bool) -> None:
        """Count a message of the sender.

        A copy counts neither for times nor for the rate, because it may be another participant's
        repair.
        """
        self.total_bytes += size_bytes
        if is_copy:
            self.copies += 1
            return
        self.first_ms, self.last_ms = min(self.first_ms, at_ms), max(self.last_ms, at_ms)
        if message.content:
            self.contents += 1
        else:
            self.syncs += 1
        window = at_ms // RATE_WINDOW_MS
        if window != self._window:
            self._window, self._in_window = window, 0
        self._in_window += 1
        self.max_per_window = max(self.max_per_window, self._in_window)

    def shows(self, message: Message, profile: str, at_ms: int, recent: Newest) -> None:
        """Compare the bloom filter of a message with messages that the sender could have
        received."""
        is_due = self._filter_ms is None or at_ms - self._filter_ms >= FILTER_EVERY_MS
        if not (message.bloom_filter and is_due):
            return
        self._filter_ms = at_ms
        form = _PROFILES[profile].bloom
        try:
            layout, words = form.read(message.bloom_filter, BloomParameters())
        except BloomFilterError:
            return  # of another size, which a Store does not tell
        due = recent.due(message.sender_id, at_ms)
        named = set(message.causal_ids)
        absent = [
            each.at_ms
            for each in due
            if each.message_id not in named
            and not layout.holds(words, form.hash_pair(each.message_id))
        ]
        self.tested += len(due)
        self.lacking += len(absent)
        self.last_lacking = len(absent)
        self.lag_ms = at_ms - min(absent, default=at_ms)
        self.max_lag_ms = max(self.max_lag_ms, self.lag_ms)


class Recent(NamedTuple):
    """Message of the log that other senders should soon have."""

    at_ms: int
    sender_id: str
    message_id: str


class Newest:
    """Newest messages in a channel's log, by their timestamps."""

    def __init__(self, settle_ms: int) -> None:
        self._settle_ms = settle_ms
        self._messages: list[Recent] = []

    def add(self, message: Recent) -> None:
        """Add a message to the newest messages. Messages are added nearly in order of time."""
        insort(self._messages, message)
        del self._messages[:-MAX_RECENT]

    def due(self, sender_id: str, at_ms: int) -> list[Recent]:
        """Return the newest messages of others that a sender could have received by a time."""
        until_ms = at_ms - self._settle_ms
        others = (each for each in reversed(self._messages) if each.sender_id != sender_id)
        return list(islice((each for each in others if each.at_ms <= until_ms), MAX_TESTED))
