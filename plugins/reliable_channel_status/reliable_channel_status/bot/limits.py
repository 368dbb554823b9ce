"""Rate limits of users, as token buckets without I/O in which the caller gives the time."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Final, Literal, TypeAlias

from reliable_channel.sds.declared import Bound, Doc, Unit, check

from ..wire.keys import PublicKey
from ..wire.recent import Recent

REMEMBERED: Final = 10_000
"""Maximum number of token buckets that are not full. Beyond the maximum, the least recently used
bucket is removed, so its calls are forgotten."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Rate limit that allows `calls` at once, and then one call every `per_ms / calls`.

    Raises:
        ValueError: fewer than one call, or no time.
    """

    calls: int
    per_ms: int

    def __post_init__(self) -> None:
        if self.calls < 1 or self.per_ms < 1:
            raise ValueError(
                f"a limit needs at least 1 call in at least 1 ms (got {self.calls} calls in "
                f"{self.per_ms} ms)"
            )


CooldownKey: TypeAlias = Literal["user", "channel", "all"]


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Rate limit of a command, with `calls` in `per_s` seconds by each user, in each channel, or by
    all users.

    Raises:
        ValueError: fewer than one call, no time, or `by` is none of them.
    """

    calls: int
    per_s: float
    by: Annotated[
        CooldownKey,
        Doc("Scope in which calls are counted together, which is a user, a channel, or all users."),
    ] = "user"

    def __post_init__(self) -> None:
        check(self)
        RateLimit(self.calls, round(self.per_s * 1000))

    @property
    def limit(self) -> RateLimit:
        """Same rate limit with its times in milliseconds."""
        return RateLimit(self.calls, round(self.per_s * 1000))


class Buckets:
    """Rate limit that is applied to each key separately, such as each user."""

    def __init__(self, limit: RateLimit, *, remembered: int = REMEMBERED) -> None:
        self._limit = limit
        self._buckets: Recent[Hashable, tuple[float, int]] = Recent(remembered)

    def take(self, key: Hashable, now_ms: int) -> bool:
        """Return True if one more call of a key is within the limit, and count the call."""
        calls, per_ms = self._limit.calls, self._limit.per_ms
        left, since_ms = self._buckets.get(key, (float(calls), now_ms))
        now_ms = max(now_ms, since_ms)
        left = min(calls, left + (now_ms - since_ms) * calls / per_ms)
        is_allowed = left >= 1
        self._buckets.renew(key, (left - is_allowed, now_ms))
        return is_allowed

    def wait_ms(self, key: Hashable, now_ms: int) -> int:
        """Return the time until one more call of a key is within the limit (0 if now)."""
        calls, per_ms = self._limit.calls, self._limit.per_ms
        left, since_ms = self._buckets.get(key, (float(calls), now_ms))
        left = min(calls, left + max(0, now_ms - since_ms) * calls / per_ms)
        return max(0, ceil((1 - left) * per_ms / calls))


Pair: TypeAlias = tuple[str, PublicKey]
"""Chat, and a user in that chat."""

REMEMBERED_PAIRS: Final = 10_000
LONG_AGO: Final = -(2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """Conditions under which an exchange counts as a loop.

    Raises:
        ValueError: a number below 1.
    """

    turns: Annotated[
        int,
        Bound(1),
        Unit("rounds"),
        Doc("Number of rounds in a row after which an exchange is a loop."),
    ] = 8
    reflex_ms: Annotated[
        int,
        Bound(1),
        Doc("""Maximum time for each answer of a round, in which the bot and the other user answer
            each other."""),
    ] = 1_000
    silence_ms: Annotated[
        int,
        Bound(1),
        Doc(
            "Time after a loop in which the bot answers that user in that chat only if called "
            "by a command."
        ),
    ] = 600_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(slots=True)
class _Exchange:
    heard_ms: int = LONG_AGO
    answered_ms: int = LONG_AGO
    is_answered: bool = False
    """True if the bot answered since it heard the other last."""
    was_quick: bool = False
    """True if its last answer came within a second."""
    turns: int = 0
    silent_until_ms: int = LONG_AGO


class LoopGuard:
    """Counter of answer rounds between the bot and each user in each chat."""

    def __init__(self, limits: LoopLimits, *, remembered: int = REMEMBERED_PAIRS) -> None:
        self._limits = limits
        self._exchanges: Recent[Pair, _Exchange] = Recent(remembered)

    def heard(self, pair: Pair, now_ms: int) -> bool:
        """Note that another user wrote a message. `heard` returns True if the message completes a
        loop."""
        exchange = self._exchange(pair)
        is_answered = exchange.is_answered
        last_ms = exchange.answered_ms if is_answered else exchange.heard_ms
        exchange.heard_ms, exchange.is_answered = now_ms, False
        if now_ms < exchange.silent_until_ms:
            return False
        if now_ms - last_ms > self._limits.reflex_ms or (is_answered and not exchange.was_quick):
            exchange.turns = 0
            return False
        if not is_answered:  # a second message in the same round
            return False
        exchange.turns += 1
        if exchange.turns < self._limits.turns:
            return False
        exchange.turns = 0
        exchange.silent_until_ms = now_ms + self._limits.silence_ms
        return True

    def answered(self, pair: Pair, now_ms: int) -> None:
        """Note that the bot answered a user."""
        exchange = self._exchange(pair)
        exchange.was_quick = now_ms - exchange.heard_ms <= self._limits.reflex_ms
        exchange.answered_ms, exchange.is_answered = now_ms, True

    def is_silent(self, pair: Pair, now_ms: int) -> bool:
        """Return True if the bot does not answer a user in a chat, because of a loop."""
        exchange = self._exchanges.get(pair)
        return exchange is not None and now_ms < exchange.silent_until_ms

    def _exchange(self, pair: Pair) -> _Exchange:
        exchange = self._exchanges.get(pair) or _Exchange()
        self._exchanges.renew(pair, exchange)
        return exchange
