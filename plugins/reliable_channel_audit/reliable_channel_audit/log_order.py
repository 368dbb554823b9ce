"""A participant's log, put together again from the places at which its messages landed."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise, repeat
from typing import Final, NamedTuple

Entry = tuple[int, str, str, bytes]
"""Fields of `Landed`."""
HOUR_MS: Final = 3_600_000
_SUM_BYTES: Final = 16
SUMS: Final = 1 << 8 * _SUM_BYTES


class Landed(NamedTuple):
    """A message in a log. Equal logs have equal ones in equal order."""

    lamport_timestamp: int
    message_id: str
    sender_id: str
    content_sha256: bytes

    @property
    def key(self) -> tuple[int, str]:
        """Where it belongs (LIP 109: Lamport timestamp, then id)."""
        return self.lamport_timestamp, self.message_id


class LogOrder:
    """Puts each message where the participant said it landed.

    Positions count from the oldest entry that is kept, so that what left the log is counted along.
    What was in the log when the journal began is unknown, and stays so.
    """

    def __init__(self) -> None:
        self.entries: list[Landed] = []
        self._unknown = 0
        self._evicted = 0
        self.beyond: Landed | None = None
        """The first message whose position is beyond the end of the log."""
        self._step = (0, 0)
        """When a step was that let something go, and how much had left the log before it."""

    def __iter__(self) -> Iterator[Landed]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def is_partial(self) -> bool:
        """True if there are entries of before the journal began."""
        return self._unknown > 0

    def go_on(self, log_length: int) -> None:
        """Another session begins, with so many entries."""
        self._evicted = 0
        self._unknown = max(0, log_length - len(self.entries))
        del self.entries[: max(0, len(self.entries) - log_length)]

    def lose(self) -> None:
        """Some entries stood in lines that cannot be read: positions mean little from here on."""
        self._unknown = max(1, self._unknown)

    def restore(self, entry: Landed) -> None:
        """Learn of a message that was in the log when the session began."""
        self._unknown = max(0, self._unknown - 1)
        self.entries.insert(bisect_left(self.entries, entry), entry)

    def land(self, entry: Landed, position: int, evicted: int, at_ms: int) -> None:
        """Insert a message.

        In one step several may land, and each line names how much had left the log at the end of
            the step: then it is right where it belongs, if that is a place between those that the
        position means before the step and after it.
        """
        if evicted != self._evicted:
            self._step = at_ms, self._evicted
            self._evicted = evicted
        place = position + evicted - self._unknown
        if self._unknown:  # what is unknown may stand between, so that its position means little
            place = bisect_left(self.entries, entry)
        elif self._step[0] == at_ms:
            least = place - evicted + self._step[1]
            place = min(max(bisect_left(self.entries, entry), least), place)
        if place > len(self.entries):
            self.beyond = self.beyond or entry
        self.entries.insert(max(0, place), entry)

    def forget(self, message_id: str) -> None:
        """Take out a message that was forged."""
        self.entries = [entry for entry in self.entries if entry.message_id != message_id]

    def digest(self) -> str:
        """Hex digest of all entries, and of their order if that is not the one of `Landed.key`."""
        if all(one.key <= other.key for one, other in pairwise(self.entries)):
            return digest_of(hours_of(self.entries, repeat(0)))
        return sha256(b"".join(map(entry_digest, self.entries))).hexdigest()


class Hour(NamedTuple):
    """Messages of a log by an hour of their Lamport timestamps. Logs with the same messages have
    equal `entries` and `total`, in any order."""

    entries: int
    total: int
    """Sum of their digests, modulo 2 ** 128."""
    first_ms: int
    """When the first of them entered."""
    last_ms: int

    def __add__(self, other: Hour) -> Hour:  # type: ignore[override]
        return Hour(
            self.entries + other.entries,
            (self.total + other.total) % SUMS,
            min(self.first_ms, other.first_ms),
            max(self.last_ms, other.last_ms),
        )


def hours_of(entries: Iterable[Entry], at_ms: Iterable[int]) -> dict[int, Hour]:
    """Entries that entered the log at these times, by the begin of their hour (ms)."""
    times: defaultdict[int, list[int]] = defaultdict(list)
    totals: defaultdict[int, int] = defaultdict(int)
    for entry, entered_ms in zip(entries, at_ms, strict=False):
        hour_ms = entry[0] - entry[0] % HOUR_MS
        times[hour_ms].append(entered_ms)
        totals[hour_ms] += int.from_bytes(entry_digest(entry)[:_SUM_BYTES])
    return {
        hour_ms: Hour(len(found), totals[hour_ms] % SUMS, min(found), max(found))
        for hour_ms, found in times.items()
    }


def together(one: Mapping[int, Hour], other: Mapping[int, Hour]) -> dict[int, Hour]:
    """The hours of a log of which both have other messages."""
    return {
        **one,
        **{at: one[at] + hour if at in one else hour for at, hour in other.items()},
    }


def digest_of(hours: Mapping[int, Hour]) -> str:
    """Hex digest of a log that is in order."""
    entries = sum(hour.entries for hour in hours.values())
    total = sum(hour.total for hour in hours.values()) % SUMS
    return f"{total:032x}-{entries}"


def entry_digest(entry: Entry) -> bytes:
    lamport_timestamp, message_id, sender_id, content_sha256 = entry
    text = f"{lamport_timestamp} {len(message_id)} {message_id} {sender_id}\0".encode()
    return sha256(text + content_sha256).digest()


def first_difference(one: Sequence[str], other: Sequence[str]) -> int | None:
    """The first place at which two orders of the same ids differ, or None."""
    return next(
        (i for i, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]), None
    )
