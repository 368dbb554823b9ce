"""Models to check, which are groups that keep the rules, and defects that break a promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .defects import (
    AsksOnce,
    BelievesFullFilters,
    CountsFilters,
    DeliversAsArrived,
    DeliversDuplicates,
    DropsAfterLoss,
    ForgetsLost,
    KeepsItsClock,
    LeavesTies,
    LogsSyncs,
    NeverRollsOver,
    TakesParkedForPresent,
)
from .group import Group
from .rules import Rules

ONE_WRITER: Final = (("a", 2), ("b", 0))
TWO_WRITERS: Final = (("a", 1), ("b", 1))
CHAIN: Final = (("a", 3), ("b", 0))
READERS: Final = (("a", 1), ("b", 0), ("c", 0))
LIARS: Final = ("y", "z")

SOUND: Final[Mapping[str, Group]] = {
    "one writer, one reader": Group(ONE_WRITER),
    "one writer, two readers": Group((("a", 2), ("b", 0), ("c", 0))),
    "two writers": Group(TWO_WRITERS),
    "two writers with two messages each": Group((("a", 2), ("b", 2)), syncs_early=False),
    "two writers, one reader, three messages": Group(
        (("a", 2), ("b", 1), ("c", 0)), syncs_early=False
    ),
    "messages are given up": Group(
        (("a", 2), ("b", 0), ("c", 0)), syncs_early=False, gives_up=True
    ),
    "filters that roll over": Group((("a", 3), ("b", 0), ("c", 0)), Rules(capacity=1), False),
    "two filters with all bits set": Group(ONE_WRITER, liars=LIARS, lie="everything"),
    "one filter that lies plausibly": Group(ONE_WRITER, liars=("z",)),
}
"""Groups in which every promise must hold in all states."""


@dataclass(frozen=True, slots=True)
class Defect:
    """Defect of a broken rule, with the promise that the defect breaks."""

    title: str
    promise: str
    group: Group
    seen_in: str = ""
    """Implementation that has the defect."""


DEFECTS: Final[Mapping[str, Defect]] = {
    "D01": Defect(
        "A duplicate of a delivered message is delivered again.",
        "exactly once",
        Group(ONE_WRITER, DeliversDuplicates()),
        "js-waku",
    ),
    "D02": Defect(
        "A message that waits itself counts as a dependency that is met.",
        "causal order",
        Group(CHAIN, TakesParkedForPresent(history=1), syncs_early=False),
        "js-waku",
    ),
    "D03": Defect(
        "A message whose dependency is given up is dropped, and its sender sees it acknowledged.",
        "delivery to all",
        Group(ONE_WRITER, DropsAfterLoss(), syncs_early=False, gives_up=True),
        "js-waku",
    ),
    "D07": Defect(
        "Two filters of one participant count as those of two.",
        "true acknowledgements",
        Group(ONE_WRITER, CountsFilters(), syncs_early=False, liars=("z",)),
        "js-waku",
    ),
    "D09": Defect(
        "A filter that never rolls over fills up, and holds what was never received.",
        "true acknowledgements",
        Group((("a", 3), ("b", 0), ("c", 0)), NeverRollsOver(capacity=1)),
        "js-waku",
    ),
    "D18": Defect(
        "A missing message is requested once, even if the request is lost.",
        "delivery to all",
        Group(READERS, AsksOnce()),
        "js-waku, nim-sds",
    ),
    "D30": Defect(
        "Messages that become ready are delivered as they arrived.",
        "causal order",
        Group(CHAIN, DeliversAsArrived(), syncs_early=False),
        "js-waku; nim-sds emits dependants first",
    ),
    "P1": Defect(
        "Messages of one Lamport timestamp stand as they arrived.",
        "equal logs",
        Group(TWO_WRITERS, LeavesTies()),
    ),
    "P2": Defect(
        "A delivered message does not advance the clock.",
        "equal logs",
        Group((("a", 1), ("b", 2)), KeepsItsClock(), syncs_early=False),
    ),
    "P3": Defect(
        "Sync messages are in logs and causal histories.",
        "equal logs",
        Group((("a", 1), ("b", 0)), LogsSyncs()),
        "nim-sds, of ours",
    ),
    "P4": Defect(
        "A filter with all bits set counts as evidence.",
        "true acknowledgements",
        Group(ONE_WRITER, BelievesFullFilters(), liars=LIARS, lie="everything"),
        "js-waku",
    ),
    "P5": Defect(
        "A message that was given up is not wanted again when others refer to it.",
        "delivery to all",
        Group(READERS, ForgetsLost(), gives_up=True),
    ),
    "S1": Defect(
        "A causal history of one message, without a Store: of two concurrent messages only the "
        "later one is referred to again. LIP 109 recommends two, which is too few for three.",
        "delivery to all",
        Group((("a", 1), ("b", 1), ("c", 0)), Rules(history=1)),
        "the specification's own recommendation",
    ),
}
"""Defects of the rules, by number. Numbers D… stand for reported defects of js-waku, P… for planted
ones, and S… for the specification's."""
