"""Self-tuning of participants, which is added to the scenario of a seed.

Self-tuning has random numbers of its own, so that the scenario of a seed stays the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from reliable_channel.options import ChannelOptions
from reliable_channel.sds import SdsOptions

from .drawing import draw_scenario
from .scenario import Attack, Hostile, Scenario

_REPAIR: Final[Sequence[str]] = (
    "max_requests_per_message",
    "max_request_attempts",
    "requester_answers_per_minute",
)


def draw_self_tuning(seed: int) -> Scenario:
    """Return the scenario of a seed in which all or some participants tune themselves."""
    scenario, random = draw_scenario(seed), Random(f"{seed} self-tuning")
    everybody = range(scenario.participants)
    some = random.sample(everybody, random.randint(1, scenario.participants))
    tuned = tuple(sorted(some)) if random.random() < 0.4 else tuple(everybody)
    faults = scenario.faults
    if any(isinstance(fault, Hostile) for fault in faults) and random.random() < 0.5:
        at_ms = random.randrange(max(1, scenario.faults_end_ms))
        attack = Hostile(at_ms, Attack.FALSE_DIFFERENCE, random.choice((1, 3, 20)))
        faults = tuple(sorted((*faults, attack), key=lambda fault: fault.at_ms))
    return replace(scenario, self_tuning=tuned, faults=faults)


def self_tuning(options: SdsOptions) -> SdsOptions:
    """Return the options for a self-tuning participant, as in the preset `auto`."""
    preset = ChannelOptions.of_preset("auto").sds_options().repair
    repair = replace(options.repair, **{name: getattr(preset, name) for name in _REPAIR})
    return replace(options, self_tuning=True, repair=repair)
