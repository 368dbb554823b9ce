"""Options of a node on NDN."""

from dataclasses import dataclass, field
from typing import Annotated

from reliable_channel.sds.declared import Bound, Doc, Unit, check

from ..naming import NamingScheme
from ..options import SvsOptions


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Options of a node on NDN. The options of the state machine are in `svs`."""

    svs: SvsOptions = field(default_factory=SvsOptions)
    naming: NamingScheme = "spec"
    set_strategy: Annotated[
        bool,
        Doc("""True if the forwarder is asked to send Sync Interests to all members. Without the
            multicast strategy, a Sync Interest reaches only one member."""),
    ] = True
    window: Annotated[
        int,
        Bound(1),
        Unit("publications"),
        Doc(
            "Maximum number of a node's publications that are fetched at a time, under one "
            "bootstrap time."
        ),
    ] = 16
    concurrent_fetches: Annotated[
        int,
        Bound(1),
        Unit("Interests"),
        Doc("Maximum number of Interests for publications that may be open at a time."),
    ] = 64
    interest_lifetime_ms: Annotated[int, Bound(1)] = 1_000
    retry_min_ms: Annotated[
        int,
        Bound(1),
        Doc("""Pause after the first Interest for a publication that got no answer. The pause
            doubles after each Interest, up to `retry_max_ms`."""),
    ] = 100
    retry_max_ms: Annotated[int, Bound(1)] = 8_000
    give_up_after_ms: Annotated[int, Bound(1)] = 600_000
    store_bytes: Annotated[
        int,
        Bound(1),
        Doc("""Maximum size of the own publications that are kept for other members. Beyond the
            maximum, the oldest publication is dropped (`PublicationEvicted`)."""),
    ] = 64 * 1024 * 1024
    tell_gone: Annotated[
        bool,
        Doc("""True if the node answers requests for own publications that it no longer has. The
            answer, a Data packet of ContentType Nack, tells members that they need not ask again.
            Only use the option in groups of this package, because others may take the answer for
            the publication."""),
    ] = False
    segment_bytes: Annotated[
        int,
        Bound(1),
        Doc(
            "Maximum size of the content of a Data packet. Long names and signatures leave "
            "less room for the content."
        ),
    ] = 8_000
    segments: Annotated[
        int,
        Bound(1),
        Unit("segments"),
        Doc("Maximum number of segments of a publication, if the naming has segments (`svs-alo`)."),
    ] = 1_000
    backlog: Annotated[
        int,
        Bound(1),
        Unit("events"),
        Doc("""Maximum number of events that may wait for `events()`. Beyond the maximum,
            publications are fetched later, and other events are dropped."""),
    ] = 1_000
    reconnect_min_ms: Annotated[int, Bound(1)] = 100
    reconnect_max_ms: Annotated[int, Bound(1)] = 5_000
    freshness_ms: Annotated[
        int | None,
        Bound(0),
        Doc("""FreshnessPeriod of the node's own publications. Publications never change, so no
            member needs to request a fresh copy."""),
    ] = None

    def __post_init__(self) -> None:
        check(self)
