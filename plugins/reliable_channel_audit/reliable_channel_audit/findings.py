"""Findings of audits, with the tolerances of the audits."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

SETTLE_MS: Final = 10_000
"""Maximum time that a message or reference may be on its way without a repair (ms). A message that
is absent longer counts as a broken promise."""


class Audit(Enum):
    """Promises of a channel, in the order of the report."""

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
"""Text about each audit that has no finding."""


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
_WRONG: Final = (Audit.ARRIVED, Audit.EXACTLY_ONCE, Audit.CAUSAL_ORDER, Audit.ACKNOWLEDGEMENTS)
_DIFFERENT: Final = (Audit.LOG_ORDER, Audit.EQUAL_LOGS, Audit.REFERENCES, Audit.JOURNALS)
SEVERITIES: Final[dict[str, tuple[Audit, ...]]] = {
    NOBODY_HAS_IT: (),
    "an application missed something, or received what it should not": (
        *(Audit.DELIVERY, Audit.IDS, Audit.RECEIVED),
    ),
    "a log or an acknowledgement is wrong": _WRONG,
    "logs, references or journals differ": _DIFFERENT,
    "what may lead to worse": (Audit.REPAIR, Audit.CLOCK),
}
"""Texts about the severities of findings, the worst first, with the audits of each."""


def severity(finding: Finding) -> int:
    """Return the severity of a finding as a place in `SEVERITIES`, from 0 (worst) to 4."""
    if finding.detail == NOBODY_HAS_IT:
        return 0
    audit = Audit(finding.audit)
    return next(rank for rank, audits in enumerate(SEVERITIES.values()) if audit in audits)
