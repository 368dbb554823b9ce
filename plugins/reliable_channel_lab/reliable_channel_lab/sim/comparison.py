"""Comparison of sync protocols, with its variants, groups and networks.

A cell is a run with a variant, a scenario, a size, a share of losses, and a seed. A cell
determines its run, so equal cells give equal figures on any machine.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from reliable_channel._contracts.repair_policies import REPAIR_POLICIES
from reliable_channel.engine.sync_core import CoreContext, LogArchive, Recorder, SyncCore
from reliable_channel.options import PRESETS, ChannelOptions

from .hardships import HARDSHIPS
from .measures import Measures
from .metering import TooMuchWork
from .scenario import Conditions, Scenario, StoreConditions, Write
from .sharing import sds_maker
from .trial import Terms, run_trial
from .world import CHANNEL, MakeCore

WARM_UP_MS: Final = 60_000
"""Time before the first message, during which all participants are present."""
MESSAGES: Final = 60
"""Number of messages that a group or a whole community sends."""
CONVERSATION: Final = 40
"""Number of messages in a conversation of two participants."""
COMMUNITY: Final = (24, 16, 10, 6, 4)
"""Number of members of each channel of a community."""
LARGE: Final = 100
"""Group size from which one seed is enough, because thousands of deliveries average out."""
TUNED: Final[Mapping[str, Any]] = PRESETS["small-group"]
"""Options of SDS for small groups, with shorter messages and shorter times."""
TUNED_MVDS: Final[Mapping[str, Any]] = {"retry_interval_ms": 3_000, "max_retry_attempts": 30}
"""Options of MVDS, with a short first retry interval. The retry interval doubles up to 64 times its
first value."""


MVDS_LIMIT: Final = "it takes at most 65 participants"
SVS_LIMIT: Final = "above 100 participants all that read each vector would take hours"
"""Reason why SVS is not run in large groups (1 to 2 ms per vector of 100 names and participant)."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Sync protocol with its options, with or without Store."""

    name: str
    sync: str
    store: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the channel that differ from the defaults."""
    max_participants: int | None = None
    """Maximum number of participants with which the variant is run."""
    why: str = ""
    """Reason why the variant is not run in larger groups."""


VARIANTS: Final = {
    variant.name: variant
    for variant in (
        Variant("SDS, Store", "sds", True, {"retrieval_strategy": "store-only"}),
        Variant("SDS", "sds", False, {"retrieval_strategy": "none"}),
        Variant("SDS-R, Store", "sds", True),
        Variant("SDS-R", "sds", False, {"retrieval_strategy": "sds-r-only"}),
        Variant("SDS-R tuned, Store", "sds", True, TUNED),
        Variant("SDS-R tuned", "sds", False, {**TUNED, "retrieval_strategy": "sds-r-only"}),
        # MVDS misses nothing by reference, and so asks Store for nothing.
        Variant("MVDS", "mvds", False, {}, 65, MVDS_LIMIT),
        Variant("MVDS tuned", "mvds", False, TUNED_MVDS, 65, MVDS_LIMIT),
        Variant("SVS, Store", "svs", True, {}, 100, SVS_LIMIT),
        Variant("SVS", "svs", False, {}, 100, SVS_LIMIT),
        Variant("auto, Store", "sds", True, PRESETS["auto"]),
        Variant("auto", "sds", False, {**PRESETS["auto"], "retrieval_strategy": "sds-r-only"}),
    )
}
"""Variants, including `SDS` without SDS-R and without Store as a control. With that control, a lost
message stays lost if its sender knows of no participant that has it."""
CONTROL: Final = "SDS"
SELF_TUNING: Final = ("auto", "auto, Store")
"""Names of the variants with preset `auto`, shown in the tables of protocols and of presets."""
PRESET_VARIANTS: Final[Mapping[str, Variant]] = {
    **{
        f"{name}, Store": Variant(f"{name}, Store", "sds", True, values)
        for name, values in PRESETS.items()
        if values.get("retrieval_strategy") != "sds-r-only"
    },
    **{
        name: Variant(name, "sds", False, {**values, "retrieval_strategy": "sds-r-only"})
        for name, values in PRESETS.items()
    },
}
"""Variants for the presets of options, each without Store, and with Store if the preset uses
Store."""
ALL_VARIANTS: Final[Mapping[str, Variant]] = {**VARIANTS, **PRESET_VARIANTS}


@dataclass(frozen=True, slots=True)
class Cell:
    scenario: str
    """Name in `SCENARIOS`, perhaps followed by a comma and a name in `HARDSHIPS`."""
    participants: int
    loss: float
    """Share of a broadcast's copies that are lost on the way to a participant."""
    variant: str
    """Name of a variant in `ALL_VARIANTS`."""
    seed: int


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """Cell of a comparison with its measured result."""

    cell: Cell
    measures: Measures | None
    not_run: str = ""
    """Reason why the cell has no measures."""


