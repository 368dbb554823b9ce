"""Findings of the doctor command, each with advice."""

from dataclasses import dataclass, field

from ..._contracts.finding import LEVELS, Finding, Level


@dataclass(slots=True)
class Findings:
    found: list[Finding] = field(default_factory=list)

    def add(self, level: Level, check: str, where: str, text: str, advice: str = "") -> None:
        self.found.append(Finding(level, check, where, text, advice))

    @property
    def worst(self) -> Level:
        """Highest level of all findings."""
        best: Level = "ok"
        return max((one.level for one in self.found), key=LEVELS.index, default=best)
