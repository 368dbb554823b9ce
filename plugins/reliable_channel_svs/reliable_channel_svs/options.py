"""Settings of the state machine: the specification's, what it leaves open, and the limits."""

from dataclasses import dataclass, field
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Where implementations differ. The defaults are the specification's, read literally."""

    merge_the_trigger: bool = True
    """The vector that led to Suppression State is part of `MergedStateVector` (NDNts, ndn-svs;
    ndnd: no). With it the parts of a split vector add up."""
    leave_suppression_at_once: bool = False
    """An up-to-date vector ends Suppression State (ndnd) rather than the timer alone."""
    missing_names_may_be_recent: bool = True
    """A node that is missing in an outdated vector was as good as 0 in it, so that the rule for
    just updated nodes holds for it too (ndnd: never)."""
    own_future: Literal["rebootstrap", "adopt"] = "rebootstrap"
    """What to do when others know more of us than we do: number the next publication under a new
    bootstrap time, or go on above what they say (ndnd, NDNts, ndn-svs), which lets anybody use up
    our numbers. Whose bootstrap times reach half of `limits.bootstrap_times` goes on likewise."""


NDND: Final = Behaviour(
    merge_the_trigger=False,
    leave_suppression_at_once=True,
    missing_names_may_be_recent=False,
    own_future="adopt",
)
"""ndnd v1.5.3, except that it applies what stands before a bootstrap time too far ahead."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of what others say is kept. What is beyond is left out, with `LimitReached`."""

    names: int = 10_000
    """Nodes in the vector."""
    bootstrap_times: int = 64
    """Bootstrap times of a node."""
    name_bytes: int = 1_024
    """Encoded length of a node's name."""
    events: int = 10_000
    """Events that wait to be taken; then the oldest goes, and `EventsDropped` says so."""


@dataclass(frozen=True, slots=True)
class SvsOptions:
    """What all members of a group should have alike."""

    periodic_timeout_ms: int = 30_000
    """§4.1, PeriodicTimeout."""
    periodic_jitter: float = 0.1
    """It is drawn uniformly from this much below to this much above."""
    suppression_period_ms: int = 200
    """§4.1, SuppressionPeriod."""
    decay_factor: float = 10.0
    """§4.1, f of SuppressionTimeout."""
    max_bootstrap_ahead_s: int = 86_400
    """§3: a vector with a bootstrap time further ahead of the clock is ignored as a whole."""
    vector_bytes: int = 7_500
    """A longer vector goes out in parts (`splitting.py`). A packet holds 8,800 bytes, names and
    signature among them."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.periodic_timeout_ms <= 0 or self.suppression_period_ms <= 0:
            raise ValueError("periodic_timeout_ms and suppression_period_ms must be above 0")
        if not 0 <= self.periodic_jitter < 1:
            raise ValueError("periodic_jitter must be at least 0 and below 1")
        if self.vector_bytes < self.limits.name_bytes + 64:
            raise ValueError("vector_bytes must leave room for one name (limits.name_bytes + 64)")
