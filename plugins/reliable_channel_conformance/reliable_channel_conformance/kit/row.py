"""One row of the table: a rule, its sentence in the specification, and its check."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from .bench import Check


class Level(StrEnum):
    """The strength of a demand of the specification."""

    REQUIRED = "required"
    ADVISED = "advised"
    """SHOULD, MAY, or a need of the channel's promises where the specification is silent."""


class Result(StrEnum):
    """The result of a row."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"
    """The peer ended, or could not be started. The text names the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """A rule and its check."""

    name: str
    group: str
    level: Level
    source: str
    """The section of the specification."""
    sentence: str
    """The sentence of the specification."""
    check: Check

    @property
    def expected(self) -> str:
        """The observation that the check makes, in its author's words."""
        return " ".join((self.check.__doc__ or "").split())


def required(group: str, source: str, sentence: str) -> Callable[[Check], Row]:
    """Make a row of a check for a rule with MUST."""
    return _row(group, Level.REQUIRED, source, sentence)


def advised(group: str, source: str, sentence: str) -> Callable[[Check], Row]:
    """Make a row of a check for a rule with SHOULD."""
    return _row(group, Level.ADVISED, source, sentence)


def _row(group: str, level: Level, source: str, sentence: str) -> Callable[[Check], Row]:
    def made(check: Check) -> Row:
        return Row(check.__name__.replace("_", "-"), group, level, source, sentence, check)

    return made
