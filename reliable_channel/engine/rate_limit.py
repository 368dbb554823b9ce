"""Rate limit of the messages in an epoch (LIP 173, Component rules, RLN).

The epoch index is computed from the wall clock as in RLN, `unix seconds // period`. The own count
and the network's proofs thus agree about the end of an epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..sds.events import OutgoingKind
from .outbox import CONCURRENCY

APPROACHED_SHARE: Final = 0.9
"""Share of the epoch's budget from which only the application's messages are sent (PR #89,
"approached")."""

SPARE_SHARE: Final = 0.4
"""Share of the epoch's budget up to which optional messages are sent at any time."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Number of messages that were sent in an epoch."""

    epoch_index: int
    messages: int


@dataclass(frozen=True, slots=True)
class Budget:
    """State of the rate limit, as `channel.explain_budget()` returns it."""

    enabled: bool
    messages_per_epoch: int
    epoch_period_s: int
    epoch_index: int
    spent: int
    left: int
    epoch_ends_at_ms: int
    approached: bool
    """True if only the application's messages are sent until the epoch ends."""
    waiting: dict[str, int]
    """Number of messages that wait for the transport, by kind."""
    waiting_goes_at_ms: int | None
    """Time (ms) by which the last waiting message will be sent, as far as the rate limit decides.
    The value is None if the message will never be sent."""


def no_budget(waiting: dict[str, int]) -> Budget:
    """Return the state of a channel without a rate limit."""
    return Budget(
        enabled=False,
        messages_per_epoch=0,
        epoch_period_s=0,
        epoch_index=0,
        spent=0,
        left=0,
        epoch_ends_at_ms=0,
        approached=False,
        waiting=waiting,
        waiting_goes_at_ms=None,
    )


class RateLimit:
    """Counter of the messages sent in an epoch, which decides if more may be sent.

    If the clock is set back, the budget is not refilled. The count belongs to one epoch, as in the
    network. A message that is being sent at an epoch's end counts in both epochs. `in_hand` returns
    the number of messages that are being sent. After a restart, at most
    `CONCURRENCY` messages of the previous run also count, because they may still have been sent.
    """

    def __init__(
        self,
        *,
        messages_per_epoch: int,
        epoch_period_s: int,
        spent: Spent | None = None,
        in_hand: Callable[[], int] = lambda: 0,
    ) -> None:
        self.messages_per_epoch = messages_per_epoch
        self.epoch_period_s = epoch_period_s
        self._spent = spent or Spent(0, 0)
        self._in_hand = in_hand
        self._of_before = min(self._spent.messages, CONCURRENCY)
        """Number of messages that the previous run may have been sending."""

    def spent(self, now_ms: int) -> Spent:
        """Return the number of messages sent in the current epoch."""
        index = now_ms // 1000 // self.epoch_period_s
        if index > self._spent.epoch_index:
            self._spent = Spent(index, self._in_hand() + self._of_before)
        self._of_before = 0
        return self._spent

    def epoch_ends_at_ms(self, now_ms: int) -> int:
        """Return the end of the current epoch (ms)."""
        return (self.spent(now_ms).epoch_index + 1) * self.epoch_period_s * 1000

    def is_approached(self, now_ms: int) -> bool:
        """Return True if so much of the budget is spent that only the application's messages may be
        sent."""
        return self.spent(now_ms).messages >= APPROACHED_SHARE * self.messages_per_epoch

    def admits(self, kind: OutgoingKind, now_ms: int) -> bool:
        """Return True if a message of this kind may be sent now."""
        if kind is OutgoingKind.CONTENT:
            return self.spent(now_ms).messages < self.messages_per_epoch
        return not self.is_approached(now_ms)

    def is_short(self, now_ms: int) -> bool:
        """Return True if optional messages are dropped at this time of the epoch."""
        period_ms = self.epoch_period_s * 1000
        elapsed = 1 - max(0, self.epoch_ends_at_ms(now_ms) - now_ms) / period_ms
        share = max(SPARE_SHARE, APPROACHED_SHARE * elapsed)
        return self.spent(now_ms).messages >= share * self.messages_per_epoch

    def refuses_ephemeral(self, now_ms: int) -> str | None:
        """Return the reason why an ephemeral message is dropped now, or None if it may be sent."""
        if self.spent(now_ms).messages >= self.messages_per_epoch:
            return "rate_limit_reached"
        return "rate_limit_approached" if self.is_approached(now_ms) else None

    def spend(self, now_ms: int) -> Spent:
        """Count a message that is about to be sent.

        Save the returned count before the message is sent. A crash after the save wastes at most
        one message, and the budget is never exceeded.
        """
        current = self.spent(now_ms)
        self._spent = Spent(current.epoch_index, current.messages + 1)
        return self._spent

    def explain(self, waiting: dict[str, int], now_ms: int) -> Budget:
        """Return the state of the rate limit, and the time at which waiting messages can be
        sent."""
        spent = self.spent(now_ms)
        left, total = max(0, self.messages_per_epoch - spent.messages), sum(waiting.values())
        epochs = 0 if total <= left else -(-(total - left) // max(1, self.messages_per_epoch))
        ends_at_ms = self.epoch_ends_at_ms(now_ms)
        goes_at_ms: int | None = now_ms
        if epochs:
            goes_at_ms = ends_at_ms + (epochs - 1) * self.epoch_period_s * 1000
            if not self.messages_per_epoch:
                goes_at_ms = None
        return Budget(
            enabled=True,
            messages_per_epoch=self.messages_per_epoch,
            epoch_period_s=self.epoch_period_s,
            epoch_index=spent.epoch_index,
            spent=spent.messages,
            left=left,
            epoch_ends_at_ms=ends_at_ms,
            approached=self.is_approached(now_ms),
            waiting=waiting,
            waiting_goes_at_ms=goes_at_ms,
        )
