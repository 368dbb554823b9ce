"""Finds what two stores lack of each other, by comparing ranges of message ids.

Both sides keep their ids in the order of (timestamp, hash). The side that begins sends a range with
its number of ids and their fingerprint. The other side answers that it has the same, lists its
ids where these are few, or splits the range into parts with their fingerprints; those that differ
are asked next. The side that answers keeps nothing between two requests.

Source: WAKU-SYNC, whose fingerprint is the XOR of the hashes as well. DIVERGES: there both sides
take turns and remember the comparison.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from operator import xor
from typing import Final, TypeAlias

__all__ = [
    "LIST_IDS",
    "MAX_DIFFERENCES",
    "MAX_RANGES",
    "MAX_REQUESTS",
    "PARTS",
    "Listed",
    "Reconciliation",
    "Reply",
    "Split",
    "Summary",
    "SyncId",
    "Window",
]

LIST_IDS: Final = 64
"""Ids of a range that are listed; a range with more is split."""
PARTS: Final = 16
"""Parts of a range that is split."""
MAX_RANGES: Final = 32
"""Ranges of a request."""
MAX_REQUESTS: Final = 64
"""Requests of a comparison; what differs beyond them is found by a later one."""
MAX_DIFFERENCES: Final = 2_000
"""Ids that a comparison finds in each direction."""

SyncId: TypeAlias = tuple[int, bytes]
"""Timestamp in nanoseconds and message hash; with an empty hash, a bound before all of its time."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a side has from `lower` to just before `upper`."""

    lower: SyncId
    upper: SyncId
    count: int
    fingerprint: int
    """XOR of the hashes, each a number in big-endian order."""


@dataclass(frozen=True, slots=True)
class Listed:
    """All ids of a range, in ascending order."""

    ids: Sequence[SyncId]


@dataclass(frozen=True, slots=True)
class Split:
    """A range in parts, in ascending order, without gaps."""

    parts: Sequence[Summary]


Reply: TypeAlias = Listed | Split | None
"""To the summary of a range; None where it is the same."""


class Window:
    """The ids of one store, of some time, at some moment.

    Args:
        ids: in ascending order, none twice.
        since_ns: the time from which `ids` has all.
    """

    def __init__(self, ids: Sequence[SyncId], since_ns: int) -> None:
        self.since_ns: Final = since_ns
        self._ids = ids
        # With the XOR of all hashes before each place, a fingerprint costs two looks.
        hashes = (int.from_bytes(message_hash) for _, message_hash in ids)
        self._before = list(accumulate(hashes, xor, initial=0))

    def __len__(self) -> int:
        return len(self._ids)

    def summary(self, lower: SyncId, upper: SyncId) -> Summary:
        """Return what there is from one bound to just before another."""
        start, end = self._places(lower, upper)
        return Summary(lower, upper, end - start, self._before[start] ^ self._before[end])

    def ids(self, lower: SyncId, upper: SyncId) -> Sequence[SyncId]:
        """Return the ids from one bound to just before another."""
        start, end = self._places(lower, upper)
        return self._ids[start:end]

    def reply(self, asked: Summary) -> Reply:
        """Answer what the other side has in a range."""
        lower, upper = asked.lower, asked.upper
        if self.summary(lower, upper) == asked:
            return None
        start, end = self._places(lower, upper)
        count = end - start
        if count <= LIST_IDS:
            return Listed(self._ids[start:end])
        inner = (self._ids[start + count * part // PARTS] for part in range(1, PARTS))
        return Split([self.summary(*bounds) for bounds in pairwise((lower, *inner, upper))])

    def _places(self, lower: SyncId, upper: SyncId) -> tuple[int, int]:
        start = bisect_left(self._ids, lower)
        return start, max(start, bisect_left(self._ids, upper))


class Reconciliation:
    """One comparison, at the side that began it.

    Send `next_request()` and give the replies to `take`, until it returns nothing.

    Args:
        window: the ids of this side.
        lower: where to begin.
        upper: just before where to end.
    """

    def __init__(self, window: Window, lower: SyncId, upper: SyncId) -> None:
        self.missing: list[SyncId] = []
        """What the other side alone has, oldest first."""
        self.surplus: list[SyncId] = []
        """What this side alone has, oldest first."""
        self.requests = 0
        self._window = window
        self._open = [window.summary(lower, upper)] if lower < upper else []

    def next_request(self) -> list[Summary]:
        """Return the oldest ranges to ask about; none once the comparison has ended."""
        full = min(len(self.missing), len(self.surplus)) >= MAX_DIFFERENCES
        if full or self.requests >= MAX_REQUESTS or not self._open:
            return []
        self.requests += 1
        asked = self._open[-MAX_RANGES:][::-1]
        del self._open[-MAX_RANGES:]
        return asked

    def take(self, asked: Sequence[Summary], replies: Sequence[Reply]) -> None:
        """Take the replies to a request.

        Raises:
            ValueError: they are not replies to this request.
        """
        if len(asked) != len(replies):
            raise ValueError(f"{len(asked)} ranges were asked about, and {len(replies)} answered")
        further: list[Summary] = []
        for summary, reply in zip(asked, replies, strict=True):
            match reply:
                case Listed(ids):
                    self._note(summary, ids)
                case Split(parts):
                    further += self._differing(summary, parts)
        self._open += reversed(further)  # the oldest last, where they are taken from

    def _note(self, asked: Summary, ids: Sequence[SyncId]) -> None:
        ordered = all(first < second for first, second in pairwise(ids))
        inside = not ids or (asked.lower <= ids[0] and ids[-1] < asked.upper)
        if len(ids) > LIST_IDS or not ordered or not inside:
            raise ValueError("a list of ids is too long, not in order, or not of its range")
        ours = self._window.ids(asked.lower, asked.upper)
        known, theirs = set(ours), set(ids)
        self._add(self.missing, (one for one in ids if one not in known))
        self._add(self.surplus, (one for one in ours if one not in theirs))

    def _differing(self, asked: Summary, parts: Sequence[Summary]) -> list[Summary]:
        bounds = [asked.lower, *(part.upper for part in parts)]
        joined = bounds[:-1] == [part.lower for part in parts] and bounds[-1] == asked.upper
        ordered = all(first < second for first, second in pairwise(bounds))
        if not 2 <= len(parts) <= PARTS or not joined or not ordered:
            raise ValueError("the parts of a range are too many, or not the range")
        ours = (self._window.summary(part.lower, part.upper) for part in parts)
        return [mine for mine, part in zip(ours, parts, strict=True) if mine != part]

    @staticmethod
    def _add(found: list[SyncId], more: Iterable[SyncId]) -> None:
        found.extend(islice(more, MAX_DIFFERENCES - len(found)))
