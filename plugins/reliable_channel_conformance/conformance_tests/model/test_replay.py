"""What the model says is what the core does: events, logs, buffers, after each step."""

from dataclasses import replace
from random import Random

import pytest

from reliable_channel_conformance.model.catalogue import DEFECTS
from reliable_channel_conformance.model.checker import check
from reliable_channel_conformance.model.defects import DeliversDuplicates
from reliable_channel_conformance.model.group import Group
from reliable_channel_conformance.model.replay import CountsSyncs, Divergence, Player
from reliable_channel_conformance.vectors.traces import walk
from tests.slow import long, slow

LIKE_THE_CORE = CountsSyncs()
LARGE = [*slow("D09"), *long("S1")]
"""Defects with explorations of two seconds and half a minute."""
GROUPS = {
    "two writers and a reader": Group((("a", 2), ("b", 2), ("c", 0)), LIKE_THE_CORE),
    "giving up": Group((("a", 2), ("b", 1), ("c", 1)), LIKE_THE_CORE, gives_up=True),
    "full filters": Group((("a", 2), ("b", 1)), LIKE_THE_CORE, liars=("y", "z"), lie="everything"),
    "a plausible lie": Group((("a", 2), ("b", 1)), LIKE_THE_CORE, liars=("z",)),
    "a short history": Group((("a", 3), ("b", 1)), replace(LIKE_THE_CORE, history=1)),
}


@pytest.mark.parametrize("name", GROUPS)
def test_the_core_walks_with_the_model(name: str) -> None:
    for seed in range(10):
        Player(GROUPS[name]).replay(walk(GROUPS[name], Random(seed)))


@pytest.mark.parametrize("number", [*LARGE, *sorted(DEFECTS.keys() - {"D09", "S1"})])
def test_a_defect_breaks_its_promise_and_the_core_does_not_have_it(number: str) -> None:
    """The trace that breaks a promise, and the same under rules that are kept."""
    defect = DEFECTS[number]
    broken = check(defect.group).broken
    assert broken is not None and broken.promise == defect.promise
    sound = replace(defect.group, rules=replace(LIKE_THE_CORE, history=defect.group.rules.history))
    Player(sound).replay(broken.trace)


def test_a_core_that_does_otherwise_is_noticed() -> None:
    group = replace(GROUPS["two writers and a reader"], rules=DeliversDuplicates(history=1))
    player = Player(group)
    with pytest.raises(Divergence, match="the model emits"):
        player.replay([("send", "a"), ("arrive", "b", "a0"), ("arrive", "b", "a0")])
