"""Repair policies side by side (`make bench ARGS=--repair`), in virtual time: the figures are equal
on any machine.

Each message is lost to 15 of 100 participants, which look for it by their policy. The figures of
each policy: for how long a message was missing before it came, in the mean and for the slowest
5 of 100; the share that was given up before it came; and, for 100 missing messages, the requests to
Store and the messages that were broadcast to ask and to answer.
"""

from os import cpu_count
from typing import Final, NamedTuple

from reliable_channel._contracts.repair_policies import REPAIR_POLICIES
from reliable_channel_lab.sim.measures import RepairMeasures
from reliable_channel_lab.sim.running import spread
from reliable_channel_lab.sim.scenario import (
    Conditions,
    Fault,
    Latency,
    Parameters,
    Scenario,
    StoreAway,
    StoreConditions,
    Write,
)
from reliable_channel_lab.sim.sharing import sds_maker
from reliable_channel_lab.sim.simulation import core_options
from reliable_channel_lab.sim.trial import Terms, metered

MESSAGES: Final = 60
PAUSE_MS: Final = 10_000
FIRST_MS: Final = 5_000
END_MS: Final = FIRST_MS + MESSAGES * PAUSE_MS
LOSS: Final = 0.15
POLICIES: Final = tuple(name for name in REPAIR_POLICIES if name != "none")
TERMS: Final = Terms(patience_ms=300_000, idle_ms=0)
"""As long as it takes until what does not come counts as lost."""

STORES: Final[dict[str, tuple[StoreConditions, tuple[Fault, ...]]]] = {
    "complete": (StoreConditions(), ()),
    "has 85 %": (StoreConditions(loss=LOSS), ()),
    "has 30 %": (StoreConditions(loss=0.7), ()),
    "answers in 5 to 40 s": (StoreConditions(Latency(5_000, 40_000), LOSS), ()),
    "lies in 9 of 10 answers": (StoreConditions(loss=LOSS, lies=0.9), ()),
    "offline": (StoreConditions(), (StoreAway(FIRST_MS - 1_000, END_MS),)),
}
GROUPS: Final = {4: range(1, 41), 30: range(1, 7)}
"""Seeds by the number of participants: enough for a thousand missing messages and more."""


class Row(NamedTuple):
    """A row of the table."""

    participants: int
    store: str
    policy: str


def scenario(row: Row, seed: int) -> Scenario:
    """A group in which all participants write in turn."""
    conditions, faults = STORES[row.store]
    return Scenario(
        seed,
        row.participants,
        tuple(Write(FIRST_MS + n * PAUSE_MS, n % row.participants) for n in range(MESSAGES)),
        faults,
        Conditions(loss=LOSS),
        conditions,
        Parameters(retrieval_strategy=row.policy),
    )


def run(row: Row) -> tuple[Row, RepairMeasures]:
    """What repair took, over all seeds."""
    scenarios = [scenario(row, seed) for seed in GROUPS[row.participants]]
    make_core = sds_maker(core_options(scenarios[0].parameters))
    return row, metered(scenarios, make_core, TERMS).repair()


def line(row: Row, took: RepairMeasures) -> str:
    """As it stands in the table."""
    cells = (
        f"{row.participants}",
        row.store,
        f"`{row.policy}`",
        _seconds(took.missing_mean_ms),
        _seconds(took.missing_p95_ms),
        *(
            f"{100 * count / took.missing:.0f}"
            for count in (took.given_up, took.store_requests, took.requests + took.answers)
        ),
    )
    return f"| {' | '.join(cells)} |"


def _seconds(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f}"


def print_table() -> None:
    print(
        "| participants | condition of the Store | policy | mean time missing (s) "
        "| 95th percentile (s) | lost (%) | Store queries per 100 missing "
        "| broadcasts per 100 missing |"
    )
    print("|--:|---|---|--:|--:|--:|--:|--:|")
    rows = [Row(size, store, name) for size in GROUPS for store in STORES for name in POLICIES]
    found = dict(spread(run, rows, jobs=cpu_count() or 1))
    for row in rows:
        print(line(row, found[row]))
