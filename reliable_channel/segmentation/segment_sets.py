"""Buffer of incomplete payloads, with limits.

The limits count memory in bytes, overhead included. A sender over its own limit loses segments. If
all senders together are over the common limit, the sender with the most memory loses segments. The
sender loses the segments of its least recently updated payload. If a `Reassembler` with `recall`
can read segments again, an incomplete payload stays without them. If there are still too many
incomplete payloads, those with the fewest received bytes are removed. Senders with invented names
must therefore send as many bytes as they evict.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from .segment import Segment

SEGMENT_OVERHEAD_BYTES: Final = 160
"""Memory (bytes) that is counted for each segment besides its payload. Without this overhead, a
million segments of one byte would count as one megabyte."""
SET_OVERHEAD_BYTES: Final = 2_048
"""Memory (bytes) that is counted for each incomplete payload."""
SLACK: Final = 64
"""Number of outdated ranks that are kept, in addition to twice the number of ranked payloads."""

PayloadKey = tuple[bytes, int | None]
"""Hash and length of a payload, which are equal in all its segments."""


@dataclass(slots=True, eq=False)
class SegmentSet:
    """Segments of one payload that one sender sent."""

    sender_id: str
    payload_hash: bytes
    payload_length: int | None
    data_segment_count: int
    parity_segment_count: int
    updated_ms: int
    number: int
    """Number of the set, in the order in which the sets were begun."""
    chunks: dict[int, bytes | None] = field(default_factory=dict)
    """Parts of the payload by segment index. The value is None for an evicted part that can be read
    again."""
    size_bytes: int = 0
    """Memory that is counted for the set (bytes)."""
    held_bytes: int = 0
    """Memory that becomes free when the parts of the set are evicted (bytes)."""
    received_bytes: int = 0
    """Number of bytes of the payload that have arrived."""
    tokens: dict[int, object] = field(default_factory=dict)
    """Tokens that the caller passed with the segments, by segment index."""

    @property
    def key(self) -> PayloadKey:
        """Hash and length of the payload."""
        return self.payload_hash, self.payload_length

    @property
    def all_tokens(self) -> tuple[object, ...]:
        """Tokens of the segments in the order of arrival."""
        return tuple(self.tokens.values())

    @property
    def is_complete(self) -> bool:
        """True if all data segments have arrived."""
        return len(self.chunks) == self.data_segment_count

    def agrees_with(self, segment: Segment) -> bool:
        """Return True if a segment of the same payload gives the same number of segments."""
        return (self.data_segment_count, self.parity_segment_count) == (
            segment.data_segment_count,
            segment.parity_segment_count,
        )

    def join(self) -> bytes:
        """Return the payload of a complete set."""
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
    """Incomplete payloads of all senders, within limits."""

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
        """Time of the last update of the set that was updated least recently (ms)."""
        return next(iter(self._live)).updated_ms if self._live else None

    def of_payload(self, sender_id: str, segment: Segment) -> Sequence[SegmentSet]:
        """Return the sets of a sender to which a segment may belong, oldest first."""
        share = self._shares.get(sender_id)
        if share is None:
            return ()
        key = segment.original_payload_hash, segment.original_payload_length
        return share.by_key.get(key, ())

    def begin(self, sender_id: str, segment: Segment, now_ms: int) -> SegmentSet:
        """Add an empty set for the payload of `segment`."""
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
        """Add a data segment that is missing in its set, even beyond the limits."""
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
        """Remove a set with all its segments."""
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
        """Remove segments and sets of senders until the limits are kept. Return the sets that were
        removed."""
        evicted = []
        share = self._shares[sender_id]
        while share.held_bytes > self._max_sender_bytes:
            evicted += self._let_go(share)
        while self.size_bytes > self._max_bytes:
            heaviest = self._heaviest()
            evicted += [self._least_received()] if heaviest is None else self._let_go(heaviest)
        return evicted

    def take_idle_since(self, until_ms: int) -> list[SegmentSet]:
        """Remove the sets whose last update was before `until_ms`, and return them."""
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
