"""From a word of a message to a value: by a parameter's annotation. Pure, no I/O."""

import enum
import math
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from ..keys import PublicKey
from .texts import ENGLISH, BotTexts

Convert: TypeAlias = Callable[[str], Any]

SHOWN: Final = 50
"""Maximum length of a quotation in an answer, in characters."""
_YES: Final = ("yes", "true", "on", "1")
_NO: Final = ("no", "false", "off", "0")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"(?:[0-9]{1,9}[smhdw])+", re.ASCII)


class UsageError(ValueError):
    """A text does not fit a command.

    Args:
        problem: the name of a text of `BotTexts`.
        given: what that text is filled in with.
    """

    def __init__(self, problem: str, **given: Any) -> None:
        super().__init__(ENGLISH.render(problem, **given))
        self.problem = problem
        self.given = given

    def text(self, texts: BotTexts) -> str:
        """What is wrong, in a bot's own words."""
        return texts.render(self.problem, **self.given)


@dataclass(frozen=True, slots=True)
class Converter:
    """Reads a parameter as your function does: `Annotated[Color, Converter(parse_color, …)]`."""

    read: Convert
    """From a word to the value; raises `ValueError` for a word that it cannot read."""
    meaning: str
    """What the usage of a command shows, such as `color`."""
    rule: str
    """What the user reads after the parameter's name, such as `must be a color like #ff0000`."""


@dataclass(frozen=True, slots=True)
class Between:
    """Bounds of a number, date or duration, both allowed: `Annotated[int, Between(1, 20)]`."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Reads:
    """How a word becomes a value."""

    convert: Convert
    meaning: str
    """The name of the text for what it takes; empty where `choices` are named."""
    problem: str
    """The name of the text for a word that it cannot read."""
    choices: tuple[str, ...] = ()
    given: tuple[tuple[str, str], ...] = ()
    """What that text is filled in with, beside the parameter and the word."""

    def value(self, parameter: str, word: str) -> Any:
        """The value of a word.

        Raises:
            UsageError: it cannot be read; the text names the parameter.
        """
        given = {"parameter": parameter, "got": quoted(word), **dict(self.given)}
        try:
            return self.convert(word)
        except _OutOfRange as error:
            given |= {"low": str(error.bounds.low), "high": str(error.bounds.high)}
            raise UsageError("out_of_range", **given) from None
        except _NotWhole:
            raise UsageError("not_a_whole_number", **given) from None
        except (ValueError, KeyError):
            raise UsageError(self.problem, **given) from None


def converter(annotation: Any) -> Reads | None:
    """How the words of an annotation are read; None for one that no text becomes."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):  # `int | None = None`
        members = [a for a in get_args(annotation) if a is not type(None)]
        return converter(members[0]) if len(members) == 1 else None
    if origin is Annotated:
        return _annotated(*get_args(annotation))
    if origin is Literal:
        choices = {str(choice).lower(): choice for choice in get_args(annotation)}
        return _choice(choices)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _choice({member.name.lower(): member for member in annotation})
    return _SIMPLE.get(annotation)


def quoted(text: str) -> str:
    """A user's text, quoted and not longer than a line."""
    return repr(text[:SHOWN])


def _annotated(kind: Any, *more: Any) -> Reads | None:
    reads = converter(kind)
    for one in more:
        if isinstance(one, Converter):
            choices, given = (one.meaning,), (("rule", one.rule),)
            reads = Reads(one.read, "", "not_valid", choices, given)
        elif isinstance(one, Between) and reads is not None:
            reads = _within(reads, one)
    return reads


def _within(reads: Reads, bounds: Between) -> Reads:
    def convert(word: str) -> Any:
        value = reads.convert(word)
        if not bounds.low <= value <= bounds.high:
            raise _OutOfRange(bounds)
        return value

    return Reads(convert, reads.meaning, reads.problem, reads.choices, reads.given)


def _choice(choices: Mapping[str, Any]) -> Reads:
    given = (("choices", ", ".join(choices)),)
    return Reads(lambda word: choices[word.lower()], "", "not_a_choice", tuple(choices), given)


def _yes_or_no(word: str) -> bool:
    if word.lower() in _YES:
        return True
    if word.lower() in _NO:
        return False
    raise ValueError(word)


def _number(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(word)
    return number


def _whole_number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        _number(word)
        raise _NotWhole(word) from None


class _NotWhole(ValueError):
    """A number, and not a whole one."""


class _OutOfRange(ValueError):
    """A value, and not within its bounds."""

    def __init__(self, bounds: Between) -> None:
        self.bounds = bounds


def _user(word: str) -> PublicKey:
    return PublicKey.parse(word.removeprefix("@"))


def _duration(word: str) -> timedelta:
    """`90s`, `10m`, `2h30m`, `3d`, `1w`."""
    if not _DURATION.fullmatch(word.lower()):
        raise ValueError(word)
    parts = re.findall(r"([0-9]+)([smhdw])", word.lower())
    try:
        return timedelta(seconds=sum(int(number) * _UNIT_S[unit] for number, unit in parts))
    except OverflowError as error:
        raise ValueError(word) from error


_SIMPLE: Final[dict[Any, Reads]] = {
    str: Reads(str, "text", "missing"),
    int: Reads(_whole_number, "number", "not_a_number"),
    float: Reads(_number, "number", "not_a_number"),
    bool: Reads(_yes_or_no, "", "not_yes_or_no", ("yes", "no")),
    PublicKey: Reads(_user, "user", "not_a_user"),
    timedelta: Reads(_duration, "duration", "not_a_duration"),
    date: Reads(date.fromisoformat, "date", "not_a_date"),
}
