"""Commands: a function's parameters become what is read from a message's text. Pure, no I/O.

    async def remind(message: Message, minutes: int, *, text: str) -> str: ...

is called as `!remind 5 tea is ready`. The first parameter is given; `*` makes the last one take the
rest of the text as it stands, `*names: str` takes any number of words.
"""

import inspect
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_type_hints

from .converters import Reads, UsageError, converter, quoted
from .texts import ENGLISH, BotTexts

Handler: TypeAlias = Callable[..., Awaitable[Any]]

MAX_WORDS: Final = 200


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a command."""

    name: str
    reads: Reads
    default: Any
    """`inspect.Parameter.empty` where it must be given."""
    kind: Literal["one", "many", "rest"]

    def usage(self, texts: BotTexts = ENGLISH) -> str:
        """`<minutes: number>`, or in brackets where it may be left out."""
        dots = "…" if self.kind != "one" else ""
        meaning = "|".join(self.reads.choices) or texts.render(self.reads.meaning)
        text = f"{self.name}: {meaning}{dots}"
        is_needed = self.default is inspect.Parameter.empty and self.kind != "many"
        return f"<{text}>" if is_needed else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and how its arguments are read."""

    name: str
    handler: Handler
    first: type
    """The annotation of the first parameter: what the handler is given of the message."""
    parameters: tuple[Parameter, ...]
    about: str
    """The first line of the docstring."""

    @classmethod
    def of(cls, name: str, handler: Handler, givable: Sequence[type]) -> "Command":
        """The command that a function makes.

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
        """How it is called."""
        return " ".join([f"{prefix}{self.name}", *(p.usage(texts) for p in self.parameters)])

    def read(self, text: str) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for the handler, after its first, from what follows the name.

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
                words, text = _words(text), ""
                positional += [_value(parameter, word) for word in words]
            else:
                word, text = _word(text)
                positional.append(_value(parameter, word))
        if text.strip():
            raise UsageError("too_much", got=quoted(text.strip()))
        return positional, named


def signature(handler: Handler) -> tuple[dict[str, Any], list[inspect.Parameter]]:
    """The annotations and parameters of a handler.

    Raises:
        TypeError: it is not an `async` function.
    """
    if not inspect.iscoroutinefunction(handler):
        raise TypeError(f"{_called(handler)} must be an async function: async def …")
    return get_type_hints(handler, include_extras=True), list(
        inspect.signature(handler).parameters.values()
    )


def split(text: str, prefix: str) -> tuple[str, str] | None:
    """The name of a command, in lower case, and what follows it; None if it is not a command."""
    if not text.startswith(prefix) or not (called := text[len(prefix) :]):
        return None
    if called[0].isspace():
        return None
    name, *rest = called.split(maxsplit=1)
    return name.lower(), "".join(rest)


def help_text(
    commands: Mapping[str, Command], prefix: str, name: str = "", texts: BotTexts = ENGLISH
) -> str:
    """What all commands do in a line each, or how one is used."""
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
        raise TypeError(f"{_called(handler)}: **{parameter.name} cannot be read from a text")
    found = converter(annotation)
    if found is None:
        raise TypeError(
            f"{_called(handler)}: {parameter.name} is annotated as {annotation!r}; a text becomes "
            "str, int, float, bool, timedelta, date, PublicKey, an Enum, a Literal, one of these "
            "or None, or Annotated with a Converter"
        )
    return Parameter(parameter.name, found, parameter.default, kind)


def _value(parameter: Parameter, word: str) -> Any:
    if not word:
        if parameter.default is inspect.Parameter.empty:
            raise UsageError("missing", parameter=parameter.name)
        return parameter.default
    return parameter.reads.value(parameter.name, word)


def _word(text: str) -> tuple[str, str]:
    """The first word, which quotes may hold together, and the rest."""
    if text[:1] in ("'", '"') and (end := text.find(text[0], 1)) > 0:
        return text[1:end], text[end + 1 :]
    parts = text.split(maxsplit=1)
    return (parts[0] if parts else ""), (parts[1] if len(parts) > 1 else "")


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe
        words = text.split()
    if len(words) > MAX_WORDS:
        raise UsageError("too_many_words", limit=MAX_WORDS, count=len(words))
    return words


def _called(handler: Handler) -> str:
    return getattr(handler, "__qualname__", repr(handler))
