"""Budget for the answers to repair requests of other participants.

A request has about 70 bytes, but its answer is a whole message, broadcast to all participants. A
participant that requests everything repeatedly could turn one sync message into megabytes. Each
requester has a budget, and all requesters share a further budget, in messages and in bytes. A
budget refills at a constant rate.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from ..events import RepairBudgetReached
from ..options import RepairOptions

PERIOD_MS: Final = 60_000
"""Period of the budgets (ms), which is a minute."""
REQUESTERS: Final = 1_000
"""Number of requesters whose budgets are remembered. The requester that was silent for longest is
removed first."""


class _Meter:
    """A generic cell rate: how far what was spent reaches into the future.

    Something is left while that is less than a period, so that one answer larger than all of a
    small budget passes too, and is paid off afterwards.
    """

    __slots__ = ("_ms_each", "_spent_until_ms")

    def __init__(self, units: int) -> None:
        self._ms_each = PERIOD_MS / units
        self._spent_until_ms = 0.0

    def has_left(self, now_ms: int) -> bool:
        # The clock may have been set back: then at most a period is owed.
        self._spent_until_ms = min(max(self._spent_until_ms, now_ms), now_ms + 2 * PERIOD_MS)
        return self._spent_until_ms < now_ms + PERIOD_MS

    def spend(self, units: int) -> None:
        self._spent_until_ms += units * self._ms_each


class _Account:
    """What one requester, or all together, have left."""

    def __init__(self, answers: int, answer_bytes: int) -> None:
        self._answers, self._bytes = _Meter(answers), _Meter(answer_bytes)
        self.reported_ms: int | None = None

    def has_left(self, now_ms: int) -> bool:
        # Both are asked, so that both notice a clock that was set back.
        return self._answers.has_left(now_ms) & self._bytes.has_left(now_ms)

    def spend(self, answers: int, size_bytes: int) -> None:
        self._answers.spend(answers)
        self._bytes.spend(size_bytes)


@dataclass(slots=True)
class RepairBudget:
    """Budgets that decide if an answer to a repair request may be planned."""

    options: RepairOptions
    _all: _Account = field(init=False)
    _accounts: OrderedDict[str, _Account] = field(init=False, default_factory=OrderedDict)
    _refused: list[str] = field(init=False, default_factory=list)
    """Since the last `reached`."""

    def __post_init__(self) -> None:
        options = self.options
        self._all = _Account(options.answers_per_minute, options.answer_bytes_per_minute)

    def spend(self, requester_id: str, message_id: str, size_bytes: int, now_ms: int) -> bool:
        """Charge an answer to the budgets. Return False if the budget of the requester or of all
        requesters is spent."""
        account = self._account(requester_id)
        if not account.has_left(now_ms) & self._all.has_left(now_ms):
            self._refused.append(message_id)
            return False
        account.spend(1, size_bytes)
        self._all.spend(1, size_bytes)
        return True

    def give_back(self, requester_id: str, size_bytes: int) -> None:
        """Return the cost of an answer to the budgets, because another participant gave the
        answer."""
        self._all.spend(-1, -size_bytes)
        if account := self._accounts.get(requester_id):
            account.spend(-1, -size_bytes)

    def reached(self, requester_id: str, now_ms: int) -> RepairBudgetReached | None:
        """Return an event about refused requests, at most once a minute for each requester."""
        refused, self._refused = tuple(self._refused), []
        if not refused:
            return None
        in_all = self._account(requester_id).has_left(now_ms)
        return self.report(requester_id, now_ms, refused, in_all=in_all)

    def report(
        self, sender_id: str, now_ms: int, refused: tuple[str, ...] = (), *, in_all: bool
    ) -> RepairBudgetReached | None:
        """Return an event about a requester, unless there was an event within the last minute."""
        account = self._account(sender_id)
        reported_ms = account.reported_ms
        if reported_ms is not None and 0 <= now_ms - reported_ms < PERIOD_MS:
            return None
        account.reported_ms = now_ms
        return RepairBudgetReached(refused, sender_id, in_all)

    def _account(self, requester_id: str) -> _Account:
        account = self._accounts.get(requester_id)
        if account is None:
            options = self.options
            account = self._accounts[requester_id] = _Account(
                options.requester_answers_per_minute, options.requester_answer_bytes_per_minute
            )
            if len(self._accounts) > REQUESTERS:
                self._accounts.popitem(last=False)
        self._accounts.move_to_end(requester_id)
        return account
