"""Settings of a node on NDN."""

from dataclasses import dataclass, field

from reliable_channel.sds.declared import check, number, switch

from ..naming import NamingScheme
from ..options import SvsOptions


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Settings of a node; those of the state machine are in `svs`."""

    svs: SvsOptions = field(default_factory=SvsOptions)
    naming: NamingScheme = "spec"
    set_strategy: bool = switch(True)
    """Ask the forwarder to bring Sync Interests to all members. Without the multicast strategy a
    Sync Interest reaches one of them."""
    window: int = number(16, "publications", 1)
    """Publications of one node and bootstrap time that are fetched at a time."""
    concurrent_fetches: int = number(64, "Interests", 1)
    """Interests for publications that are open at a time."""
    interest_lifetime_ms: int = number(1_000, "ms", 1)
    retry_min_ms: int = number(100, "ms", 1)
    """Pause after the first Interest for a publication that found nothing; it doubles up to
    `retry_max_ms`."""
    retry_max_ms: int = number(8_000, "ms", 1)
    give_up_after_ms: int = number(600_000, "ms", 1)
    store_bytes: int = number(64 * 1024 * 1024, "bytes", 1)
    """Own publications that are kept for others; then the oldest goes (`PublicationEvicted`)."""
    tell_gone: bool = switch(False)
    """Answer for own publications that are no longer kept, those of earlier lives too, that they
    are gone (a Data of ContentType Nack), so that no member asks for `give_up_after_ms`. Only for
    groups of this package: others may take the answer for the publication."""
    segment_bytes: int = number(8_000, "bytes", 1)
    """Content of one Data packet, as ndnd has it; less, where names and signature are long."""
    segments: int = number(1_000, "segments", 1)
    """Segments of one publication, where the naming has segments (`svs-alo`)."""
    backlog: int = number(1_000, "events", 1)
    """Events that wait for `events()`. Publications then wait to be fetched, others are dropped."""
    reconnect_min_ms: int = number(100, "ms", 1)
    reconnect_max_ms: int = number(5_000, "ms", 1)
    freshness_ms: int | None = number(None, "ms", 0)
    """FreshnessPeriod of own publications. They never change, and no member needs to ask for fresh
    ones."""

    def __post_init__(self) -> None:
        check(self)
