"""What the doctor finds: each finding with what to do."""

from dataclasses import dataclass, field
from typing import Final, Literal

Level = Literal["ok", "note", "warning", "problem"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "note", "warning", "problem")


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of an examination."""

    level: Level
    """A `problem` stops the channel, a `warning` makes it worse, a `note` is for your judgement."""
    check: str
    """The name of the check, such as `node.reachable`."""
    where: str
    """What was examined: the address of a node, a file, or a setting."""
    text: str
    advice: str = ""


@dataclass(slots=True)
class Findings:
    """The results so far."""

    found: list[Finding] = field(default_factory=list)

    def add(self, level: Level, check: str, where: str, text: str, advice: str = "") -> None:
        """Add a result."""
        self.found.append(Finding(level, check, where, text, advice))

    @property
    def worst(self) -> Level:
        """The worst level of all."""
        return max((one.level for one in self.found), key=LEVELS.index, default="ok")
