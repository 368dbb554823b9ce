"""The bounded buffer of payloads that are not yet complete.

Limits count bytes, overhead included, so that a set costs what it takes. A sender beyond its quota
makes room, and where all together are beyond theirs, the sender that holds most does: the chunks of
its least recently updated set go. Where chunks can be read again when the set is complete (a
`Reassembler` with `recall`), the set stays without them. Only then, if there are more sets than the
limit has room for, sets go whole: first those of which least has arrived, so that a crowd of
invented names must send as much as what it pushes out.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from .segment import Segment

SEGMENT_OVERHEAD_BYTES: Final = 160
"""Charged for each segment on top of its payload: else a million segments of one byte would count
as one megabyte."""
SET_OVERHEAD_BYTES: Final = 2_048
"""Charged for each set."""
SLACK: Final = 64
"""Outdated ranks that are kept beside twice the number of what is ranked."""

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
    number: int
    """Of all sets, in the order in which they began."""
    chunks: dict[int, bytes | None] = field(default_factory=dict)
    """Payloads of data segments by index; None for one that was let go to be read again."""
    size_bytes: int = 0
    """Memory charged."""
    held_bytes: int = 0
    """Of that, what comes free when its chunks are let go."""
    received_bytes: int = 0
    """What arrived of it."""
    tokens: dict[int, object] = field(default_factory=dict)
    """What the caller gave along with its segments, by index."""

    @property
    def key(self) -> PayloadKey:
        """Hash and length of the payload."""
        return self.payload_hash, self.payload_length

    @property
    def all_tokens(self) -> tuple[object, ...]:
        """What came along, in the order of arrival."""
        return tuple(self.tokens.values())

    @property
    def is_complete(self) -> bool:
        """True if all data segments are here."""
        return len(self.chunks) == self.data_segment_count

    def agrees_with(self, segment: Segment) -> bool:
        """Return True if a segment of the same payload has the same counts."""
        return (self.data_segment_count, self.parity_segment_count) == (
            segment.data_segment_count,
            segment.parity_segment_count,
        )

    def join(self) -> bytes:
        """Return the payload of a complete set, all of whose chunks are here."""
        chunks = (self.chunks[index] for index in range(self.data_segment_count))
        return b"".join(chunk for chunk in chunks if chunk is not None)


@dataclass(slots=True)
class _Share:
    """What one sender holds."""

    sets: OrderedDict[SegmentSet, None] = field(default_factory=OrderedDict)
    """Least recently updated first."""
    holding: OrderedDict[SegmentSet, None] = field(default_factory=OrderedDict)
    """Those with chunks, likewise."""
    by_key: dict[PayloadKey, list[SegmentSet]] = field(default_factory=dict)
    """The oldest of equal payloads first."""
    held_bytes: int = 0
    ranked_bytes: int = 0
    """What its rank was noted with; `held_bytes` never exceeds it."""


class SegmentSets:
    """Incomplete sets of all senders, within limits."""

    def __init__(self, *, max_bytes: int, max_sender_bytes: int, keeps_outlines: bool) -> None:
        self.count = 0
        self.size_bytes = 0
        """Memory charged, payloads and overhead."""
        self._max_bytes = max_bytes
        self._max_sender_bytes = max_sender_bytes
        self._keeps_outlines = keeps_outlines
        """True if a set stays when its chunks go."""
        self._shares: dict[str, _Share] = {}
        self._begun = 0
        self._ranks: list[tuple[int, str]] = []
        """A heap of held bytes below zero, and sender; no sender ranks above its latest rank."""
        self._least: list[tuple[int, int, SegmentSet]] = []
        """A heap of received bytes, number and set; of each set the latest entry counts."""
        self._live: OrderedDict[SegmentSet, None] = OrderedDict()
        """All sets, least recently updated first."""

    def __iter__(self) -> Iterator[SegmentSet]:
        """All sets, by sender, least recently updated first."""
        for share in self._shares.values():
            yield from share.sets

    @property
    def oldest_update_ms(self) -> int | None:
        """When the least recently updated set was updated."""
        return next(iter(self._live)).updated_ms if self._live else None

    def of_payload(self, sender_id: str, segment: Segment) -> Sequence[SegmentSet]:
        """Return the sets of that sender which a segment may belong to, the oldest first."""
        share = self._shares.get(sender_id)
        if share is None:
            return ()
        key = segment.original_payload_hash, segment.original_payload_length
        return share.by_key.get(key, ())

    def begin(self, sender_id: str, segment: Segment, now_ms: int) -> SegmentSet:
        """Add an empty set that `segment` belongs to."""
        self._begun += 1
        segment_set = SegmentSet(
            sender_id,
            segment.original_payload_hash,
            segment.original_payload_length,
            segment.data_segment_count,
            segment.parity_segment_count,
            now_ms,
            self._begun,
        )
        share = self._shares.setdefault(sender_id, _Share())
        share.sets[segment_set] = self._live[segment_set] = None
        share.by_key.setdefault(segment_set.key, []).append(segment_set)
        self.count += 1
        self._charge(share, segment_set, SET_OVERHEAD_BYTES, stays=self._keeps_outlines)
        heappush(self._least, (0, segment_set.number, segment_set))
        if len(self._least) > 2 * self.count + SLACK:
            self._least = [(s.received_bytes, s.number, s) for s in self._live]
            heapify(self._least)
        return segment_set

    def put(
        self, segment_set: SegmentSet, segment: Segment, now_ms: int, token: object = None
    ) -> None:
        """Keep a data segment that its set lacks, in excess of the limits if need be."""
        share = self._shares[segment_set.sender_id]
        segment_set.chunks[segment.index] = segment.payload
        if token is not None:
            segment_set.tokens[segment.index] = token
        segment_set.updated_ms = now_ms
        segment_set.received_bytes += len(segment.payload)
        share.sets.move_to_end(segment_set)
        self._live.move_to_end(segment_set)
        share.holding[segment_set] = None
        share.holding.move_to_end(segment_set)
        self._charge(share, segment_set, len(segment.payload), stays=False)
        self._charge(share, segment_set, SEGMENT_OVERHEAD_BYTES, stays=self._keeps_outlines)
        if share.held_bytes > share.ranked_bytes:
            share.ranked_bytes = share.held_bytes
            heappush(self._ranks, (-share.held_bytes, segment_set.sender_id))
            if len(self._ranks) > 2 * len(self._shares) + SLACK:
                self._rank_anew()

    def take(self, segment_set: SegmentSet) -> None:
        """Remove a set."""
        share = self._shares[segment_set.sender_id]
        del share.sets[segment_set], self._live[segment_set]
        share.holding.pop(segment_set, None)
        share.held_bytes -= segment_set.held_bytes
        twins = share.by_key[segment_set.key]
        twins.remove(segment_set)
        if not twins:
            del share.by_key[segment_set.key]
        if not share.sets:
            del self._shares[segment_set.sender_id]
        self.count -= 1
        self.size_bytes -= segment_set.size_bytes

    def make_room(self, sender_id: str) -> list[SegmentSet]:
        """Return to the limits after `put` for that sender; return the sets removed."""
        evicted = []
        share = self._shares[sender_id]
        while share.held_bytes > self._max_sender_bytes:
            evicted += self._let_go(share)
        while self.size_bytes > self._max_bytes:
            heaviest = self._heaviest()
            evicted += [self._least_received()] if heaviest is None else self._let_go(heaviest)
        return evicted

    def take_idle_since(self, until_ms: int) -> list[SegmentSet]:
        """Remove the sets that were not updated after `until_ms`."""
        idle = []
        while self._live and (oldest := next(iter(self._live))).updated_ms <= until_ms:
            self.take(oldest)
            idle.append(oldest)
        return idle

    def _charge(
        self, share: _Share, segment_set: SegmentSet, more_bytes: int, *, stays: bool
    ) -> None:
        """Charge memory, which `stays` where the set does though its chunks go."""
        segment_set.size_bytes += more_bytes
        self.size_bytes += more_bytes
        if not stays:
            segment_set.held_bytes += more_bytes
            share.held_bytes += more_bytes

    def _let_go(self, share: _Share) -> list[SegmentSet]:
        """Let go of the chunks of the sender's least recently updated set; return it if it went
        with them."""
        segment_set = next(iter(share.holding))
        if not self._keeps_outlines:
            self.take(segment_set)
            return [segment_set]
        del share.holding[segment_set]
        segment_set.chunks = dict.fromkeys(segment_set.chunks)
        self._charge(share, segment_set, -segment_set.held_bytes, stays=False)
        return []

    def _heaviest(self) -> _Share | None:
        """The sender with most of what can be evicted; None where there is nothing."""
        while self._ranks:
            noted, sender_id = self._ranks[0]
            share = self._shares.get(sender_id)
            if share is None or share.ranked_bytes != -noted or not share.holding:
                heappop(self._ranks)  # gone, or ranked again since
                if share is not None and share.ranked_bytes == -noted:
                    share.ranked_bytes = 0
            elif share.held_bytes == -noted:
                return share
            else:
                share.ranked_bytes = share.held_bytes
                heapreplace(self._ranks, (-share.held_bytes, sender_id))
        return None

    def _rank_anew(self) -> None:
        for share in self._shares.values():
            share.ranked_bytes = share.held_bytes
        self._ranks = [(-share.held_bytes, owner) for owner, share in self._shares.items()]
        heapify(self._ranks)

    def _least_received(self) -> SegmentSet:
        """Remove the set of which least arrived, the oldest of equal ones."""
        while True:
            noted, number, segment_set = self._least[0]
            if segment_set not in self._live:
                heappop(self._least)
            elif segment_set.received_bytes != noted:
                heapreplace(self._least, (segment_set.received_bytes, number, segment_set))
            else:
                heappop(self._least)
                self.take(segment_set)
                return segment_set
