"""Settings of a node on NDN."""

from dataclasses import dataclass, field

from ..naming import NamingScheme
from ..options import SvsOptions


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Settings of a node; those of the state machine are in `svs`."""

    svs: SvsOptions = field(default_factory=SvsOptions)
    naming: NamingScheme = "spec"
    set_strategy: bool = True
    """Ask the forwarder to bring Sync Interests to all members. Without the multicast strategy a
    Sync Interest reaches one of them."""
    window: int = 16
    """Publications of one node and bootstrap time that are fetched at a time."""
    concurrent_fetches: int = 64
    """Interests for publications that are open at a time."""
    interest_lifetime_ms: int = 1_000
    retry_min_ms: int = 100
    """Pause after the first Interest for a publication that found nothing; it doubles up to
    `retry_max_ms`."""
    retry_max_ms: int = 8_000
    give_up_after_ms: int = 600_000
    store_bytes: int = 64 * 1024 * 1024
    """Own publications that are kept for others; then the oldest goes (`PublicationEvicted`)."""
    tell_gone: bool = False
    """Answer for own publications that are no longer kept, those of earlier lives too, that they
    are gone (a Data of ContentType Nack), so that no member asks for `give_up_after_ms`. Only for
    groups of this package: others may take the answer for the publication."""
    segment_bytes: int = 8_000
    """Content of one Data packet, as ndnd has it; less, where names and signature are long."""
    segments: int = 1_000
    """Segments of one publication, where the naming has segments (`svs-alo`)."""
    backlog: int = 1_000
    """Events that wait for `events()`. Publications then wait to be fetched, others are dropped."""
    reconnect_min_ms: int = 100
    reconnect_max_ms: int = 5_000
    freshness_ms: int | None = None
    """FreshnessPeriod of own publications. They never change, and no member needs to ask for fresh
    ones."""
