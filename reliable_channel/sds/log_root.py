"""The root of a log: count and fingerprint of a range of it, to compare logs by.

A reference reaches back only as far as the newest messages, so a participant that lacks an older
one cannot know it by reference. Equal roots mean equal logs in the range; others do not.

A fingerprint is a sum of hashes, not their XOR, which linear algebra forges. Sums are kept for each
second of Lamport time, so that a root costs no look at single messages, and a new message one
addition.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from .changes import LogKey

SECOND_MS: Final = 1_000
MAX_SECONDS: Final = 5_000
"""Seconds with messages that sums are kept for; of more, the oldest tenth is compared no more."""
FINGERPRINT_BYTES: Final = 16
_MODULUS: Final = 1 << 256

_Sum = tuple[int, int]
"""How many messages, and the sum of their hashes."""
_NOTHING: Final = (0, 0)


@dataclass(frozen=True, slots=True)
class LogRoot:
    """What stands in a log from second `start` up to and without second `end` of Lamport time."""

    start: int
    end: int
    count: int
    fingerprint: bytes


class LogSums:
    """The sums of one log."""

    def __init__(self) -> None:
        self.start = 0
        """The second from which on all messages of the log are counted."""
        self.changes = 0
        """How often a message entered the log or was taken out."""
        self._seconds: list[int] = []
        """Those with a sum, ascending."""
        self._sums: dict[int, _Sum] = {}
        self._before: list[_Sum] = [_NOTHING]
        """Of the first 0, 1, 2, … seconds together, as far as they were needed and still hold."""

    def add(self, key: LogKey) -> None:
        """A message entered the log."""
        self._change(key, 1)

    def remove(self, key: LogKey) -> None:
        """A message was taken out."""
        self._change(key, -1)

    def forget_until(self, lamport_timestamp: int) -> None:
        """A message with this timestamp, and older ones, are in the log no more, or not counted."""
        start = lamport_timestamp // SECOND_MS + 1
        if start <= self.start:
            return
        self.start = start
        gone = bisect_left(self._seconds, start)
        for second in self._seconds[:gone]:
            del self._sums[second]
        del self._seconds[:gone]
        self._before = [_NOTHING]

    def root(self, start: int, end: int) -> LogRoot:
        """The root of a range; `start` must not lie before that of the sums."""
        before, first, last = self._before, self._place(start), self._place(max(start, end))
        while len(before) <= last:
            count, total = self._sums[self._seconds[len(before) - 1]]
            before.append((before[-1][0] + count, before[-1][1] + total))
        count = before[last][0] - before[first][0]
        total = (before[last][1] - before[first][1]) % _MODULUS
        digest = sha256(total.to_bytes(32) + count.to_bytes(8)).digest()
        return LogRoot(start, end, count, digest[:FINGERPRINT_BYTES])

    def _change(self, key: LogKey, sign: int) -> None:
        self.changes += 1
        lamport_timestamp, message_id = key
        second = lamport_timestamp // SECOND_MS
        if second < self.start:
            return
        if second not in self._sums:
            insort(self._seconds, second)
        count, total = self._sums.get(second, _NOTHING)
        hashed = int.from_bytes(sha256(f"{lamport_timestamp} {message_id}".encode()).digest())
        self._sums[second] = count + sign, total + sign * hashed
        del self._before[self._place(second) + 1 :]
        if len(self._seconds) > MAX_SECONDS:
            self.forget_until(self._seconds[MAX_SECONDS // 10] * SECOND_MS)

    def _place(self, second: int) -> int:
        return bisect_left(self._seconds, second)
