"""Settings of the state machine: those of the specification, choices that it leaves open, and
limits."""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from reliable_channel.sds.declared import POSITIVE, SHARE_BELOW_1, Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Choices in which implementations differ. The defaults follow the specification literally."""

    merge_the_trigger: Annotated[
        bool,
        Doc("""The vector that led to Suppression State is part of `MergedStateVector`, as in NDNts
        and ndn-svs but not in ndnd. With it the parts of a split vector add up."""),
    ] = True
    leave_suppression_at_once: Annotated[
        bool,
        Doc("""An up-to-date vector ends Suppression State, as in ndnd. Otherwise only the timer
        ends it."""),
    ] = False
    missing_names_may_be_recent: Annotated[
        bool,
        Doc("""A node that is missing in an outdated vector counts as 0 in it. So the rule for just
        updated nodes holds for it too. In ndnd it never does."""),
    ] = True
    own_future: Annotated[
        Literal["rebootstrap", "adopt"],
        Doc("""The reaction to other members that claim more publications of this node than it made.
        `rebootstrap` numbers the next publication under a new bootstrap time. `adopt` goes on above
        the claimed number, as in ndnd, NDNts and ndn-svs. That lets anybody use up the numbers. A
        node whose bootstrap times reach half of `limits.bootstrap_times` goes on likewise."""),
    ] = "rebootstrap"

    def __post_init__(self) -> None:
        check(self)


NDND: Final = Behaviour(
    merge_the_trigger=False,
    leave_suppression_at_once=True,
    missing_names_may_be_recent=False,
    own_future="adopt",
)
"""The choices of ndnd v1.5.3. The one exception is that ndnd applies the entries before a bootstrap
time that is too far ahead."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The amount that is kept of what other members say. Anything beyond it is left out, with
    `LimitReached`."""

    names: Annotated[int, Bound(1), Unit("nodes"), Doc("The nodes in the vector.")] = 10_000
    bootstrap_times: Annotated[int, Bound(1), Doc("The bootstrap times of a node.")] = 64
    name_bytes: Annotated[int, Bound(1), Doc("The encoded length of a node's name.")] = 1_024
    events: Annotated[
        int,
        Bound(1),
        Unit("events"),
        Doc("""The events that may wait for the application. Beyond it the oldest is dropped, with
        `EventsDropped`."""),
    ] = 10_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class SvsOptions:
    """Settings that should be equal for all members of a group."""

    periodic_timeout_ms: Annotated[
        int,
        Bound(1),
        Doc("The value PeriodicTimeout of §4.1."),
    ] = 30_000
    periodic_jitter: Annotated[
        float,
        SHARE_BELOW_1,
        Doc("The share of the timeout by which each draw may be shorter or longer, uniformly."),
    ] = 0.1
    suppression_period_ms: Annotated[
        int,
        Bound(1),
        Doc("The value SuppressionPeriod of §4.1."),
    ] = 200
    decay_factor: Annotated[
        float,
        POSITIVE,
        Doc("The factor f of the SuppressionTimeout in §4.1."),
    ] = 10.0
    max_bootstrap_ahead_s: Annotated[
        int,
        Bound(0),
        Doc("""A vector with a bootstrap time further ahead of the clock than this is ignored as a
        whole (§3)."""),
    ] = 86_400
    vector_bytes: Annotated[
        int,
        Bound(1),
        Doc("""A longer vector is sent in parts (`splitting.py`). A packet holds 8,800 bytes,
        including names and signature."""),
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
