"""Two bots that answer each other for ever: noticed, and stopped on this side. Pure.

What gives a loop away is that the other one *reacts*: each of its messages follows ours at once, or
answers ours soon. People pause or talk about something else; then the count begins anew.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from ..keys import PublicKey
from ..recent import Recent

Pair: TypeAlias = tuple[str, PublicKey]
"""A chat and somebody in it."""

REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """When an exchange counts as a loop.

    Raises:
        ValueError: a number below 1.
    """

    turns: int = 8
    """So many of the other's messages in a row that came as reactions."""
    reflex_ms: int = 5_000
    """Whoever writes within this time of our message reacts to it."""
    answer_ms: int = 60_000
    """Whoever answers a message of ours (`response_to`) within this time reacts to it."""
    silence_ms: int = 600_000
    """So long the bot does not answer that user in that chat."""

    def __post_init__(self) -> None:
        if min(self.turns, self.reflex_ms, self.answer_ms, self.silence_ms) < 1:
            raise ValueError("each limit of LoopLimits is at least 1")


@dataclass(slots=True)
class _Exchange:
    answered_ms: int
    turns: int = 0
    silent_until_ms: int = 0


class LoopGuard:
    """Counts turns between the bot and each other user of each chat."""

    def __init__(self, limits: LoopLimits, *, remembered: int = REMEMBERED) -> None:
        self._limits = limits
        self._exchanges: Recent[Pair, _Exchange] = Recent(remembered)

    def heard(self, pair: Pair, now_ms: int, *, answers_ours: bool) -> bool:
        """Take note of another's message; return whether it is the one that makes a loop."""
        exchange = self._exchanges.get(pair)
        if exchange is None or now_ms < exchange.silent_until_ms:
            return False
        waited_ms = now_ms - exchange.answered_ms
        limits = self._limits
        if waited_ms > (limits.answer_ms if answers_ours else limits.reflex_ms):
            exchange.turns = 0
            return False
        exchange.turns += 1
        if exchange.turns < limits.turns:
            return False
        exchange.turns = 0
        exchange.silent_until_ms = now_ms + limits.silence_ms
        return True

    def answered(self, pair: Pair, now_ms: int) -> None:
        """Take note that the bot answered somebody."""
        exchange = self._exchanges.get(pair) or _Exchange(now_ms)
        exchange.answered_ms = now_ms
        self._exchanges.renew(pair, exchange)

    def is_silent(self, pair: Pair, now_ms: int) -> bool:
        """Whether the bot does not answer that user there, as a loop was found."""
        exchange = self._exchanges.get(pair)
        return exchange is not None and now_ms < exchange.silent_until_ms
