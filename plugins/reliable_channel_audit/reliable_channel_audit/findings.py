"""What audits find, and what they are asked to overlook."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

SETTLE_MS: Final = 10_000
"""Time that a message or a reference may be on its way (ms), without being repaired. What a
participant does not do for longer counts as broken."""


class Audit(Enum):
    """The promises of a channel, in the order of a report."""

    DELIVERY = "delivery"
    ARRIVED = "arrived"
    RECEIVED = "received"
    EXACTLY_ONCE = "exactly_once"
    CAUSAL_ORDER = "causal_order"
    LOG_ORDER = "log_order"
    EQUAL_LOGS = "equal_logs"
    IDS = "ids"
    REFERENCES = "references"
    ACKNOWLEDGEMENTS = "acknowledgements"
    REPAIR = "repair"
    CLOCK = "clock"
    JOURNALS = "journals"

    __hash__ = object.__hash__  # that of Enum is Python, and cases are counted for every line


PROMISES: Final = {
    Audit.DELIVERY: "every message was delivered to all participants that were there",
    Audit.ARRIVED: "logs have what arrived",
    Audit.RECEIVED: "applications received each message once, whole and in order",
    Audit.EXACTLY_ONCE: "each message entered a log once",
    Audit.CAUSAL_ORDER: "no message was delivered before one that it refers to",
    Audit.LOG_ORDER: "each log is in order of Lamport timestamp and id",
    Audit.EQUAL_LOGS: "all logs have one order",
    Audit.IDS: "an id stands for one message, which its sender sent",
    Audit.REFERENCES: "messages refer to messages that a participant has",
    Audit.ACKNOWLEDGEMENTS: "messages are acknowledged if, and only if, others have them",
    Audit.REPAIR: "repair ends: it rests, and gives up",
    Audit.CLOCK: "clocks go forward, and agree",
    Audit.JOURNALS: "no participant was there twice at a time",
}
"""What each audit says where it finds nothing."""


ESSENTIAL: Final = frozenset(
    {Audit.DELIVERY, Audit.ARRIVED, Audit.RECEIVED, Audit.EXACTLY_ONCE, Audit.EQUAL_LOGS, Audit.IDS}
)
"""Without a case of one of these nothing is known of a channel; others wait for an occasion."""


class Coverage(NamedTuple):
    """What an audit looked at in one life, and what it could not judge."""

    channel_id: str
    participant_id: str
    life: int
    audit: str
    cases: int
    why: str | None
    """Why some could not be judged; None where all could."""


class HeardSender(NamedTuple):
    """A participant, as another one heard it."""

    channel_id: str
    participant_id: str
    life: int
    sender_id: str
    messages: int
    last_lamport: int
    """Of its last message."""
    last_ms: int
    """When that came."""


class Gap(NamedTuple):
    """A time of which a participant's journal lacks lines: nothing is owed to it then, and nothing
    is concluded from what its journal does not have."""

    channel_id: str
    participant_id: str
    life: int
    from_ms: int
    to_ms: int
    why: str


ALWAYS_MS: Final = -(2**53), 2**53
"""Begin and end of a time without limits."""


class Orphan(NamedTuple):
    """A reference to a message that this participant does not have in the end."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    """Of the message that is referred to."""
    first_segment_id: str
    """Of the message that refers to it."""
    at_ms: int


class Finding(NamedTuple):
    """A promise that was broken."""

    audit: str
    """The value of an `Audit`."""
    channel_id: str
    participant_id: str
    """The participant that the finding is about."""
    life: int
    message_id: str
    """Which message; empty where it is about none."""
    at_ms: int
    """Since when."""
    detail: str


NOBODY_HAS_IT: Final = "acknowledged, and no other participant has it"
_SEVERITIES: Final = (
    (),
    (Audit.DELIVERY, Audit.IDS, Audit.RECEIVED),
    (Audit.ARRIVED, Audit.EXACTLY_ONCE, Audit.CAUSAL_ORDER, Audit.ACKNOWLEDGEMENTS),
    (Audit.LOG_ORDER, Audit.EQUAL_LOGS, Audit.REFERENCES, Audit.JOURNALS),
    (Audit.REPAIR, Audit.CLOCK),
)


def severity(finding: Finding) -> int:
    """From 0, the worst, to 4: an acknowledged message that no participant has; what an application
    missed or should not have; logs that are wrong; logs that differ; what may lead there."""
    if finding.detail == NOBODY_HAS_IT:
        return 0
    audit = Audit(finding.audit)
    return next(rank for rank, audits in enumerate(_SEVERITIES) if audit in audits)
