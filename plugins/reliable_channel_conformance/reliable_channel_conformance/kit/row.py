"""One row of the table: a rule, the sentence that it comes from, and the check that shows it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from .bench import Check


class Level(StrEnum):
    """How strongly the specification demands it."""

    REQUIRED = "required"
    ADVISED = "advised"
    """SHOULD, MAY, or what a promise of the channel needs where the specification is silent."""


class Result(StrEnum):
    """What became of a row."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"
    """The peer ended, or could not be started: the text says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """A rule and its check."""

    name: str
    group: str
    level: Level
    source: str
    """The section of the specification."""
    sentence: str
    """What it says there."""
    check: Check

    @property
    def expected(self) -> str:
        """What the check looks at, in its author's words."""
        return " ".join((self.check.__doc__ or "").split())


def required(group: str, source: str, sentence: str) -> Callable[[Check], Row]:
    """Make a row of a check, of what MUST be."""
    return _row(group, Level.REQUIRED, source, sentence)


def advised(group: str, source: str, sentence: str) -> Callable[[Check], Row]:
    """Make a row of a check, of what SHOULD be."""
    return _row(group, Level.ADVISED, source, sentence)


def _row(group: str, level: Level, source: str, sentence: str) -> Callable[[Check], Row]:
    def made(check: Check) -> Row:
        return Row(check.__name__.replace("_", "-"), group, level, source, sentence, check)

    return made
