"""Verdict of an audit, with the findings in a form for people and programs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import groupby, islice
from typing import Final, NamedTuple

from .findings import ESSENTIAL, Audit, Finding, severity

MAX_FINDINGS: Final = 1_000
"""Maximum number of findings of an audit that are listed. All findings are counted."""


NO_CASE: Final = "no case"
"""Text for a promise that had no case, such as a repair. A promise without a case does not make the
verdict unknown."""


class Value(Enum):
    """Value of a promise, which is kept, broken or unknown."""

    KEPT = "kept"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class SetAside(NamedTuple):
    """Unreadable lines in one file, with the reason."""

    path: str
    reason: str
    lines: int
    """Number of unreadable lines, or 0 for a file that was not read at all."""
    first_line: int


class Behind(NamedTuple):
    """Participant that lacks messages at the end of its journal, with their number."""

    channel_id: str
    participant_id: str
    messages: int
    since_ms: int
    """Time when the first of the missing messages was accepted."""


class Lost(NamedTuple):
    """Messages that a sender's channel accepted in one hour, but a receiver never got."""

    channel_id: str
    sender_id: str
    receiver_id: str
    hour_ms: int
    messages: int


class Rate(NamedTuple):
    """Delivery rate and latency of a channel, of an hour, or from a sender to a receiver."""

    channel_id: str
    hour_ms: int | None
    """Beginning of the hour in which the messages were accepted (None if not about an hour)."""
    sender_id: str | None
    receiver_id: str | None
    delivered: int
    lost: int
    rate: float
    """Share of the promised deliveries that happened."""
    p50_ms: int | None
    """Median latency from log to log (ms). If nothing was delivered, `p50_ms` is None."""
    p90_ms: int | None
    p99_ms: int | None
    max_ms: int | None

    @property
    def badness(self) -> tuple[float, int]:
        """Sort key of rates, with the lowest rate first, then the highest latency."""
        return self.rate, -(self.p99_ms or 0)


@dataclass(slots=True, kw_only=True)
class Verdict:
    """Verdict on all promises from journals, equal for `check` and `audit`."""

    participants: int = 0
    lives: int = 0
    """Number of participants' logs. A participant that starts without its previous state begins
    another log."""
    logs: int = 0
    """Number of logs that differ from each other."""
    messages: int = 0
    deliveries: int = 0
    """Number of messages in all logs, own messages included."""
    on_the_way: int = 0
    """Number of pairs of message and participant for which a judgement is too early."""
    behind: list[Behind] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list, compare=False)
    """Rates of channels, then of their hours and of the worst pairs (at most `MAX_FINDINGS`)."""
    clocks: dict[tuple[str, str], int | None] = field(default_factory=dict)
    """Certain lead of each wrong clock (ms, None if unknown), by channel and participant."""
    judged: dict[str, int] = field(default_factory=dict)
    """Number of cases for each audit."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Reasons why promises are unknown, by audit."""
    without_journal: list[tuple[str, str]] = field(default_factory=list)
    """Channel and name of each participant that sent messages but left no journal."""
    broken: dict[str, int] = field(default_factory=dict)
    """Number of broken promises for each audit."""
    findings: list[Finding] = field(default_factory=list)
    """First findings of each audit, at most `MAX_FINDINGS`."""
    set_aside: list[SetAside] = field(default_factory=list)
    misbehaviour: dict[str, int] = field(default_factory=dict)
    """Number of messages that no honest member sends, by kind of misbehaviour."""

    @property
    def value(self) -> Value:
        """Value of all audits together."""
        if any(self.broken.values()):
            return Value.BROKEN
        essential = any(self.unknown.get(audit.value) for audit in ESSENTIAL)
        partial = any(why != NO_CASE for why in self.unknown.values())
        return Value.UNKNOWN if essential or partial or not self.participants else Value.KEPT

    def of(self, audit: Audit) -> Value:
        if self.broken.get(audit.value):
            return Value.BROKEN
        is_unknown = audit.value in self.unknown or not self.judged.get(audit.value)
        return Value.UNKNOWN if is_unknown else Value.KEPT

    @property
    def delivered(self) -> tuple[int, int]:
        """Number of deliveries to others, and number of promised deliveries."""
        owed = self.judged.get(Audit.DELIVERY.value, 0)
        return owed - self.broken.get(Audit.DELIVERY.value, 0), owed

    @property
    def ahead_ms(self) -> dict[tuple[str, str], int]:
        """Certain lead of each clock (ms), by channel and participant."""
        return {whose: ms for whose, ms in self.clocks.items() if ms}

    @property
    def holds(self) -> bool:
        """True if every tested promise was kept and no promise is unknown."""
        return self.value is Value.KEPT

    def to_json(self) -> str:
        values = asdict(self)
        values["holds"] = self.holds
        values["value"] = self.value.value
        values["judged"] = {audit: self.judged[audit] for audit in sorted(self.judged)}
        values["findings"] = [
            each._asdict() | {"severity": severity(each)} for each in self.findings
        ]
        values["clocks"] = [[*whose, ms] for whose, ms in sorted(self.clocks.items())]
        values["behind"] = [each._asdict() for each in self.behind]
        del values["lost"]  # all that it says of pairs and hours is in the rates
        values["rates"] = [each._asdict() for each in self.rates]
        values["misbehaviour"] = dict(sorted(self.misbehaviour.items()))
        values["set_aside"] = [each._asdict() for each in self.set_aside]
        return json.dumps(values, indent=1)


def counted(findings: list[Finding]) -> tuple[dict[str, int], list[Finding]]:
    """Return the number of findings for each audit, and the first findings of each."""
    ordered = sorted(findings)
    by_audit = groupby(ordered, key=lambda each: each.audit)
    first = [each for _, found in by_audit for each in islice(found, MAX_FINDINGS)]
    return dict(Counter(each.audit for each in ordered)), first


def often(times: int) -> str:
    """Return a number of times in words, such as `once`."""
    return "once" if times == 1 else f"{times:,} times"
