"""Settings of a bot from a TOML file and the environment, typed by annotations.

`RELIABLE_CHANNEL_BOT_NODE` in the environment is `node` in the table `[bot]` of the file that
`RELIABLE_CHANNEL_CONFIG` names, and the argument `node` of `StatusBot`; likewise the options.
A bot's own settings are a dataclass and a table below: `[bot.tea]`, and
`RELIABLE_CHANNEL_BOT_TEA_CUPS`.
"""

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from reliable_channel.config import PREFIX, settings, variable

from .converters import UsageError, converter
from .options import BotOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TABLE: Final = "bot"

Settings = TypeVar("Settings", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class BotArguments:
    """The arguments of `StatusBot` that a text can give."""

    node: tuple[str, ...] = ()
    key_file: str = ""
    community: str = ""
    channels: tuple[str, ...] = ()
    state: str = ""
    moderators: tuple[str, ...] = ()
    community_key_file: str = ""
    network: str = ""


def read_settings(
    kind: type[Settings],
    table: str,
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """A bot's own settings: the fields of a dataclass, from `[bot.TABLE]` and the environment.

    Fields are annotated as parameters of commands are, or as Path or tuple[str, ...], which the
    environment separates by spaces. The environment overrides the file, and it the default.

    Args:
        kind: a dataclass.
        table: one word in small letters.
        file: a TOML file; None for the one that `RELIABLE_CHANNEL_CONFIG` names.
        environment: variables; an empty one counts as unset.

    Raises:
        ValueError: a value of the wrong kind, an unknown name in the file, or a field without
            value; the text names it.
        TypeError: a field has an annotation that no text becomes.
        OSError: the file cannot be read.
    """
    given = settings(TABLE, _names(BotOptions, BotArguments), file, environment, has_tables=True)
    values = given.get(table, {})
    if not isinstance(values, Mapping):
        raise ValueError(f"`{table}` must be a table: write [bot.{table}]")
    names = _names(kind)
    for name in values:
        if name not in names:
            raise ValueError(f"`{name}` in [bot.{table}] must be one of {', '.join(names)}")
    found = _read(kind, values, f"[bot.{table}]", f"{PREFIX}BOT_{table.upper()}_", environment)
    for one in fields(kind):
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        if one.name not in found and not has_default:
            named = f"{PREFIX}BOT_{table.upper()}_{one.name.upper()}"
            raise ValueError(f"`{one.name}` is missing: give it in [bot.{table}] or as {named}")
    return kind(**found)


def bot_settings(
    file: str | Path | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of `StatusBot` and the options that a file and the environment give.

    Raises:
        ValueError: a value of the wrong kind, or an unknown name in the file.
        OSError: the file cannot be read.
    """
    names = _names(BotOptions, BotArguments)
    given = settings(TABLE, names, file, environment, has_tables=True)
    values = {name: value for name, value in given.items() if name in names}
    where, prefix = f"[{TABLE}]", f"{PREFIX}BOT_"
    arguments = _read(BotArguments, values, where, prefix, environment)
    return arguments, _read(BotOptions, values, where, prefix, environment)


def _names(*kinds: "type[DataclassInstance]") -> tuple[str, ...]:
    """The fields that a text can give; of a bot's own settings, all."""
    found = []
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        is_own = kind not in (BotOptions, BotArguments)
        found += [f.name for f in fields(kind) if is_own or _is_readable(hints[f.name])]
    return tuple(found)


def _read(
    kind: "type[DataclassInstance]",
    values: Mapping[str, Any],
    where: str,
    prefix: str,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    hints, found = get_type_hints(kind, include_extras=True), {}
    for name in _names(kind):
        named = f"{prefix}{name.upper()}"
        if not _is_readable(hints[name]):
            raise TypeError(f"{kind.__name__}.{name} is annotated as {hints[name]!r}")
        if text := variable(named, environment):
            found[name] = _of_text(hints[name], named, text)
        elif name in values:
            found[name] = _of_value(hints[name], f"{name}` in `{where}", values[name])
    return found


def _is_readable(hint: Any) -> bool:
    return hint is Path or _is_words(hint) or converter(hint) is not None


def _is_words(hint: Any) -> bool:
    return get_origin(hint) is tuple and get_args(hint) == (str, ...)


def _of_text(hint: Any, name: str, text: str) -> Any:
    if _is_words(hint):
        return tuple(text.split())
    if hint is Path:
        return Path(text)
    reads = converter(hint)
    assert reads is not None  # `_is_readable`
    try:
        return reads.value(name, text)
    except UsageError as error:
        raise ValueError(str(error)) from None


def _of_value(hint: Any, name: str, value: Any) -> Any:
    """A value of the file: a list for words, else what its text would be."""
    if _is_words(hint):
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"`{name}` must be a list of texts (got {value!r})")
        return tuple(words)
    if isinstance(value, list | dict):
        raise ValueError(f"`{name}` must be one value (got {value!r})")
    return _of_text(hint, name, str(value))
