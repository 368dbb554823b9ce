"""Every promise holds in all states of groups that keep the rules."""

import pytest

from reliable_channel_conformance.model.catalogue import SOUND
from reliable_channel_conformance.model.checker import check
from tests.slow import slow

LARGE = ("two writers, one reader, three messages", "one writer, two readers")
"""Models of many states, for `make test-slow`."""


@pytest.mark.parametrize("name", [*slow(*LARGE), *sorted(SOUND.keys() - LARGE)])
def test_every_promise_holds_in_all_states(name: str) -> None:
    report = check(SOUND[name])
    assert report.broken is None
    assert report.complete


def test_an_exploration_that_was_cut_short_says_so() -> None:
    report = check(SOUND["two writers"], max_states=100)
    assert not report.complete
    assert report.states == 100
