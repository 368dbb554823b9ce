"""The rate limit manager (LIP 173, Component rules; RLN): how many messages may go out in an epoch.

The epoch index comes from the wall clock as RLN has it, `unix seconds // period`, so that this
count and the network's proofs agree on where an epoch ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..sds.events import OutgoingKind

APPROACHED_SHARE: Final = 0.9
"""Above this share of the budget only the application's own messages go out (PR #89:
"approached")."""

SPARE_SHARE: Final = 0.4
"""Up to this share of the budget spare messages go out at any moment of an epoch."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was sent in an epoch."""

    epoch_index: int
    messages: int


@dataclass(frozen=True, slots=True)
class Budget:
    """What `channel.explain_budget()` says."""

    enabled: bool
    messages_per_epoch: int
    epoch_period_s: int
    epoch_index: int
    spent: int
    left: int
    epoch_ends_at_ms: int
    approached: bool
    """Only the application's own messages go out until the epoch ends."""
    waiting: dict[str, int]
    """Messages that wait for the transport, by kind."""
    waiting_goes_at_ms: int | None
    """When the last of them has gone out at the latest, by budget alone; None for never."""


def no_budget(waiting: dict[str, int]) -> Budget:
    """What there is to say without a rate limit."""
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
    """Counts what goes out, and says whether more may.

    A clock that jumped back does not refill the budget: the count stays with the epoch it was made
    in, as the network's does. Messages that are on their way to the node when an epoch ends count
    in the next one, too: they may be out in either. `in_hand` returns their number. After a restart
    it is unknown whether the last message of before was still on its way: it counts as well.
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
        self._of_before = 1 if self._spent.messages else 0
        """Messages that a process before may have had in hand: one goes after the other."""

    def spent(self, now_ms: int) -> Spent:
        """What went out in this epoch."""
        index = now_ms // 1000 // self.epoch_period_s
        if index > self._spent.epoch_index:
            self._spent = Spent(index, self._in_hand() + self._of_before)
        self._of_before = 0
        return self._spent

    def epoch_ends_at_ms(self, now_ms: int) -> int:
        """When the epoch that the count belongs to ends."""
        return (self.spent(now_ms).epoch_index + 1) * self.epoch_period_s * 1000

    def is_approached(self, now_ms: int) -> bool:
        """Return True if so much is spent that only the application's own messages go out."""
        return self.spent(now_ms).messages >= APPROACHED_SHARE * self.messages_per_epoch

    def admits(self, kind: OutgoingKind, now_ms: int) -> bool:
        """Return True if a message of this kind may go out now."""
        if kind is OutgoingKind.CONTENT:
            return self.spent(now_ms).messages < self.messages_per_epoch
        return not self.is_approached(now_ms)

    def is_short(self, now_ms: int) -> bool:
        """Return True if so much is spent, for this moment of the epoch, that spare messages are
        dropped."""
        period_ms = self.epoch_period_s * 1000
        elapsed = 1 - max(0, self.epoch_ends_at_ms(now_ms) - now_ms) / period_ms
        share = max(SPARE_SHARE, APPROACHED_SHARE * elapsed)
        return self.spent(now_ms).messages >= share * self.messages_per_epoch

    def refuses_ephemeral(self, now_ms: int) -> str | None:
        """Why an ephemeral message is dropped now, or None."""
        if self.spent(now_ms).messages >= self.messages_per_epoch:
            return "rate_limit_reached"
        return "rate_limit_approached" if self.is_approached(now_ms) else None

    def spend(self, now_ms: int) -> Spent:
        """Count a message that is about to go out.

        Save what is returned first: a crash may waste a message of budget, never overspend.
        """
        current = self.spent(now_ms)
        self._spent = Spent(current.epoch_index, current.messages + 1)
        return self._spent

    def explain(self, waiting: dict[str, int], now_ms: int) -> Budget:
        """The state of the budget, and what it means for waiting messages."""
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
