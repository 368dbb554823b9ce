"""What was found, in the form in which a person and a program are told."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple

from .findings import Finding

MOST_FINDINGS: Final = 1_000
"""So many findings of an audit are told one by one; all are counted."""


class SetAside(NamedTuple):
    """Lines that could not be read, of one file and for one reason."""

    path: str
    reason: str
    lines: int
    """0 for a file of which nothing is read."""
    first_line: int


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What journals say of the promises; the same whoever judged."""

    participants: int = 0
    lives: int = 0
    """Logs: who starts again without its state begins another one."""
    logs: int = 0
    """Different ones among them."""
    messages: int = 0
    deliveries: int = 0
    """Messages in logs, own ones included."""
    on_the_way: int = 0
    """Pairs of message and participant for which it is too early to say."""
    broken: dict[str, int] = field(default_factory=dict)
    """How often each promise was broken, by audit."""
    findings: list[Finding] = field(default_factory=list)
    """Of each audit the first ones, at most `MOST_FINDINGS`."""
    set_aside: list[SetAside] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether no promise was broken."""
        return not any(self.broken.values())

    def to_json(self) -> str:
        """The whole, for programs."""
        values = asdict(self)
        values["holds"] = self.holds
        values["findings"] = [each._asdict() for each in self.findings]
        values["set_aside"] = [each._asdict() for each in self.set_aside]
        return json.dumps(values, indent=1)


def counted(findings: list[Finding]) -> tuple[dict[str, int], list[Finding]]:
    """How many findings each audit has, and the first ones of each."""
    broken: Counter[str] = Counter()
    first = []
    for each in sorted(findings):
        broken[each.audit] += 1
        if broken[each.audit] <= MOST_FINDINGS:
            first.append(each)
    return dict(broken), first
