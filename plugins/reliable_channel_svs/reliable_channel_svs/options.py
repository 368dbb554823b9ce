"""Options of the state machine, from the specification and from this implementation, and limits."""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from reliable_channel.sds.declared import POSITIVE, SHARE_BELOW_1, Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Choices in which SVS implementations differ. The defaults follow the text of the
    specification."""

    merge_the_trigger: Annotated[
        bool,
        Doc("""True if the vector that led to Suppression State becomes part of `MergedStateVector`
            (not in ndnd). If True, the parts of a split vector are merged completely."""),
    ] = True
    leave_suppression_at_once: Annotated[
        bool,
        Doc("""True if an up-to-date vector ends Suppression State, as in ndnd. If False, only the
            timer ends Suppression State."""),
    ] = False
    missing_names_may_be_recent: Annotated[
        bool,
        Doc("""True if a node that is missing in an outdated vector counts as 0. If True, the rule
            for just updated nodes also applies to missing nodes, unlike in ndnd."""),
    ] = True
    own_future: Annotated[
        Literal["rebootstrap", "adopt"],
        Doc("""Reaction to members that claim more publications of this node than it made. With
            `rebootstrap`, the next publication is numbered under a new bootstrap time. With
            `adopt`, numbers continue above the claimed number, as in ndnd, NDNts and ndn-svs.
            `adopt` allows any member to use up the numbers of this node. A node with half of
            `limits.bootstrap_times` uses `adopt` in any case."""),
    ] = "rebootstrap"

    def __post_init__(self) -> None:
        check(self)


NDND: Final = Behaviour(
    merge_the_trigger=False,
    leave_suppression_at_once=True,
    missing_names_may_be_recent=False,
    own_future="adopt",
)
"""Behaviour of ndnd v1.5.3 in the choices that the specification leaves open. One difference
remains, because ndnd applies entries before a bootstrap time that is in the future."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the data that is kept from other members' vectors. Data beyond a limit is ignored,
    with the event `LimitReached`."""

    names: Annotated[
        int, Bound(1), Unit("nodes"), Doc("Maximum number of nodes in the state vector.")
    ] = 10_000
    bootstrap_times: Annotated[
        int, Bound(1), Doc("Maximum number of bootstrap times of a node.")
    ] = 64
    name_bytes: Annotated[int, Bound(1), Doc("Maximum encoded length of a node's name.")] = 1_024
    events: Annotated[
        int,
        Bound(1),
        Unit("events"),
        Doc("""Maximum number of events that may wait for the application. Beyond the maximum, the
            oldest event is dropped, with the event `EventsDropped`."""),
    ] = 10_000

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class SvsOptions:
    """Options that should be equal for all members of a group."""

    periodic_timeout_ms: Annotated[
        int,
        Bound(1),
        Doc("PeriodicTimeout of §4.1, the interval of Sync Interests."),
    ] = 30_000
    periodic_jitter: Annotated[
        float,
        SHARE_BELOW_1,
        Doc(
            "Share of the timeout by which each random timeout may be shorter or longer (uniform)."
        ),
    ] = 0.1
    suppression_period_ms: Annotated[
        int,
        Bound(1),
        Doc("SuppressionPeriod of §4.1, the longest suppression timeout."),
    ] = 200
    decay_factor: Annotated[
        float,
        POSITIVE,
        Doc("Factor f of the SuppressionTimeout in §4.1."),
    ] = 10.0
    max_bootstrap_ahead_s: Annotated[
        int,
        Bound(0),
        Doc("""Maximum lead of a bootstrap time, beyond which a vector is ignored as a whole
            (§3)."""),
    ] = 86_400
    vector_bytes: Annotated[
        int,
        Bound(1),
        Doc("""Maximum size of a vector that is sent in one packet (see `splitting.py`). A packet
            holds 8,800 bytes, including names and signature."""),
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
