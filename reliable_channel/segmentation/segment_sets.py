"""The bounded buffer of payloads that are not yet complete.

Who makes room is decided in two steps. A sender beyond its own quota loses the set of its own that
was least recently updated. When the buffer as a whole is full, the sender who holds most does: so a
sender that holds no more than an equal share loses nothing to others.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from .segment import Segment

SEGMENT_OVERHEAD_BYTES: Final = 160
"""Charged for each segment on top of its payload: else a million segments of one byte would count
as one megabyte."""
SET_OVERHEAD_BYTES: Final = 2_048
"""Charged for each set."""

PayloadKey = tuple[bytes, int | None]
"""Hash and length of a payload: what makes segments of one sender belong together."""


@dataclass(slots=True, eq=False)
class SegmentSet:
    """The segments of one payload, sent once by one sender."""

    sender_id: str
    payload_hash: bytes
    payload_length: int | None
    data_segment_count: int
    parity_segment_count: int
    updated_ms: int
    chunks: dict[int, bytes] = field(default_factory=dict)
    """Payloads of data segments by index."""
    size_bytes: int = SET_OVERHEAD_BYTES
    """Memory charged."""
    tokens: list[object] = field(default_factory=list)
    """What the caller gave along with its segments."""

    @property
    def key(self) -> PayloadKey:
        """Hash and length of the payload."""
        return self.payload_hash, self.payload_length

    @property
    def is_complete(self) -> bool:
        """Whether all data segments are here."""
        return len(self.chunks) == self.data_segment_count

    def agrees_with(self, segment: Segment) -> bool:
        """Whether a segment of the same payload tells the same counts."""
        return (self.data_segment_count, self.parity_segment_count) == (
            segment.data_segment_count,
            segment.parity_segment_count,
        )

    def join(self) -> bytes:
        """Return the payload of a complete set."""
        return b"".join(self.chunks[index] for index in range(self.data_segment_count))


@dataclass(slots=True)
class _Share:
    """What one sender holds."""

    sets: OrderedDict[SegmentSet, None] = field(default_factory=OrderedDict)
    """Least recently updated first."""
    by_key: dict[PayloadKey, list[SegmentSet]] = field(default_factory=dict)
    """The oldest of equal payloads first."""
    size_bytes: int = 0

    @property
    def oldest(self) -> SegmentSet:
        return next(iter(self.sets))


class SegmentSets:
    """Incomplete sets of all senders, within limits."""

    def __init__(
        self,
        *,
        max_sets: int,
        max_bytes: int,
        max_sender_sets: int,
        max_sender_bytes: int,
    ) -> None:
        self.count = 0
        self.size_bytes = 0
        """Memory charged, payloads and overhead."""
        self._max_sets = max_sets
        self._max_bytes = max_bytes
        self._max_sender_sets = max_sender_sets
        self._max_sender_bytes = max_sender_bytes
        self._shares: dict[str, _Share] = {}

    def __iter__(self) -> Iterator[SegmentSet]:
        """All sets, by sender, least recently updated first."""
        for share in self._shares.values():
            yield from share.sets

    @property
    def oldest_update_ms(self) -> int | None:
        """When the least recently updated set was updated."""
        return min((share.oldest.updated_ms for share in self._shares.values()), default=None)

    def of_payload(self, sender_id: str, segment: Segment) -> Sequence[SegmentSet]:
        """Return the sets of that sender which a segment may belong to, the oldest first."""
        share = self._shares.get(sender_id)
        if share is None:
            return ()
        key = segment.original_payload_hash, segment.original_payload_length
        return share.by_key.get(key, ())

    def begin(self, sender_id: str, segment: Segment, now_ms: int) -> SegmentSet:
        """Add an empty set that `segment` belongs to."""
        segment_set = SegmentSet(
            sender_id,
            segment.original_payload_hash,
            segment.original_payload_length,
            segment.data_segment_count,
            segment.parity_segment_count,
            now_ms,
        )
        share = self._shares.setdefault(sender_id, _Share())
        share.sets[segment_set] = None
        share.by_key.setdefault(segment_set.key, []).append(segment_set)
        share.size_bytes += segment_set.size_bytes
        self.count += 1
        self.size_bytes += segment_set.size_bytes
        return segment_set

    def put(
        self, segment_set: SegmentSet, segment: Segment, now_ms: int, token: object = None
    ) -> None:
        """Keep a data segment that its set lacks, in excess of the limits if need be."""
        share = self._shares[segment_set.sender_id]
        if token is not None:
            segment_set.tokens.append(token)
        segment_set.chunks[segment.index] = segment.payload
        segment_set.updated_ms = now_ms
        share.sets.move_to_end(segment_set)
        added_bytes = len(segment.payload) + SEGMENT_OVERHEAD_BYTES
        segment_set.size_bytes += added_bytes
        share.size_bytes += added_bytes
        self.size_bytes += added_bytes

    def take(self, segment_set: SegmentSet) -> None:
        """Remove a set."""
        share = self._shares[segment_set.sender_id]
        del share.sets[segment_set]
        twins = share.by_key[segment_set.key]
        twins.remove(segment_set)
        if not twins:
            del share.by_key[segment_set.key]
        share.size_bytes -= segment_set.size_bytes
        if not share.sets:
            del self._shares[segment_set.sender_id]
        self.count -= 1
        self.size_bytes -= segment_set.size_bytes

    def make_room(self, sender_id: str) -> list[SegmentSet]:
        """Return to the limits after `put` for that sender; return the sets removed."""
        evicted = []
        share = self._shares[sender_id]
        while len(share.sets) > self._max_sender_sets or share.size_bytes > self._max_sender_bytes:
            evicted.append(self._evict(share))
        while self.count > self._max_sets:
            evicted.append(self._evict(self._heaviest(lambda share: len(share.sets))))
        while self.size_bytes > self._max_bytes:
            evicted.append(self._evict(self._heaviest(lambda share: share.size_bytes)))
        return evicted

    def take_idle_since(self, until_ms: int) -> list[SegmentSet]:
        """Remove the sets that were not updated after `until_ms`."""
        idle = []
        for share in self._shares.values():
            for segment_set in share.sets:
                if segment_set.updated_ms > until_ms:
                    break
                idle.append(segment_set)
        for segment_set in idle:
            self.take(segment_set)
        return idle

    def _heaviest(self, weight: Callable[[_Share], int]) -> _Share:
        return max(
            self._shares.values(),
            key=lambda share: (weight(share), -share.oldest.updated_ms),
        )

    def _evict(self, share: _Share) -> SegmentSet:
        segment_set = share.oldest
        self.take(segment_set)
        return segment_set
