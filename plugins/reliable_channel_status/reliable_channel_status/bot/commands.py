"""Commands turn the words of a message into the arguments of a function, without I/O.

    async def remind(message: Message, minutes: int, *, text: str) -> str: ...

The text `!remind 5 tea is ready` calls the function `remind`. The bot supplies the first parameter.
After `*`, the last parameter takes the rest of the text unchanged. A parameter of the form `*names`
takes any number of words.
"""

import enum
import inspect
import math
import re
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ..wire.keys import PublicKey
from ..wire.typed_text import after_prefix, as_name, first_word
from .texts import ENGLISH, BotTexts

Convert: TypeAlias = Callable[[str], Any]

SHOWN: Final = 50
"""Maximum length of a user's text that the bot quotes in an answer (characters)."""
_YES: Final = ("yes", "true", "on", "1")
_NO: Final = ("no", "false", "off", "0")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"(?:[0-9]{1,9}[smhdw])+", re.ASCII)


class UsageError(ValueError):
    """Error for a text that does not fit the parameters of a command.

    Args:
        problem: the name of a text of `BotTexts`.
        given: what that text is filled in with.
    """

    def __init__(self, problem: str, **given: Any) -> None:
        super().__init__(ENGLISH.render(problem, **given))
        self.problem = problem
        self.given = given

    def text(self, texts: BotTexts) -> str:
        """Return the problem as a text in the bot's own words and language."""
        return texts.render(self.problem, **self.given)


@dataclass(frozen=True, slots=True)
class Converter:
    """Converter that reads a parameter with your function, as in `Annotated[Color,
    Converter(parse_color, …)]`."""

    read: Convert
    """Function that returns the value of a word. The function raises `ValueError` for an unreadable
    word."""
    meaning: str
    """Text for the parameter in the usage of a command, such as `color`."""
    rule: str
    """Text that follows the parameter's name in an error, such as `must be a color like
    #ff0000`."""


@dataclass(frozen=True, slots=True)
class Between:
    """Inclusive limits of a number, date or duration, as in `Annotated[int, Between(1, 20)]`."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Reads:
    """Conversion of a word to a value."""

    convert: Convert
    meaning: str
    """Name of the text that describes valid words. The name is empty if `choices` lists the valid
    words."""
    problem: str
    """Name of the text that describes the problem of an unreadable word."""
    choices: tuple[str, ...] = ()
    given: tuple[tuple[str, str], ...] = ()
    """Fields of the problem text besides the parameter and the word."""

    def value(self, parameter: str, word: str) -> Any:
        """Return the value of a parameter's word.

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
    """Return the conversion of an annotation, or None if words cannot become such values."""
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
    """Return a user's text in quotation marks, shortened to one line."""
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
    values = {as_name(name): value for name, value in choices.items()}
    return Reads(lambda word: values[as_name(word)], "", "not_a_choice", tuple(choices), given)


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


Handler: TypeAlias = Callable[..., Awaitable[Any]]

