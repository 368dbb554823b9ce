"""What audits find, and what they are asked to overlook."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

SETTLE_MS: Final = 10_000
"""How long a participant must have been there afterwards before what did not happen counts as
broken: until then it may be on its way."""


class Audit(Enum):
    """The promises of a channel, in the order of a report."""

    DELIVERY = "delivery"
    EXACTLY_ONCE = "exactly_once"
    CAUSAL_ORDER = "causal_order"
    EQUAL_LOGS = "equal_logs"
    IDS = "ids"
    ACKNOWLEDGEMENTS = "acknowledgements"
    REPAIR = "repair"
    CLOCK = "clock"
    JOURNALS = "journals"
    MEMBERS = "members"
    BLOOM_FILTERS = "bloom_filters"


PROMISES: Final = {
    Audit.DELIVERY: "every message was delivered to everybody who was there",
    Audit.EXACTLY_ONCE: "each message was delivered once",
    Audit.CAUSAL_ORDER: "no message was delivered before one that it refers to",
    Audit.EQUAL_LOGS: "all logs have one order",
    Audit.IDS: "an id stands for one message",
    Audit.ACKNOWLEDGEMENTS: "a proof of receipt was told as an acknowledgement",
    Audit.REPAIR: "repair ends: it rests, and gives up",
    Audit.CLOCK: "clocks go forward, and agree",
    Audit.JOURNALS: "nobody was there twice at a time",
    Audit.MEMBERS: "nobody sent what no honest member sends",
    Audit.BLOOM_FILTERS: "bloom filters have what their sender had of late",
}
"""What each audit says where it finds nothing."""


class Finding(NamedTuple):
    """A promise that was broken."""

    audit: str
    """The value of an `Audit`."""
    channel_id: str
    participant_id: str
    """At whom."""
    life: int
    message_id: str
    """Which message; empty where it is about none."""
    at_ms: int
    """Since when."""
    detail: str
