"""One result of `reliable-channel doctor`, also of the checks that plugins register."""

from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["ok", "note", "warning", "problem"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "note", "warning", "problem")


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check of the doctor.

    Raises:
        ValueError: the level is not one of `ok`, `note`, `warning` and `problem`.
    """

    level: Level
    """A `problem` stops the channel, a `warning` makes it worse, a `note` is for your judgement."""
    check: str
    """Name of the check, such as `node.reachable`."""
    where: str
    """Object of the check: the address of a node, a file, or a setting."""
    text: str
    advice: str = ""
    """Advice to the user (empty if no action is needed)."""

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"`level` must be one of {', '.join(LEVELS)} (got {self.level!r})")
