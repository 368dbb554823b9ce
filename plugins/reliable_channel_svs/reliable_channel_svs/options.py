"""Settings of the state machine: the specification's, what it leaves open, and the limits."""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from reliable_channel.sds.declared import POSITIVE, SHARE_BELOW_1, Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Where implementations differ. The defaults are the specification's, read literally."""

    merge_the_trigger: Annotated[
        bool,
        Doc("""The vector that led to Suppression State is part of `MergedStateVector` (NDNts,
        ndn-svs; ndnd: no). With it the parts of a split vector add up."""),
    ] = True
    leave_suppression_at_once: Annotated[
        bool,
        Doc("An up-to-date vector ends Suppression State (ndnd) rather than the timer alone."),
    ] = False
    missing_names_may_be_recent: Annotated[
        bool,
        Doc("""A node that is missing in an outdated vector was as good as 0 in it, so that the
        rule for just updated nodes holds for it too (ndnd: never)."""),
    ] = True
    own_future: Annotated[
        Literal["rebootstrap", "adopt"],
        Doc("""What to do when others know more of us than we do: number the next publication
        under a new bootstrap time, or go on above what they say (ndnd, NDNts, ndn-svs), which
        lets anybody use up our numbers. Whose bootstrap times reach half of
        `limits.bootstrap_times` goes on likewise."""),
    ] = "rebootstrap"

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

    names: Annotated[int, Bound(1), Unit("nodes"), Doc("Nodes in the vector.")] = 10_000
    bootstrap_times: Annotated[int, Bound(1), Doc("Bootstrap times of a node.")] = 64
    name_bytes: Annotated[int, Bound(1), Doc("Encoded length of a node's name.")] = 1_024
    events: Annotated[
        int,
        Bound(1),
        Unit("events"),
        Doc("Events that wait to be taken; then the oldest goes, and `EventsDropped` says so."),
    ] = 10_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class SvsOptions:
    """What all members of a group should have alike."""

    periodic_timeout_ms: Annotated[int, Bound(1), Doc("§4.1, PeriodicTimeout.")] = 30_000
    periodic_jitter: Annotated[
        float, SHARE_BELOW_1, Doc("It is drawn uniformly from this much below to this much above.")
    ] = 0.1
    suppression_period_ms: Annotated[int, Bound(1), Doc("§4.1, SuppressionPeriod.")] = 200
    decay_factor: Annotated[float, POSITIVE, Doc("§4.1, f of SuppressionTimeout.")] = 10.0
    max_bootstrap_ahead_s: Annotated[
        int,
        Bound(0),
        Doc("§3: a vector with a bootstrap time further ahead of the clock is ignored as a whole."),
    ] = 86_400
    vector_bytes: Annotated[
        int,
        Bound(1),
        Doc("""A longer vector goes out in parts (`splitting.py`). A packet holds 8,800 bytes,
        names and signature among them."""),
    ] = 7_500
    behaviour: Behaviour = field(default_factory=Behaviour)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check(self)
        if self.vector_bytes < (least := self.limits.name_bytes + 64):
            raise ValueError(
                f"`vector_bytes` must be at least {least}, `limits.name_bytes` + 64 "
                f"(got {self.vector_bytes})"
            )
