"""Settings of a node on NDN."""

from dataclasses import dataclass, field
from typing import Annotated

from reliable_channel.sds.declared import Bound, Doc, Unit, check

from ..naming import NamingScheme
from ..options import SvsOptions


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Settings of a node. The settings of the state machine are in `svs`."""

    svs: SvsOptions = field(default_factory=SvsOptions)
    naming: NamingScheme = "spec"
    set_strategy: Annotated[
        bool,
        Doc("""Ask the forwarder to bring Sync Interests to all members. Without the multicast
        strategy a Sync Interest reaches only one of them."""),
    ] = True
    window: Annotated[
        int,
        Bound(1),
        Unit("publications"),
        Doc("The publications of one node and bootstrap time that are fetched at a time."),
    ] = 16
    concurrent_fetches: Annotated[
        int,
        Bound(1),
        Unit("Interests"),
        Doc("The Interests for publications that may be open at a time."),
    ] = 64
    interest_lifetime_ms: Annotated[int, Bound(1)] = 1_000
    retry_min_ms: Annotated[
        int,
        Bound(1),
        Doc("""The pause after the first Interest for a publication that found nothing. It doubles
        up to `retry_max_ms`."""),
    ] = 100
    retry_max_ms: Annotated[int, Bound(1)] = 8_000
    give_up_after_ms: Annotated[int, Bound(1)] = 600_000
    store_bytes: Annotated[
        int,
        Bound(1),
        Doc("""The own publications that are kept for other members. Beyond it the oldest is dropped
        (`PublicationEvicted`)."""),
    ] = 64 * 1024 * 1024
    tell_gone: Annotated[
        bool,
        Doc("""Answer requests for own publications that are no longer kept, including those of
        earlier runs. The answer says that they are gone (a Data of ContentType Nack), so that no
        member keeps asking for `give_up_after_ms`. Use it only in groups of this package: other
        implementations may take the answer for the publication."""),
    ] = False
    segment_bytes: Annotated[
        int,
        Bound(1),
        Doc("The content of one Data packet. Long names and signatures leave less room."),
    ] = 8_000
    segments: Annotated[
        int,
        Bound(1),
        Unit("segments"),
        Doc("The segments of one publication, where the naming has segments (`svs-alo`)."),
    ] = 1_000
    backlog: Annotated[
        int,
        Bound(1),
        Unit("events"),
        Doc("""The events that may wait for `events()`. Beyond it publications are fetched later,
        and other events are dropped."""),
    ] = 1_000
    reconnect_min_ms: Annotated[int, Bound(1)] = 100
    reconnect_max_ms: Annotated[int, Bound(1)] = 5_000
    freshness_ms: Annotated[
        int | None,
        Bound(0),
        Doc("""The FreshnessPeriod of own publications. They never change, so no member needs to ask
        for fresh ones."""),
    ] = None

    def __post_init__(self) -> None:
        check(self)
