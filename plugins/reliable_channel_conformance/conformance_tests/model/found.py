"""What the checker finds of each defect, explored once in a run."""

from functools import cache
from typing import Any

from reliable_channel_conformance.model.catalogue import DEFECTS
from reliable_channel_conformance.model.checker import Broken, check
from tests.slow import slow


@cache
def broken_by(number: str) -> Broken:
    """The promise that a defect breaks."""
    broken = check(DEFECTS[number].group).broken
    assert broken is not None
    return broken


def numbers() -> list[Any]:
    """The defects; the largest explorations take half a minute and two seconds."""
    large = ("S1", "D09")
    return [*slow(*large), *(each for each in DEFECTS if each not in large)]
