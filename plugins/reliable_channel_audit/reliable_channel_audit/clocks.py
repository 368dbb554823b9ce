"""How far clocks of participants are apart, from stamps of messages and when they came.

A message takes time. So the quickest one from A to B shows by how much B's clock is ahead of A's at
most, and the quickest one back by how much it is ahead at least: an interval in which the truth is,
however long the ways are. In the middle of it is the reckoning of NTP (RFC 5905, section 8).

Only a participant's first broadcasts count: a repair is stamped by another clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from .facts import Dispatch, Lag
from .findings import Audit, Finding
from .replay import Life

MAX_OFFSET_MS: Final = 5_000
"""A clock may be so far from those of most others."""
AHEAD: Final = "the clock is {} ms ahead of most others, {} to {}"
BEHIND: Final = "the clock is {} ms behind most others, {} to {}"
"""How findings describe clocks that are not."""


class Offset(NamedTuple):
    """How far a clock is ahead of most others (ms)."""

    offset_ms: int
    least_ms: int
    most_ms: int

    @property
    def certain_ms(self) -> int:
        """So much at least, in either direction; 0 where it may be right, or was set meanwhile."""
        if self.least_ms > self.most_ms:
            return 0
        return max(self.least_ms, 0) + min(self.most_ms, 0)


def own_lags(lags: Iterable[Lag], dispatches: Iterable[Dispatch]) -> list[Lag]:
    """Those of messages that their sender sent out itself, by its journal."""
    sent = {(each.channel_id, each.participant_id, each.message_hash) for each in dispatches}
    return [each for each in lags if (each.channel_id, each.sender_id, each.message_hash) in sent]


def clock_offsets(lags: Iterable[Lag]) -> dict[tuple[str, str], Offset]:
    """By channel and participant, from `own_lags`."""
    least: dict[tuple[str, str, str], int] = {}
    for each in lags:
        pair = each.channel_id, each.participant_id, each.sender_id
        least[pair] = min(each.least_ms, least.get(pair, each.least_ms))
    both: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for (channel_id, participant_id, sender_id), there_ms in least.items():
        back_ms = least.get((channel_id, sender_id, participant_id))
        if back_ms is not None:
            both[channel_id, participant_id].append((there_ms, back_ms))
    return {
        whose: Offset(
            _median(there_ms - back_ms for there_ms, back_ms in pairs) // 2,
            _median(-back_ms for _, back_ms in pairs),
            _median(there_ms for there_ms, _ in pairs),
        )
        for whose, pairs in both.items()
    }


def clocks_apart(
    lives: Sequence[Life], offsets: Mapping[tuple[str, str], Offset]
) -> Iterator[Finding]:
    """Participants whose clock is certainly far from those of most others."""
    last = {life[:2]: life for life in sorted(lives)}
    for whose, life in last.items():
        offset = offsets.get(whose)
        if offset is not None and abs(offset.certain_ms) > MAX_OFFSET_MS:
            detail = _described(offset)
            yield Finding(Audit.CLOCK.value, *life[:3], "", life.until_ms, detail)


def _described(offset: Offset) -> str:
    if offset.offset_ms >= 0:
        return AHEAD.format(*offset)
    return BEHIND.format(-offset.offset_ms, -offset.most_ms, -offset.least_ms)


def _median(values: Iterable[int]) -> int:
    ordered = sorted([0, *values])  # 0: a clock agrees with itself
    return ordered[len(ordered) // 2]
