"""Differences between the clocks of participants, from timestamps and arrival times of messages.

Every message takes some time from its sender to its receiver. The quickest message from A to B
therefore limits how much B's clock is ahead of A's. The quickest message from B to A limits how
much B's clock is behind A's. The true difference lies between both limits, whatever the delays are.
The estimate is the middle of both limits, as in NTP (RFC 5905, section 8).

Only a participant's first broadcasts count, because a repair has another clock's timestamp.

The limits of a clock that was set while it ran contradict each other. In a group of two, or of two
equal halves, no majority of clocks exists. Clocks that are contradictory or without a majority are
unknown, and their times are not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median_high
from typing import Final, NamedTuple

from .facts import Dispatch, Lag
from .findings import Audit, Finding
from .replay import Life

MAX_OFFSET_MS: Final = 5_000
"""Tolerated difference of a clock from most others, and tolerated step of a clock (ms)."""
MAX_WAY_MS: Final = 60_000
"""Maximum time of the quickest live message, beyond which a clock must be wrong."""
WAS_SET: Final = "clocks contradict each other: one was set while it ran"
NO_MAJORITY: Final = "clocks are apart, and no majority of the group agrees"
ONE_WAY: Final = "its clock is far from others, or its messages take minutes"

Whose = tuple[str, str]
"""Channel id and participant id that a clock belongs to."""


class Offset(NamedTuple):
    """Interval in which the lead of a clock over most others lies (ms)."""

    offset_ms: int
    least_ms: int
    most_ms: int
    why: str = ""
    """Reason why the lead of the clock is unknown. For a known lead, `why` is empty."""

    @property
    def certain_ms(self) -> int:
        """Minimum lead, or lag below 0, of the clock (0 if it may be right, or is unknown)."""
        return 0 if self.why else max(self.least_ms, 0) + min(self.most_ms, 0)


def own_lags(lags: Iterable[Lag], dispatches: Iterable[Dispatch]) -> list[Lag]:
    """Return the lags of messages that their own sender broadcast, as its journal shows."""
    sent = {(each.channel_id, each.participant_id, each.message_hash) for each in dispatches}
    return [each for each in lags if (each.channel_id, each.sender_id, each.message_hash) in sent]


def clock_offsets(lags: Iterable[Lag], lives: Iterable[Life] = ()) -> dict[Whose, Offset]:
    """Return the leads of clocks by channel and participant, from `own_lags`. A clock whose times
    are in another unit is unknown."""
    least: defaultdict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for each in lags:
        pair, ways = (each.participant_id, each.sender_id), least[each.channel_id]
        ways[pair] = min(each.least_ms, ways.get(pair, each.least_ms))
    found = {
        (channel_id, name): offset
        for channel_id, ways in least.items()
        for name, offset in _of_channel(ways)
    }
    found |= {life[:2]: Offset(0, 0, 0, life.time_unit) for life in lives if life.time_unit}
    return found


def _of_channel(least: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, Offset]]:
    """The offsets of a group, from the quickest way of each participant from each sender."""
    peers: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in least:
        if (other, one) in least:
            peers[one].add(other)
    stepped = {
        one
        for one, others in peers.items()
        # There and back, messages took less than no time: their intervals exclude each other.
        if 2 * sum(least[one, each] + least[each, one] < -MAX_OFFSET_MS for each in others)
        > len(others)
    }
    rest = {one: others - stepped for one, others in peers.items() if one not in stepped}
    yield from ((one, Offset(0, 0, 0, WAS_SET)) for one in sorted(stepped))
    right = _majority(least, rest)
    for one, others in rest.items():
        known = sorted(others & right)
        if not right:
            yield one, Offset(0, 0, 0, NO_MAJORITY)
        elif known or one in right:
            yield one, _offset(least, one, known, is_right=one in right)
    quickest: dict[str, int] = {}
    for (one, _), ms in least.items():
        quickest[one] = min(ms, quickest.get(one, ms))
    for one in quickest.keys() - peers.keys():
        way_ms = quickest[one]
        if not -MAX_OFFSET_MS <= way_ms <= MAX_WAY_MS:
            yield one, Offset(0, 0, 0, ONE_WAY)


def _majority(
    least: Mapping[tuple[str, str], int], peers: Mapping[str, set[str]]
) -> frozenset[str]:
    """The participants, more than half of them, whose clocks may be equal, if there are such."""
    waiting = set(peers)
    while waiting:
        group, ends = set[str](), {min(waiting)}
        while ends:
            group |= ends
            pairs = [(one, each) for one in ends for each in peers[one] - group]
            both = ((each, min(least[one, each], least[each, one])) for one, each in pairs)
            ends = {each for each, ms in both if ms >= -MAX_OFFSET_MS}
        waiting -= group
        if 2 * len(group) > len(peers):
            return frozenset(group)
    return frozenset()


def _offset(
    least: Mapping[tuple[str, str], int], one: str, others: Sequence[str], *, is_right: bool
) -> Offset:
    """The offset of a clock from those that are right; one that is right agrees with itself."""
    pairs = [(least[one, other], least[other, one]) for other in others]
    pairs += [(0, 0)] if is_right else []
    return Offset(
        median_high(there_ms - back_ms for there_ms, back_ms in pairs) // 2,
        median_high(-back_ms for _, back_ms in pairs),
        median_high(there_ms for there_ms, _ in pairs),
    )


def clocks_apart(lives: Iterable[Life], offsets: Mapping[Whose, Offset]) -> Iterator[Finding]:
    """Yield findings about participants whose clock certainly differs from most others."""
    last = {life[:2]: life for life in sorted(lives)}
    for whose, life in last.items():
        offset = offsets.get(whose)
        if offset is not None and abs(offset.certain_ms) > MAX_OFFSET_MS:
            by_ms, least_ms, most_ms, _ = offset
            where = f"{by_ms} ms ahead of most others, {least_ms} to {most_ms}"
            if by_ms < 0:
                where = f"{-by_ms} ms behind most others, {-most_ms} to {-least_ms}"
            detail = f"the clock is {where}"
            yield Finding(Audit.CLOCK.value, *life[:3], "", life.until_ms, detail)
