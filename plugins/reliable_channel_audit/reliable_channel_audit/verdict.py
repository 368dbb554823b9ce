"""The findings, in the form that a person and a program read."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from .findings import ESSENTIAL, Audit, Finding, severity

MAX_FINDINGS: Final = 1_000
"""Maximum number of findings of an audit that are listed; all are counted."""


NO_CASE: Final = "no case"
"""Of a promise that waits for an occasion, as repair does, that alone leaves nothing unknown."""


class Value(Enum):
    """Whether a promise was kept."""

    KEPT = "kept"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class SetAside(NamedTuple):
    """Lines that could not be read, of one file and for one reason."""

    path: str
    reason: str
    lines: int
    """0 for a file of which nothing is read."""
    first_line: int


class Behind(NamedTuple):
    """A participant that lacks messages at the end of its journal."""

    channel_id: str
    participant_id: str
    messages: int
    since_ms: int
    """When the first of them was accepted."""


class Lost(NamedTuple):
    """Messages of a sender that were accepted in one hour, and not delivered to a receiver."""

    channel_id: str
    sender_id: str
    receiver_id: str
    hour_ms: int
    messages: int


class Rate(NamedTuple):
    """Delivery rate and latency of a channel, of an hour, or from a sender to a receiver."""

    channel_id: str
    hour_ms: int | None
    """Begin of the hour in which the messages were accepted, if it is about one."""
    sender_id: str | None
    receiver_id: str | None
    delivered: int
    lost: int
    rate: float
    """Share of what was owed that was delivered."""
    p50_ms: int | None
    """Latency from log to log that half of the deliveries do not exceed; None without any."""
    p90_ms: int | None
    p99_ms: int | None
    max_ms: int | None

    @property
    def badness(self) -> tuple[float, int]:
        """Sorts the lowest rate first, then the slowest."""
        return self.rate, -(self.p99_ms or 0)


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What journals show of the promises; the same for `check` and `audit`."""

    participants: int = 0
    lives: int = 0
    """Logs: a participant that starts again without its state begins another one."""
    logs: int = 0
    """Different ones among them."""
    messages: int = 0
    deliveries: int = 0
    """Messages in logs, own ones included."""
    on_the_way: int = 0
    """Pairs of message and participant for which it is too early to say."""
    behind: list[Behind] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list, compare=False)
    """Of each channel, then of its hours, and of pairs the worst, at most `MAX_FINDINGS`."""
    clocks: dict[tuple[str, str], int | None] = field(default_factory=dict)
    """By channel and participant how far a wrong clock is ahead for certain (ms); None: unknown."""
    judged: dict[str, int] = field(default_factory=dict)
    """How many cases each audit looked at."""
    unknown: dict[str, str] = field(default_factory=dict)
    """By audit why it is not known whether its promise was kept."""
    without_journal: list[tuple[str, str]] = field(default_factory=list)
    """Channel and name of the participants that were heard and left no journal."""
    broken: dict[str, int] = field(default_factory=dict)
    """How often each promise was broken, by audit."""
    findings: list[Finding] = field(default_factory=list)
    """Of each audit the first ones, at most `MAX_FINDINGS`."""
    set_aside: list[SetAside] = field(default_factory=list)
    misbehaviour: dict[str, int] = field(default_factory=dict)
    """What strangers or members sent that no honest member sends, and how often it came."""

    @property
    def value(self) -> Value:
        """What all audits together find."""
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
        """Messages that were delivered to others, and those that were to be."""
        owed = self.judged.get(Audit.DELIVERY.value, 0)
        return owed - self.broken.get(Audit.DELIVERY.value, 0), owed

    @property
    def ahead_ms(self) -> dict[tuple[str, str], int]:
        """By channel and participant how far a clock is ahead for certain, if it is (ms)."""
        return {whose: ms for whose, ms in self.clocks.items() if ms}

    @property
    def holds(self) -> bool:
        """Whether every promise that was put to the test was kept, and it is known."""
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
    """How many findings each audit has, and the first ones of each."""
    broken: Counter[str] = Counter()
    first = []
    for each in sorted(findings):
        broken[each.audit] += 1
        if broken[each.audit] <= MAX_FINDINGS:
            first.append(each)
    return dict(broken), first


def often(times: int) -> str:
    """How many times, in words."""
    return "once" if times == 1 else f"{times:,} times"
