"""Root of a range of the log, which is its message count and fingerprint, for comparing logs.

References reach back only to the newest messages, so an older missing message stays unnoticed.
Equal roots mean equal logs in the range.

A fingerprint is a sum of hashes, because linear algebra can forge an XOR of hashes. The log keeps a
sum for each second of Lamport time. A root therefore reads no message. A new message costs one
addition and one saved row, and a restart reads no messages.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final, NamedTuple

from ..changes import CHANNEL, NO_RECORDER, LogKey, Recorder, Row, typed_table
from ..message import FINGERPRINT_BYTES, LogRoot

SECOND_MS: Final = 1_000
MAX_SECONDS: Final = 5_000
"""Maximum number of seconds that have a sum. If there are more, the oldest tenth is not compared
any more."""
_SUM_BYTES: Final = 32
_MODULUS: Final = 1 << 8 * _SUM_BYTES


class _SumRow(NamedTuple):
    second: int
    messages: int
    hashes: bytes


LOG_SUMS: Final = typed_table("log_sums", _SumRow)
SUMMED_FROM: Final = "summed_from"
"""Key in the table `CHANNEL` of the second from which all messages are counted."""

_Sum = tuple[int, int]
"""How many messages, and the sum of their hashes."""
_NOTHING: Final = (0, 0)


def key_hash(key: LogKey) -> bytes:
    """Return the hash of a message's place in the log, for fingerprints and lists."""
    return sha256(f"{key[0]} {key[1]}".encode()).digest()


class LogSums:
    """Sums of the message hashes of one log, by second."""

    def __init__(self, recorder: Recorder = NO_RECORDER) -> None:
        self._recorder = recorder
        self.start = 0
        """The second from which on all messages of the log are counted."""
        self.changes = 0
        """How often a message entered the log or was taken out."""
        self.max_seconds = MAX_SECONDS
        self._seconds: list[int] = []
        """Those with a sum, ascending."""
        self._sums: dict[int, _Sum] = {}
        self._before: list[_Sum] = [_NOTHING]
        """Of the first 0, 1, 2, … seconds together, as far as they were needed and still hold."""

    def change(self, key: LogKey, sign: int) -> None:
        """Note that a message entered the log (`sign` 1), or was removed (`sign` -1)."""
        self.changes += 1
        second = key[0] // SECOND_MS
        if second < self.start:
            return
        if (sums := self._sums.get(second)) is None:
            sums = _NOTHING
            insort(self._seconds, second)
        count = sums[0] + sign
        total = (sums[1] + sign * int.from_bytes(key_hash(key))) % _MODULUS
        self._sums[second] = count, total
        if self._recorder.records:
            self._recorder.put(LOG_SUMS, second, count, total.to_bytes(_SUM_BYTES))
        if len(self._before) > 1:
            del self._before[self._place(second) + 1 :]
        if len(self._seconds) > self.max_seconds:
            self.forget_until(self._seconds[self.max_seconds // 10] * SECOND_MS)

    def forget_until(self, lamport_timestamp: int) -> None:
        """Note that messages up to this Lamport timestamp left the log, or are not counted."""
        start = lamport_timestamp // SECOND_MS + 1
        if start <= self.start:
            return
        self.start = start
        self._recorder.put(CHANNEL, SUMMED_FROM, start)
        gone = bisect_left(self._seconds, start)
        for second in self._seconds[:gone]:
            del self._sums[second]
            self._recorder.delete(LOG_SUMS, second)
        del self._seconds[:gone]
        self._before = [_NOTHING]

    def restore(self, rows: Sequence[Row], start: int) -> None:
        """Restore the saved sums of the messages from second `start` on."""
        self.start = start
        for second, count, hashes in LOG_SUMS.read(rows):
            self._sums[second] = count, int.from_bytes(hashes)
        self._seconds = sorted(self._sums)

    def root(self, start: int, end: int) -> LogRoot:
        """Return the root of a range of the log. `start` must not be before the first second that
        has a sum."""
        before, first, last = self._before, self._place(start), self._place(max(start, end))
        self._sum_up_to(last)
        count = before[last][0] - before[first][0]
        total = (before[last][1] - before[first][1]) % _MODULUS
        digest = sha256(total.to_bytes(_SUM_BYTES) + count.to_bytes(8)).digest()
        return LogRoot(start, end, count, digest[:FINGERPRINT_BYTES])

    def split(self, start: int, end: int, parts: int) -> list[tuple[int, int]]:
        """Divide a range into at most `parts` parts with about the same number of messages."""
        first, last = self._place(start), self._place(end)
        self._sum_up_to(last)
        before = self._before
        least, count = before[first][0], before[last][0] - before[first][0]
        bounds = [start]
        for number in range(1, parts):
            place = bisect_left(before, (least + number * count // parts,), first, last)
            bound = self._seconds[place] if place < last else end
            if bounds[-1] < bound < end:
                bounds.append(bound)
        return list(pairwise([*bounds, end]))

    def _sum_up_to(self, place: int) -> None:
        before = self._before
        while len(before) <= place:
            count, total = self._sums[self._seconds[len(before) - 1]]
            before.append((before[-1][0] + count, before[-1][1] + total))

    def _place(self, second: int) -> int:
        return bisect_left(self._seconds, second)
