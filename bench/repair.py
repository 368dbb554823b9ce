"""Repair policies side by side: `python -m bench.repair`, in virtual time, so that the figures are
equal on any machine.

Each message is lost to 15 of 100 participants, who look for it as their policy says. What is told
of each policy: for how long a message was missing before it came, in the mean and for the slowest
5 of 100; the share that was given up before it came; and, for 100 missing messages, the queries to
Store and the messages that were broadcast to ask and to answer.
"""

import sys
from collections.abc import Iterator
from statistics import fmean, quantiles
from typing import Final

from reliable_channel.repair_policies import REPAIR_POLICIES
from reliable_channel.sim import Scenario, Simulation
from reliable_channel.sim.scenario import (
    Conditions,
    Fault,
    Latency,
    Parameters,
    StoreAway,
    StoreConditions,
    Write,
)
from reliable_channel.sim.tally import RepairTally, summed

MESSAGES: Final = 60
PAUSE_MS: Final = 10_000
FIRST_MS: Final = 5_000
END_MS: Final = FIRST_MS + MESSAGES * PAUSE_MS
POLICIES: Final = tuple(name for name in REPAIR_POLICIES if name != "none")

Setup = tuple[StoreConditions | None, tuple[Fault, ...]]
STORES: Final[dict[str, Setup]] = {
    "good": (StoreConditions(), ()),
    "slow (5 to 40 s)": (StoreConditions(Latency(5_000, 40_000)), ()),
    "lossy (has 30 %)": (StoreConditions(loss=0.7), ()),
    "lying (9 of 10 answers)": (StoreConditions(lies=0.9), ()),
    "away": (StoreConditions(), (StoreAway(FIRST_MS - 1_000, END_MS),)),
}
GROUPS: Final = {4: range(1, 11), 30: range(1, 3)}
"""Seeds by the number of participants: enough for some hundreds of missing messages."""


def scenario(seed: int, store: str, participants: int, policy: str) -> Scenario:
    """A group in which everybody writes in turn."""
    conditions, faults = STORES[store]
    return Scenario(
        seed,
        participants,
        tuple(Write(FIRST_MS + n * PAUSE_MS, n % participants) for n in range(MESSAGES)),
        faults,
        Conditions(loss=0.15),
        conditions,
        Parameters(retrieval_strategy=policy),
    )


def tallied(store: str, participants: int, policy: str) -> RepairTally:
    """What repair took, over all seeds."""
    made = (scenario(seed, store, participants, policy) for seed in GROUPS[participants])
    return summed(Simulation(each).run().repair for each in made)


def line(store: str, participants: int, policy: str, tally: RepairTally) -> str:
    """A row of the table."""
    waits_s = [wait_ms / 1000 for wait_ms in tally.waits_ms]
    missing = len(waits_s) + tally.lost
    slowest_s = quantiles(waits_s, n=20)[-1]

    def each(count: int) -> str:
        return f"{100 * count / missing:.0f}"

    cells = (
        f"{participants}",
        store,
        f"`{policy}`",
        f"{fmean(waits_s):.1f}",
        f"{slowest_s:.1f}",
        each(tally.lost),
        each(tally.store_queries),
        each(tally.requests + tally.answers),
    )
    return f"| {' | '.join(cells)} |"


def table() -> Iterator[str]:
    """All rows."""
    yield (
        "| participants | Store | policy | mean s | slowest 5 % s | given up % | Store queries | "
        "broadcasts |"
    )
    yield "|--:|---|---|--:|--:|--:|--:|--:|"
    for participants in GROUPS:
        for store in STORES:
            for policy in POLICIES:
                yield line(store, participants, policy, tallied(store, participants, policy))


if __name__ == "__main__":
    for row in table():
        print(row)
        sys.stdout.flush()
