"""Two bots that answer each other for ever: noticed, and stopped on this side. Pure.

What gives a loop away is speed on both sides: each answers the other within a second, again and
again. People do not, and a slower loop is not a flood; a call of a command is not counted at all.
"""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from reliable_channel.sds.declared import Bound, Doc, Unit, check

from ..keys import PublicKey
from ..recent import Recent

Pair: TypeAlias = tuple[str, PublicKey]
"""A chat and a user in it."""

REMEMBERED: Final = 10_000
LONG_AGO: Final = -(2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """When an exchange counts as a loop.

    Raises:
        ValueError: a number below 1.
    """

    turns: Annotated[
        int, Bound(1), Unit("rounds"), Doc("Rounds in a row after which an exchange is a loop.")
    ] = 8
    reflex_ms: Annotated[
        int,
        Bound(1),
        Doc("""A round counts if the bot answered the other, and the other then the bot, each
        within this time."""),
    ] = 1_000
    silence_ms: Annotated[
        int,
        Bound(1),
        Doc("For this long the bot does not answer that user in that chat, except to commands."),
    ] = 600_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(slots=True)
class _Exchange:
    heard_ms: int = LONG_AGO
    answered_ms: int = LONG_AGO
    is_answered: bool = False
    """Whether the bot answered since it heard the other last."""
    was_quick: bool = False
    """Whether its last answer came within a second."""
    turns: int = 0
    silent_until_ms: int = LONG_AGO


class LoopGuard:
    """Counts rounds between the bot and each other user of each chat."""

    def __init__(self, limits: LoopLimits, *, remembered: int = REMEMBERED) -> None:
        self._limits = limits
        self._exchanges: Recent[Pair, _Exchange] = Recent(remembered)

    def heard(self, pair: Pair, now_ms: int) -> bool:
        """Take note of another's message; return whether it is the one that makes a loop."""
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
        """Take note that the bot answered a user."""
        exchange = self._exchange(pair)
        exchange.was_quick = now_ms - exchange.heard_ms <= self._limits.reflex_ms
        exchange.answered_ms, exchange.is_answered = now_ms, True

    def is_silent(self, pair: Pair, now_ms: int) -> bool:
        """Whether the bot does not answer that user there, as a loop was found."""
        exchange = self._exchanges.get(pair)
        return exchange is not None and now_ms < exchange.silent_until_ms

    def _exchange(self, pair: Pair) -> _Exchange:
        exchange = self._exchanges.get(pair) or _Exchange()
        self._exchanges.renew(pair, exchange)
        return exchange
