"""Findings of audits, and tolerances."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

SETTLE_MS: Final = 10_000
"""Time that a message or a reference may be on its way without being repaired (ms). A longer
absence counts as broken."""


class Audit(Enum):
    """Promises of a channel, in the order of a report."""

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
"""Text of each audit without a finding."""


ESSENTIAL: Final = frozenset(
    {Audit.DELIVERY, Audit.ARRIVED, Audit.RECEIVED, Audit.EXACTLY_ONCE, Audit.EQUAL_LOGS, Audit.IDS}
)
"""Audits without which a channel's verdict is unknown. The others need an occasion."""


class Coverage(NamedTuple):
    """Cases of an audit in one life, and cases that it could not judge."""

    channel_id: str
    participant_id: str
    life: int
    audit: str
    cases: int
    why: str | None
    """Reason why some could not be judged. None if all could."""


class HeardSender(NamedTuple):
    """Participant as another one heard it."""

    channel_id: str
    participant_id: str
    life: int
    sender_id: str
    messages: int
    last_lamport: int
    """Lamport timestamp of its last message."""
    last_ms: int
    """Arrival time of that message."""


class Gap(NamedTuple):
    """Time span in which a participant's journal lacks lines. The participant is owed nothing in
    it, and missing entries prove nothing."""

    channel_id: str
    participant_id: str
    life: int
    from_ms: int
    to_ms: int
    why: str


ALWAYS_MS: Final = -(2**53), 2**53
"""Begin and end of a time without limits."""


class Orphan(NamedTuple):
    """Reference to a message that this participant does not have in the end."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    """Id of the referenced message."""
    first_segment_id: str
    """Id of the referring message."""
    at_ms: int


class Finding(NamedTuple):
    """Broken promise."""

    audit: str
    """Name of the audit, a value of `Audit`."""
    channel_id: str
    participant_id: str
    """Participant that the finding is about."""
    life: int
    message_id: str
    """Id of the message. Empty if it is about no message."""
    at_ms: int
    """Time since which the promise is broken."""
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
    """Return the severity from 0, the worst, to 4. They are: an acknowledged message that no
    participant has; messages that an application missed or should not have; wrong logs; logs that
    differ; possible causes."""
    if finding.detail == NOBODY_HAS_IT:
        return 0
    audit = Audit(finding.audit)
    return next(rank for rank, audits in enumerate(_SEVERITIES) if audit in audits)