def covering(seeds: range) -> Iterator[Cell]:
    """Yield a few cells of each scenario, which take about a minute on two cores."""
    points = [("1:1", 2, loss) for loss in (0.0, 0.2, 0.4)]
    points += [("group", 10, loss) for loss in (0.0, 0.2, 0.4)]
    points += [("group", 40, 0.2), ("community", 10, 0.2)]
    yield from _cells(points, seeds)


def full(seeds: range) -> Iterator[Cell]:
    """Yield cells with 0 to 40 % loss at one size, and up to 1,000 participants at 20 %."""
    losses = (0.0, 0.1, 0.2, 0.3, 0.4)
    points = [("1:1", 2, loss) for loss in losses]
    for scenario in ("group", "community"):
        points += [(scenario, 20, loss) for loss in losses]
        points += [(scenario, size, 0.2) for size in (5, 100, 1_000)]
    yield from _cells(points, seeds)


def presets(seeds: range) -> Iterator[Cell]:
    """Yield cells of each preset in groups of three sizes."""
    points = [("group", 10, 0.02), ("group", 20, 0.2), ("group", 100, 0.2)]
    yield from _cells(points, seeds, PRESET_VARIANTS)


def self_tuning(seeds: range) -> Iterator[Cell]:
    """Yield cells of the preset `auto`, at the points for which docs/choosing.md sets goals."""
    points = [("1:1", 2, loss) for loss in (0.2, 0.4)]
    points += [("group", 20, loss) for loss in (0.0, 0.2, 0.4)]
    points += [("group", 100, loss) for loss in (0.2, 0.4)]
    points += [("group", 1_000, loss) for loss in (0.2, 0.4)]
    for scenario, participants in (("1:1", 2), ("group", 20), ("group", 100)):
        points.append((f"{scenario}, wrong clocks", participants, 0.2))
        points.append((f"{scenario}, bursts", participants, 0.0))
    for scenario, participants, loss in points:
        for seed in seeds if participants <= LARGE else seeds[:1]:
            for variant in SELF_TUNING:
                yield Cell(scenario, participants, loss, variant, seed)


def _cells(
    points: list[tuple[str, int, float]],
    seeds: range,
    variants: Mapping[str, Variant] = VARIANTS,
) -> Iterator[Cell]:
    for scenario, participants, loss in points:
        for seed in seeds if participants < LARGE else seeds[:1]:
            for variant in variants:
                yield Cell(scenario, participants, loss, variant, seed)


# -- the scenarios ---------------------------------------------------------------------------------
# Those of the proposal that SDS comes from ("End-to-end reliability for scalable distributed logs",
# forum.vac.dev): direct communication, a group chat, a community with channels.


def _one_to_one(cell: Cell, random: Random) -> list[Scenario]:
    """Two participants that talk in turns, now quickly and now slowly."""
    return [_talk(cell, random, range(2), CONVERSATION, (1_000, 3_000, 10_000, 40_000))]