MAX_WORDS: Final = 200


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of a bot's command."""

    name: str
    reads: Reads
    default: Any
    """Default value of the parameter, or `inspect.Parameter.empty` if the parameter is required."""
    kind: Literal["one", "many", "rest"]

    def usage(self, texts: BotTexts = ENGLISH) -> str:
        """Return the name and kind of a parameter for usage texts, in brackets if it is
        optional."""
        dots = "…" if self.kind != "one" else ""
        meaning = "|".join(self.reads.choices) or texts.render(self.reads.meaning)
        text = f"{self.name}: {meaning}{dots}"
        is_needed = self.default is inspect.Parameter.empty and self.kind != "many"
        return f"<{text}>" if is_needed else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Command:
    """Command of a bot, with the conversion of its arguments."""

    name: str
    handler: Handler
    first: type
    """Annotation of the command's first parameter, which selects the form of the message."""
    parameters: tuple[Parameter, ...]
    about: str
    """Summary of the command, from the first line of its docstring."""

    @classmethod
    def of(cls, name: str, handler: Handler, givable: Sequence[type]) -> "Command":
        """Return the command for a function.

        Raises:
            TypeError: the function is not `async`, its first parameter takes nothing that is
                given, or another has an annotation that no text becomes.
        """
        hints, parameters = signature(handler)
        if not parameters or hints.get(parameters[0].name) not in givable:
            names = " or ".join(kind.__name__ for kind in givable)
            raise TypeError(f"{_called(handler)}: annotate the first parameter as {names}")
        return cls(
            name,
            handler,
            hints[parameters[0].name],
            tuple(_parameter(handler, p, hints.get(p.name, str)) for p in parameters[1:]),
            next(iter((inspect.getdoc(handler) or "").splitlines()), ""),
        )

    def usage(self, prefix: str, texts: BotTexts = ENGLISH) -> str:
        return " ".join([f"{prefix}{self.name}", *(p.usage(texts) for p in self.parameters)])

    def read(self, text: str) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments after the first, read from the text after the command's name.

        Raises:
            UsageError: too few, too many, or one that cannot be read.
        """
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self.parameters:
            text = text.lstrip()
            if parameter.kind == "rest":
                named[parameter.name] = _value(parameter, text.rstrip())
                text = ""
            elif parameter.kind == "many":
                for count in range(1, MAX_WORDS + 2):
                    if not text.strip():
                        break
                    if count > MAX_WORDS:
                        raise UsageError(
                            "too_many_words", limit=MAX_WORDS, count=count - 1 + len(text.split())
                        )
                    word, text = first_word(text)
                    positional.append(_value(parameter, word))
            else:
                word, text = first_word(text)
                positional.append(_value(parameter, word))
        if text.strip():
            raise UsageError("too_much", got=quoted(text.strip()))
        return positional, named


def signature(handler: Handler) -> tuple[dict[str, Any], list[inspect.Parameter]]:
    """Return the annotations and parameters of a handler.

    Raises:
        TypeError: it is not an `async` function.
    """
    if not inspect.iscoroutinefunction(handler):
        raise TypeError(f"{_called(handler)} must be an async function: async def …")
    return get_type_hints(handler, include_extras=True), list(
        inspect.signature(handler).parameters.values()
    )


def split(text: str, prefix: str) -> tuple[str, str] | None:
    """Return the name of a command in lower case, and the rest of the text. For a text that calls
    no command, `split` returns None."""
    called = after_prefix(text, prefix)
    if not called or called[0].isspace():
        return None
    name, *rest = called.split(maxsplit=1)
    return as_name(name), "".join(rest)


def help_text(
    commands: Mapping[str, Command], prefix: str, name: str = "", texts: BotTexts = ENGLISH
) -> str:
    """Return one help line for each command, or the usage of one command."""
    if name:
        name = " ".join(name.removeprefix(prefix).lower().split())
        members = {full: one for full, one in commands.items() if full.startswith(f"{name} ")}
        if members:  # it is a group
            return "\n".join(_line(command, prefix, texts) for command in members.values())
        command = commands.get(name)
        if command is None:
            return texts.render("no_such_command", got=quoted(name), prefix=prefix)
        about = inspect.getdoc(command.handler)
        return "\n".join(filter(None, [command.usage(prefix, texts), about]))
    if not commands:
        return texts.render("no_commands")
    return "\n".join(_line(command, prefix, texts) for command in commands.values())


def _line(command: Command, prefix: str, texts: BotTexts) -> str:
    usage, about = command.usage(prefix, texts), command.about
    return texts.render("command_line", usage=usage, about=about) if about else usage


def _parameter(handler: Handler, parameter: inspect.Parameter, annotation: Any) -> Parameter:
    kind: Literal["one", "many", "rest"] = "one"
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        kind = "many"
    elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        kind = "rest"
    elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
        raise TypeError(
            f"{_called(handler)}: **{parameter.name} cannot be filled from the words of a "
            "command; leave the parameter out"
        )
    found = converter(annotation)
    if found is None:
        raise TypeError(
            f"{_called(handler)}: the parameter {parameter.name} is annotated as {annotation!r}; "
            "use str, int, float, bool, timedelta, date, PublicKey, an Enum, a Literal, any of "
            "these types or None, or Annotated with a Converter"
        )
    return Parameter(parameter.name, found, parameter.default, kind)


def _value(parameter: Parameter, word: str) -> Any:
    if not word:
        if parameter.default is inspect.Parameter.empty:
            raise UsageError("missing", parameter=parameter.name)
        return parameter.default
    return parameter.reads.value(parameter.name, word)


def _called(handler: Handler) -> str:
    return getattr(handler, "__qualname__", repr(handler))
