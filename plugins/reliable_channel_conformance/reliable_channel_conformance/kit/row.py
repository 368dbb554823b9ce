"""Row of the table, with a rule, its sentence in the specification, and its check."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from .bench import Check


class Level(StrEnum):
    """Strength of a requirement in the specification."""

    REQUIRED = "required"
    ADVISED = "advised"
    """SHOULD or MAY, or a need of the channel's promises that the specification does not
    mention."""


class Result(StrEnum):
    """Result of a row's check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"
    """The peer ended, or could not be started. The text of the result gives the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """Rule of the table with its check."""

    name: str
    group: str
    level: Level
    source: str
    """Section of the specification with the rule."""
    sentence: str
    """Sentence of the specification that states the rule."""
    check: Check

    @property
    def expected(self) -> str:
        """Description of the expected observation, from the check's docstring."""
        return " ".join((self.check.__doc__ or "").split())


def required(group: str, source: str, sentence: str) -> Callable[[Check], Row]:
    """Return a decorator that makes a row for a rule with MUST."""
    return _row(group, Level.REQUIRED, source, sentence)


def advised(group: str, source: str, sentence: str) -> Callable[[Check], Row]:
    """Return a decorator that makes a row for a rule with SHOULD."""
    return _row(group, Level.ADVISED, source, sentence)


def _row(group: str, level: Level, source: str, sentence: str) -> Callable[[Check], Row]:
    def made(check: Check) -> Row:
        return Row(check.__name__.replace("_", "-"), group, level, source, sentence, check)

    return made
