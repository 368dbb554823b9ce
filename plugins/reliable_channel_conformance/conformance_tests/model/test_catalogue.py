"""Every promise holds in all states of groups that keep the rules, and each defect breaks one."""

import pytest

from reliable_channel_conformance.model.catalogue import DEFECTS, SOUND
from reliable_channel_conformance.model.checker import check
from tests.slow import slow

from .found import broken_by, numbers

LARGE = ("two writers, one reader, three messages", "one writer, two readers")
"""Models of many states, for `make test-slow`."""


@pytest.mark.parametrize("name", [*slow(*LARGE), *sorted(SOUND.keys() - LARGE)])
def test_every_promise_holds_in_all_states(name: str) -> None:
    report = check(SOUND[name])
    assert report.broken is None
    assert report.complete


@pytest.mark.parametrize("number", numbers())
def test_a_defect_breaks_its_promise(number: str) -> None:
    broken = broken_by(number)
    assert broken.promise == DEFECTS[number].promise


def test_an_exploration_that_was_cut_short_says_so() -> None:
    report = check(SOUND["two writers"], max_states=100)
    assert not report.complete
    assert report.states == 100