def _group(cell: Cell, random: Random) -> list[Scenario]:
    """All participants are interested in all messages, and may write."""
    return [_talk(cell, random, range(cell.participants), MESSAGES, (1_000, 3_000, 5_000, 11_000))]


def channel_size(participants: int, number: int) -> int:
    """Return the number of a community's participants that are in the given channel."""
    return max(2, participants >> number)


def _community(cell: Cell, random: Random) -> list[Scenario]:
    """Five channels: all are in the first, each further one has half as many members and less to
    say. Each is a separate channel for the protocol."""
    channels = []
    for number, messages in enumerate(COMMUNITY):
        members = range(channel_size(cell.participants, number))
        pauses = (2_000 << number, 6_000 << number, 22_000 << number)
        channels.append(_talk(cell, random, members, messages, pauses, number))
    return channels


SCENARIOS: Final[Mapping[str, Callable[[Cell, Random], list[Scenario]]]] = {
    "1:1": _one_to_one,
    "group": _group,
    "community": _community,
}


def _talk(
    cell: Cell,
    random: Random,
    members: range,
    messages: int,
    pauses_ms: tuple[int, ...],
    number: int = 0,
) -> Scenario:
    writes, at_ms = [], WARM_UP_MS
    for _ in range(messages):
        writes.append(Write(at_ms, members[int(random.random() * len(members))]))
        at_ms += pauses_ms[int(random.random() * len(pauses_ms))]
    store = StoreConditions() if ALL_VARIANTS[cell.variant].store else None
    conditions = Conditions(loss=cell.loss)
    seed = 1_000 * cell.seed + number
    return Scenario(seed, len(members), tuple(writes), conditions=conditions, store=store)


# -- running ---------------------------------------------------------------------------------------

MakeSyncCore = Callable[[str, CoreContext], SyncCore]
"""Function that makes a core of a sync protocol by name."""


def workload(cell: Cell) -> list[Scenario]:
    """Return the scenarios of a cell, one for each channel. Writers and times depend only on the
    scenario, the size and the seed."""
    name, _, hardship = cell.scenario.partition(", ")
    random = Random(f"{name} {cell.participants} {cell.seed} workload")
    return [HARDSHIPS[hardship](each) for each in SCENARIOS[name](cell, random)]


def run_cell(cell: Cell, make: MakeSyncCore, terms: Terms | None = None) -> ComparedCell:
    variant = ALL_VARIANTS[cell.variant]
    most = variant.max_participants
    if most is not None and cell.participants > most:
        return ComparedCell(cell, None, f"{cell.variant}: {variant.why}")
    try:
        terms = _terms(variant, terms or Terms())
        measures = run_trial(workload(cell), maker(variant, make), terms)
        return ComparedCell(cell, measures)
    except TooMuchWork as error:
        return ComparedCell(cell, None, f"stopped: {error}")


def _terms(variant: Variant, terms: Terms) -> Terms:
    """The same terms with what the variant's engines obey."""
    options = ChannelOptions(**variant.options)
    strategy = options.retrieval_strategy
    policy = REPAIR_POLICIES[strategy] if variant.store and isinstance(strategy, str) else None
    return replace(terms, options=options, policy=policy)


def maker(variant: Variant, make: MakeSyncCore) -> MakeCore[SyncCore]:
    """Return a function that makes a variant's core for each participant of a trial."""
    options = ChannelOptions(**variant.options)
    if variant.sync == "sds":
        return sds_maker(options.sds_options())

    def make_core(
        sender_id: str,
        *,
        now_ms: int,
        random: Callable[[], float],
        recorder: Recorder,
        archive: LogArchive,
    ) -> SyncCore:
        context = CoreContext(CHANNEL, sender_id, options, now_ms, random, recorder, archive)
        return make(variant.sync, context)

    return make_core
