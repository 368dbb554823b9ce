"""How often a user may call the bot: token buckets. Pure: the time is given."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Final, Literal, TypeAlias

from reliable_channel.sds.declared import Doc, check

from ..recent import Recent

REMEMBERED: Final = 10_000
"""Buckets that are not full; the one unused for longest goes, and with it what it had used."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many calls at once, and then one whenever `per_ms / calls` have passed.

    Raises:
        ValueError: fewer than one call, or no time.
    """

    calls: int
    per_ms: int

    def __post_init__(self) -> None:
        if self.calls < 1 or self.per_ms < 1:
            raise ValueError(f"{self.calls} calls in {self.per_ms} ms is no limit")


CooldownKey: TypeAlias = Literal["user", "channel", "all"]


@dataclass(frozen=True, slots=True)
class Cooldown:
    """How often one command can be used: `calls` in `per_s` seconds by each user, in each channel,
    or by all users together.

    Raises:
        ValueError: fewer than one call, no time, or `by` is none of them.
    """

    calls: int
    per_s: float
    by: Annotated[CooldownKey, Doc("Calls that are counted together.")] = "user"

    def __post_init__(self) -> None:
        check(self)
        RateLimit(self.calls, round(self.per_s * 1000))

    @property
    def limit(self) -> RateLimit:
        """The same as a limit."""
        return RateLimit(self.calls, round(self.per_s * 1000))


class Buckets:
    """A limit that holds for each key by itself, such as a user."""

    def __init__(self, limit: RateLimit, *, remembered: int = REMEMBERED) -> None:
        self._limit = limit
        self._buckets: Recent[Hashable, tuple[float, int]] = Recent(remembered)

    def take(self, key: Hashable, now_ms: int) -> bool:
        """Whether one more call is within the limit; if so it counts."""
        calls, per_ms = self._limit.calls, self._limit.per_ms
        left, since_ms = self._buckets.get(key, (float(calls), now_ms))
        now_ms = max(now_ms, since_ms)
        left = min(calls, left + (now_ms - since_ms) * calls / per_ms)
        is_allowed = left >= 1
        self._buckets.renew(key, (left - is_allowed, now_ms))
        return is_allowed

    def wait_ms(self, key: Hashable, now_ms: int) -> int:
        """After how long one more call is within the limit; 0 if it is now."""
        calls, per_ms = self._limit.calls, self._limit.per_ms
        left, since_ms = self._buckets.get(key, (float(calls), now_ms))
        left = min(calls, left + max(0, now_ms - since_ms) * calls / per_ms)
        return max(0, ceil((1 - left) * per_ms / calls))
