"""Findings of audits, with the tolerances of the audits."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, Self

SETTLE_MS: Final = 10_000
"""Maximum time that a message or reference may be on its way without a repair (ms). A message that
is absent longer counts as a broken promise."""


class Audit(Enum):
    """Promises of a channel, in the order of the report. Each has a name, a severity and a text."""

    DELIVERY = "delivery", 1, "every message was delivered to all participants that were there"
    ARRIVED = "arrived", 2, "logs have what arrived"
    RECEIVED = "received", 1, "applications received each message once, whole and in order"
    EXACTLY_ONCE = "exactly_once", 2, "each message entered a log once"
    CAUSAL_ORDER = "causal_order", 2, "no message was delivered before one that it refers to"
    LOG_ORDER = "log_order", 3, "each log is in order of Lamport timestamp and id"
    EQUAL_LOGS = "equal_logs", 3, "all logs have one order"
    IDS = "ids", 1, "an id stands for one message, which its sender sent"
    REFERENCES = "references", 3, "messages refer to messages that a participant has"
    ACKNOWLEDGEMENTS = (
        "acknowledgements",
        2,
        "messages are acknowledged if, and only if, others have them",
    )
    REPAIR = "repair", 4, "repair ends: it rests, and gives up"
    CLOCK = "clock", 4, "clocks go forward, and agree"
    JOURNALS = "journals", 3, "no participant was there twice at a time"

    _value_: str
    severity: int
    """Severity of findings as a place in `SEVERITIES`."""
    promise: str
    """Text about an audit that has no finding."""

    def __new__(cls, name: str, severity: int, promise: str) -> Self:
        audit = object.__new__(cls)
        audit._value_, audit.severity, audit.promise = name, severity, promise
        return audit

    __hash__ = object.__hash__  # that of Enum is Python, and cases are counted for every line


ESSENTIAL: Final = frozenset(
    {Audit.DELIVERY, Audit.ARRIVED, Audit.RECEIVED, Audit.EXACTLY_ONCE, Audit.EQUAL_LOGS, Audit.IDS}
)
"""Audits without which the verdict on a channel is unknown. Other audits only apply to channels
with an occasion for them."""


class Coverage(NamedTuple):
    """Number of cases of an audit for one participant's log, with the reason for unjudged cases."""

    channel_id: str
    participant_id: str
    life: int
    audit: str
    cases: int
    why: str | None
    """Reason why some cases could not be judged. If all cases were judged, `why` is None."""


class HeardSender(NamedTuple):
    """Participant from which another participant received messages."""

    channel_id: str
    participant_id: str
    life: int
    sender_id: str
    messages: int
    last_lamport: int
    """Lamport timestamp of the sender's last message."""
    last_ms: int
    """Arrival time of the sender's last message."""


class Gap(NamedTuple):
    """Time span in which a participant's journal lacks lines. During a gap no delivery is required,
    and missing entries prove nothing."""

    channel_id: str
    participant_id: str
    life: int
    from_ms: int
    to_ms: int
    why: str


ALWAYS_MS: Final = -(2**53), 2**53
"""Beginning and end of a time range without limits (ms)."""


class Orphan(NamedTuple):
    """Reference to a message that the participant lacks at the end."""

    channel_id: str
    participant_id: str
    life: int
    message_id: str
    """Id of the message that is referred to."""
    first_segment_id: str
    """Id of the message that contains the reference."""
    at_ms: int


class Finding(NamedTuple):
    """Broken promise of a channel."""

    audit: str
    """Name of the audit, which is a value of `Audit`."""
    channel_id: str
    participant_id: str
    """Participant that the finding is about."""
    life: int
    message_id: str
    """Id of the message that the finding is about (empty without a message)."""
    at_ms: int
    """Time since which the promise is broken."""
    detail: str


NOBODY_HAS_IT: Final = "acknowledged, and no other participant has it"
SEVERITIES: Final = (
    NOBODY_HAS_IT,
    "an application missed something, or received what it should not",
    "a log or an acknowledgement is wrong",
    "logs, references or journals differ",
    "what may lead to worse",
)
"""Texts about the severities of findings, the worst first."""
_RANKS: Final = {audit.value: audit.severity for audit in Audit}


def severity(finding: Finding) -> int:
    """Return the severity of a finding as a place in `SEVERITIES`, from 0 (worst) to 4."""
    return 0 if finding.detail == NOBODY_HAS_IT else _RANKS[finding.audit]
