"""How far clocks of participants are apart, from stamps of messages and when they came.

The quickest message from A to B seems to take its latency and what B's clock is ahead of A's; the
quickest one back its latency less that. Half of the difference is how far B's clock is ahead, as
far as both ways take equally long (the reckoning of NTP, RFC 5905, section 8).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from .facts import Lag
from .findings import Audit, Finding
from .replay import Life

MOST_OFFSET_MS: Final = 5_000
"""A clock may be so far from those of most others."""
APART: Final = "the clock is {} ms ahead of most others"
"""How a finding tells of one that is not."""


def clock_offsets(lags: Iterable[Lag]) -> dict[tuple[str, str], int]:
    """By channel and participant how far its clock is ahead of the median one (ms)."""
    least: dict[tuple[str, str, str], int] = {}
    for each in lags:
        pair = each.channel_id, each.participant_id, each.sender_id
        least[pair] = min(each.least_ms, least.get(pair, each.least_ms))
    doubled: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for (channel_id, participant_id, sender_id), there_ms in least.items():
        back_ms = least.get((channel_id, sender_id, participant_id))
        if back_ms is not None:
            doubled[channel_id, participant_id].append(there_ms - back_ms)
    return {
        whose: sorted([0, *each])[len(each) // 2] // 2  # 0: a clock agrees with itself
        for whose, each in doubled.items()
    }


def clocks_apart(lives: Sequence[Life], lags: Iterable[Lag]) -> Iterator[Finding]:
    """Participants whose clock is far from those of most others."""
    offsets = clock_offsets(lags)
    last = {life[:2]: life for life in sorted(lives)}
    for whose, life in last.items():
        offset_ms = offsets.get(whose, 0)
        if abs(offset_ms) > MOST_OFFSET_MS:
            yield Finding(Audit.CLOCK.value, *life[:3], "", life.until_ms, APART.format(offset_ms))
