"""Log of a participant, reconstructed from the positions in its journal."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import pairwise, repeat
from typing import Final, NamedTuple

Entry = tuple[int, str, str, bytes]
"""Fields of a `Landed` as a plain tuple."""
HOUR_MS: Final = 3_600_000
_SUM_BYTES: Final = 16
SUMS: Final = 1 << 8 * _SUM_BYTES


class Landed(NamedTuple):
    """Message at a position of a log. Equal logs have equal messages in the same order."""

    lamport_timestamp: int
    message_id: str
    sender_id: str
    content_sha256: bytes

    @property
    def key(self) -> tuple[int, str]:
        """Sort key of LIP 109, Lamport timestamp and then message id."""
        return self.lamport_timestamp, self.message_id


class LogOrder(list[Landed]):
    """Log in which each message is at the position that its participant reported.

    Positions count from the oldest kept entry, so the log also counts evicted entries. Entries from
    before the beginning of the journal are unknown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unknown = self._evicted = 0
        self.beyond: Landed | None = None
        """The first message whose position is beyond the end of the log."""
        self._step = (0, 0)
        """When a step was that let something go, and how much had left the log before it."""

    @property
    def is_partial(self) -> bool:
        """True if the log has entries from before the beginning of the journal."""
        return self._unknown > 0

    def go_on(self, log_length: int) -> None:
        """Begin another session of the participant with the given number of entries."""
        self._evicted = 0
        self._unknown = max(0, log_length - len(self))
        del self[: max(0, len(self) - log_length)]

    def lose(self) -> None:
        """Note that entries are in unreadable lines, so later positions are unreliable."""
        self._unknown = max(1, self._unknown)

    def restore(self, entry: Landed) -> None:
        """Add a message that was already in the log when the session began."""
        self._unknown = max(0, self._unknown - 1)
        self.insert(bisect_left(self, entry), entry)

    def land(self, entry: Landed, position: int, evicted: int, at_ms: int) -> None:
        """Insert a message at its reported position.

        A step may insert several messages, and each line has the number of evicted entries after
        it. A position is accepted if it is correct for some moment of the step.
        """
        if evicted != self._evicted:
            self._step = at_ms, self._evicted
            self._evicted = evicted
        place = position + evicted - self._unknown
        if self._unknown:  # what is unknown may stand between, so that its position means little
            place = bisect_left(self, entry)
        elif self._step[0] == at_ms:
            least = place - evicted + self._step[1]
            place = min(max(bisect_left(self, entry), least), place)
        if place > len(self):
            self.beyond = self.beyond or entry
        self.insert(max(0, place), entry)

    def forget(self, message_id: str) -> None:
        """Remove a message that turned out to be forged."""
        self[:] = [entry for entry in self if entry.message_id != message_id]

    @property
    def disordered(self) -> tuple[Landed, Landed] | None:
        """First two neighbours that are not in order of their keys."""
        return next((each for each in pairwise(self) if each[0].key > each[1].key), None)

    def digest(self) -> str:
        """Return the hex digest of all entries, and of their order if it is not `Landed.key`'s."""
        if self.disordered is None:
            return digest_of(hours_of(zip(self, repeat(0), strict=False)))
        return sha256(b"".join(map(entry_digest, self))).hexdigest()


class Hour(NamedTuple):
    """Summary of the log messages in one hour of Lamport timestamps. Logs with the same messages
    have equal `entries` and `total`, in any order of messages."""

    entries: int
    total: int
    """Sum of the messages' digests, modulo 2 ** 128."""
    first_ms: int
    """Time when the first message of the hour entered the log."""
    last_ms: int

    def __add__(self, other: Hour) -> Hour:  # type: ignore[override]
        return Hour(
            self.entries + other.entries,
            (self.total + other.total) % SUMS,
            min(self.first_ms, other.first_ms),
            max(self.last_ms, other.last_ms),
        )


def hours_of(entries: Iterable[tuple[Entry, int]]) -> dict[int, Hour]:
    """Return summaries of log entries and their times, by the beginning of the hour (ms)."""
    times: defaultdict[int, list[int]] = defaultdict(list)
    totals: defaultdict[int, int] = defaultdict(int)
    for entry, entered_ms in entries:
        hour_ms = entry[0] - entry[0] % HOUR_MS
        times[hour_ms].append(entered_ms)
        totals[hour_ms] += int.from_bytes(entry_digest(entry)[:_SUM_BYTES])
    return {
        hour_ms: Hour(len(found), totals[hour_ms] % SUMS, min(found), max(found))
        for hour_ms, found in times.items()
    }


def together(one: Mapping[int, Hour], other: Mapping[int, Hour]) -> dict[int, Hour]:
    """Return the hours of two logs that have no message in common, with the same hours added up."""
    return {
        **one,
        **{at: one[at] + hour if at in one else hour for at, hour in other.items()},
    }


def digest_of(hours: Mapping[int, Hour]) -> str:
    """Return the hex digest of an ordered log, from its hours."""
    every = sum(hours.values(), Hour(0, 0, 0, 0))
    return f"{every.total:032x}-{every.entries}"


def entry_digest(entry: Entry) -> bytes:
    lamport_timestamp, message_id, sender_id, content_sha256 = entry
    text = f"{lamport_timestamp} {len(message_id)} {message_id} {sender_id}\0".encode()
    return sha256(text + content_sha256).digest()
