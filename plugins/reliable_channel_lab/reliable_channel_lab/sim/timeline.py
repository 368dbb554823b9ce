"""Virtual time, with planned actions in order. The virtual clock jumps from each action to the
next."""

import heapq
from collections.abc import Callable
from typing import Any, Final

START_MS: Final = 1_700_000_000_000
"""Time at which simulations begin."""

Action = tuple[Callable[..., None], tuple[Any, ...]]


class Timeline:
    """Planned actions by millisecond. Actions of the same millisecond happen in the order in which
    they were planned.

    The heap contains milliseconds, because 10,000 actions may have only a few hundred different
    times.
    """

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._moments: list[int] = []
        self._actions: dict[int, list[Action]] = {}

    def at(self, time_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        """Plan an action at a time. An action in the past happens now, after the actions that were
        planned for now."""
        time_ms = max(time_ms, self.now_ms)
        if (actions := self._actions.get(time_ms)) is None:
            self._actions[time_ms] = actions = []
            heapq.heappush(self._moments, time_ms)
        actions.append((action, arguments))

    def run_until(self, end_ms: int) -> None:
        """Run all actions up to and including `end_ms`."""
        while self._moments and self._moments[0] <= end_ms:
            self.now_ms = moment = self._moments[0]
            # Actions may plan others for this very millisecond: the list grows while it is read.
            for action, arguments in self._actions[moment]:
                action(*arguments)
            del self._actions[moment]
            heapq.heappop(self._moments)
        self.now_ms = max(self.now_ms, end_ms)
