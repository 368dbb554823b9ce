"""Settings of the state machine: the specification's, what it leaves open, and the limits."""

from dataclasses import dataclass, field
from typing import Final, Literal

from reliable_channel.sds.declared import check, number, positive, share, switch, word


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Where implementations differ. The defaults are the specification's, read literally."""

    merge_the_trigger: bool = switch(True)
    """The vector that led to Suppression State is part of `MergedStateVector` (NDNts, ndn-svs;
    ndnd: no). With it the parts of a split vector add up."""
    leave_suppression_at_once: bool = switch(False)
    """An up-to-date vector ends Suppression State (ndnd) rather than the timer alone."""
    missing_names_may_be_recent: bool = switch(True)
    """A node that is missing in an outdated vector was as good as 0 in it, so that the rule for
    just updated nodes holds for it too (ndnd: never)."""
    own_future: Literal["rebootstrap", "adopt"] = word("rebootstrap", ("rebootstrap", "adopt"))
    """What to do when others know more of us than we do: number the next publication under a new
    bootstrap time, or go on above what they say (ndnd, NDNts, ndn-svs), which lets anybody use up
    our numbers. Whose bootstrap times reach half of `limits.bootstrap_times` goes on likewise."""

    def __post_init__(self) -> None:
        check(self)


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

    names: int = number(10_000, "nodes", 1)
    """Nodes in the vector."""
    bootstrap_times: int = number(64, "times", 1)
    """Bootstrap times of a node."""
    name_bytes: int = number(1_024, "bytes", 1)
    """Encoded length of a node's name."""
    events: int = number(10_000, "events", 1)
    """Events that wait to be taken; then the oldest goes, and `EventsDropped` says so."""

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class SvsOptions:
    """What all members of a group should have alike."""

    periodic_timeout_ms: int = number(30_000, "ms", 1)
    """§4.1, PeriodicTimeout."""
    periodic_jitter: float = share(0.1, of_all=False)
    """It is drawn uniformly from this much below to this much above."""
    suppression_period_ms: int = number(200, "ms", 1)
    """§4.1, SuppressionPeriod."""
    decay_factor: float = positive(10.0, "")
    """§4.1, f of SuppressionTimeout."""
    max_bootstrap_ahead_s: int = number(86_400, "s", 0)
    """§3: a vector with a bootstrap time further ahead of the clock is ignored as a whole."""
    vector_bytes: int = number(7_500, "bytes", 1)
    """A longer vector goes out in parts (`splitting.py`). A packet holds 8,800 bytes, names and
    signature among them."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check(self)
        if self.vector_bytes < (least := self.limits.name_bytes + 64):
            raise ValueError(
                f"`vector_bytes` must be at least {least}, `limits.name_bytes` + 64 "
                f"(got {self.vector_bytes})"
            )
