"""Whole scenarios, with the inputs and actions of participants, their times and their bytes.

The scenarios are traces of the formal model, replayed by the core. Each step is an input of one
participant or, after healing, a broadcast to all others.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final

from ..model.catalogue import DEFECTS
from ..model.checker import check
from ..model.group import Action, Group
from ..model.replay import CountsSyncs, Player
from .notation import wire

SOUND: Final = CountsSyncs()
TRACED: Final = ("D01", "D02", "D03", "D07", "D18", "D30", "P1", "P2")
WALKS: Final = {
    "two writers and a reader": Group((("a", 2), ("b", 2), ("c", 0)), SOUND),
    "messages are given up": Group((("a", 2), ("b", 1), ("c", 1)), SOUND, gives_up=True),
}


def traces() -> Iterator[dict[str, Any]]:
    """Yield a trace for each defect, as the rules without the defect perform it, and some random
    walks."""
    for number in TRACED:
        defect = DEFECTS[number]
        broken = check(defect.group).broken
        assert broken is not None
        rules = replace(SOUND, history=defect.group.rules.history)
        group = replace(defect.group, rules=rules)
        yield _trace(f"{number}: not so: {defect.title}", group, list(broken.trace))
    for name, group in WALKS.items():
        yield _trace(f"a walk: {name}", group, walk(group, Random(1)))


def walk(group: Group, random: Random, length: int = 40) -> list[Action]:
    """Return a random trace, in the second half of which the network is healed."""
    world, actions = group.initial(), list[Action]()
    for at in range(length):
        steps = [each for each in group.steps(world) if each.action != ("heal",) or at > length / 2]
        step = random.choice(steps)
        actions.append(step.action)
        world = step.world
    return actions


def _trace(name: str, group: Group, actions: list[Action]) -> dict[str, Any]:
    player = Player(group)
    player.replay(actions)
    return {
        "name": name,
        "channel_id": "model",
        "options": {
            "causal_history_size": group.rules.history,
            "possible_acks_threshold": group.rules.threshold,
            "t_min_ms": 0,
            "t_max_ms": 1,
        },
        "participants": [name for name, _ in group.sends],
        "steps": [
            {
                "action": list(done.action),
                "at_ms": done.at_ms,
                "sent": [{"by": by, "wire": wire(data)} for by, data in done.sent],
                "received": [{"by": by, "wire": wire(data)} for by, data in done.received],
                "events": [each._asdict() for each in done.events],
                "logs": {each: list(log) for each, log in done.logs.items()},
            }
            for done in player.done
        ],
    }
