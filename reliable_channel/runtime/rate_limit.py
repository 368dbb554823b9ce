"""The rate limit manager (LIP 173, Component rules; RLN): how many messages may go out in an epoch.

The epoch index comes from the wall clock as RLN has it, `unix seconds // period`, so that this
count and the network's proofs agree on where an epoch ends.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ..sds.events import OutgoingKind

APPROACHED_SHARE: Final = 0.9
"""Above this share of the budget only the application's own messages go out (PR #89:
"approached")."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was sent in an epoch."""

    epoch_index: int
    messages: int


class BudgetStore(Protocol):
    """Where the spent budget outlives the process."""

    def load(self) -> Spent | None:
        """What was saved last, or None."""
        ...

    def save(self, spent: Spent) -> None:
        """Remember."""
        ...


class BudgetFile:
    """A budget store in one small file, replaced as a whole.

    Raises:
        ValueError: on `load`, the file holds something else.
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Spent | None:
        """What was saved last, or None."""
        try:
            values = json.loads(self._path.read_text())
            return Spent(_count(values["epoch_index"]), _count(values["messages"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{self._path} is no rate limit file: {error}; remove it") from error

    def save(self, spent: Spent) -> None:
        """Write beside, then rename: a crash leaves the old or the new, never half."""
        beside = self._path.with_suffix(".new")
        beside.write_text(
            json.dumps({"epoch_index": spent.epoch_index, "messages": spent.messages})
        )
        beside.replace(self._path)


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"{value!r} is no count")


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


class RateLimitManager:
    """Counts what goes out, and says whether more may."""

    def __init__(
        self,
        *,
        messages_per_epoch: int,
        epoch_period_s: int,
        now_ms: Callable[[], int],
        store: BudgetStore | None = None,
    ) -> None:
        self.messages_per_epoch = messages_per_epoch
        self.epoch_period_s = epoch_period_s
        self._now_ms = now_ms
        self._store = store
        self._spent = self._restored()

    @property
    def spent(self) -> int:
        """Messages that went out in this epoch."""
        return self._current().messages

    @property
    def epoch_ends_at_ms(self) -> int:
        """When the epoch that the count belongs to ends.

        A clock that jumped back does not refill the budget: the count stays with the epoch it was
        made in, as the network's does.
        """
        return (self._current().epoch_index + 1) * self.epoch_period_s * 1000

    @property
    def approached(self) -> bool:
        """Whether so much is spent that only the application's own messages go out."""
        return self.spent >= APPROACHED_SHARE * self.messages_per_epoch

    def admits(self, kind: OutgoingKind) -> bool:
        """Whether a message of this kind may go out now."""
        if kind is OutgoingKind.CONTENT:
            return self.spent < self.messages_per_epoch
        return not self.approached

    def refuses_ephemeral(self) -> str | None:
        """Why an ephemeral message is dropped now, or None."""
        if self.spent >= self.messages_per_epoch:
            return "rate_limit_reached"
        return "rate_limit_approached" if self.approached else None

    def spend(self) -> None:
        """A message is about to go out. Saved first: a crash may waste a message of budget, never
        overspend."""
        current = self._current()
        self._spent = Spent(current.epoch_index, current.messages + 1)
        if self._store is not None:
            self._store.save(self._spent)

    def explain(self, waiting: dict[str, int]) -> Budget:
        """The state of the budget, and what it means for those who wait."""
        left, total = max(0, self.messages_per_epoch - self.spent), sum(waiting.values())
        epochs = 0 if total <= left else -(-(total - left) // max(1, self.messages_per_epoch))
        ends_at_ms = self.epoch_ends_at_ms
        goes_at_ms: int | None = self._now_ms()
        if epochs:
            goes_at_ms = ends_at_ms + (epochs - 1) * self.epoch_period_s * 1000
            if not self.messages_per_epoch:
                goes_at_ms = None
        return Budget(
            enabled=True,
            messages_per_epoch=self.messages_per_epoch,
            epoch_period_s=self.epoch_period_s,
            epoch_index=self._current().epoch_index,
            spent=self.spent,
            left=left,
            epoch_ends_at_ms=ends_at_ms,
            approached=self.approached,
            waiting=waiting,
            waiting_goes_at_ms=goes_at_ms,
        )

    def _current(self) -> Spent:
        index = self._now_ms() // 1000 // self.epoch_period_s
        if index > self._spent.epoch_index:
            self._spent = Spent(index, 0)
        return self._spent

    def _restored(self) -> Spent:
        saved = None
        if self._store is not None:
            saved = self._store.load()
        return saved or Spent(self._now_ms() // 1000 // self.epoch_period_s, 0)
