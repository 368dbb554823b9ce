"""One history size and one causal history size, measured on all sides by turns.

A session receives, sends, leaves a hundred own messages unacknowledged, and receives and sends
again. Each phase runs in rounds; in a round this core, js-waku and the floor have their turn one
after another on the same bytes, so that what else the machine does meets all of them alike. The
first message of a turn is not timed: it warms the caches that the other side has just filled.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from bench.floor import Floor
from bench.timing import middle
from bench.workload import WireMessage, history_ids, payloads, traffic

Operation = Literal["receive", "send"]

UNACKNOWLEDGED: Final = (0, 100)
CAUSAL_HISTORIES: Final = (2, 200)
"""What the specification recommends, and the default of js-waku."""


class Side(Protocol):
    """An implementation of SDS under measurement."""

    def setup(self, history: int, causal_history: int, traffic: Sequence[WireMessage]) -> None:
        """Begin with a channel that holds `history` messages and will receive `traffic`."""

    def receive(self, start: int, count: int) -> float:
        """CPU microseconds a message for `count` messages, after one that is not timed."""

    def send(self, payloads: Sequence[bytes]) -> float:
        """CPU microseconds for each payload but the first; a peer acknowledges them afterwards."""

    def leave_unacknowledged(self, payloads: Sequence[bytes]) -> None:
        """Send own messages that are never acknowledged."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of a history size is measured."""

    history: int
    rounds: int
    batch: int
    """Timed messages in a round."""
    js_waku: bool = True


FULL: Final = (
    Plan(0, rounds=7, batch=20),
    Plan(1_000, rounds=7, batch=20),
    Plan(10_000, rounds=7, batch=15),
    Plan(100_000, rounds=5, batch=4),  # js-waku takes 0.3 s a message here
    Plan(1_000_000, rounds=7, batch=15, js_waku=False),
)
QUICK: Final = (Plan(10_000, rounds=7, batch=10),)


@dataclass(frozen=True, slots=True)
class Row:
    """What a message costs, CPU microseconds, in the middle one of the rounds."""

    operation: Operation
    history: int
    causal_history: int
    unacknowledged: int
    messages: int
    """Timed messages a side."""
    ours_us: float
    js_waku_us: float | None
    floor_us: float

    @property
    def ratio(self) -> float | None:
        """How many times as much js-waku costs."""
        return None if self.js_waku_us is None else self.js_waku_us / self.ours_us

    @property
    def floor_ratio(self) -> float:
        """How many times as much as the floor this core costs."""
        return self.ours_us / self.floor_us


def measure(plan: Plan, causal_history: int, ours: Side, js_waku: Side | None) -> Iterator[Row]:
    """Run one session and yield its four rows."""
    phase_messages = plan.rounds * (plan.batch + 1)
    messages = list(traffic(plan.history, causal_history, phase_messages * len(UNACKNOWLEDGED)))
    sides = [ours] if js_waku is None or not plan.js_waku else [ours, js_waku]
    for side in sides:
        side.setup(plan.history, causal_history, messages)
    floor = Floor(history_ids(plan.history), messages)
    gc.collect()
    gc.freeze()  # else each collection before a turn would walk through a million messages

    def row(operation: Operation, floor_us: float, turns: list[list[float]]) -> Row:
        costs = [middle(rounds) for rounds in zip(*turns, strict=True)]
        return Row(
            operation,
            plan.history,
            causal_history,
            unacknowledged,
            plan.rounds * plan.batch,
            costs[0],
            costs[1] if len(costs) > 1 else None,
            floor_us,
        )

    for phase, unacknowledged in enumerate(UNACKNOWLEDGED):
        first = phase * phase_messages
        for side in sides:
            # Contents of their own, as js-waku's id is the hash of the content.
            side.leave_unacknowledged(payloads(phase_messages * 2, unacknowledged))
        starts = range(first, first + phase_messages, plan.batch + 1)
        received, floors = [], []
        for start in starts:
            received.append([side.receive(start, plan.batch) for side in sides])
            floors.append(floor.receive(start, plan.batch))
        yield row("receive", middle(floors), received)
        sent = [[side.send(payloads(start, plan.batch + 1)) for side in sides] for start in starts]
        yield row("send", middle(floors), sent)
    gc.unfreeze()
