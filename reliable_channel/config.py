"""Settings from a TOML file and from the environment, under the names of the arguments.

`retry_interval_ms=5000` in a program is `RELIABLE_CHANNEL_RETRY_INTERVAL_MS=5000` in the
environment, `retry_interval_ms = 5000` in the table `[channel]` of a file, and
`--retry-interval-ms 5000` on the command line. An argument or flag overrides the environment, the
environment overrides the file, and the file overrides the preset.

`RELIABLE_CHANNEL_CONFIG` names the file. No file is read unless it is named.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_type_hints

from ._option_values import OptionValues
from ._terminal_text import is_text
from .errors import SettingsError

__all__ = [
    "CHANNEL_NAMES",
    "FILE_VARIABLE",
    "PREFIX",
    "channel_settings",
    "from_text",
    "settings",
    "settings_named",
    "variable",
    "with_config",
]

PREFIX: Final = "RELIABLE_CHANNEL_"
FILE_VARIABLE: Final = "RELIABLE_CHANNEL_CONFIG"
TABLES: Final = ("bot", "channel", "node")
_TEXTS: Final = (
    "channel_id",
    "encryption",
    "journal",
    "node",
    "preset",
    "sender_id",
    "state",
    "sync",
)
CHANNEL_NAMES: Final = (
    *_TEXTS,
    *(name for name in OptionValues.__annotations__ if name != "marker"),
)
"""The arguments of a channel that a file or a variable can give."""
_SWITCH: Final = {
    **dict.fromkeys(("1", "on", "true", "yes"), True),
    **dict.fromkeys(("0", "off", "false", "no"), False),
}


def channel_settings(
    file: str | Path | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the arguments of a channel that a file and the environment give.

    Raises:
        ValueError: an unknown name in the file, a value of the wrong kind, or a file that is not
            TOML.
        OSError: the file cannot be read.
    """
    found = settings("channel", CHANNEL_NAMES, file, environment)
    for name in CHANNEL_NAMES:
        if text := variable(PREFIX + name.upper(), environment):
            found[name] = from_text(name, text, PREFIX + name.upper())
    return found


def variable(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a variable without the blanks and line ends that files leave around it.

    An empty one is one that a compose file or unit left unset.

    Raises:
        ValueError: its bytes are not text in the encoding of the locale.
    """
    text = environment.get(name, "").strip()
    if not is_text(text):
        raise ValueError(f"`{name}` must be text in the locale's encoding (got {text!r})")
    return text


@contextmanager
def settings_named() -> Iterator[None]:
    """Raise `SettingsError` for values and files that cannot be used."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise SettingsError(str(error)) from error


def with_config(file: str | Path | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments, completed from a file and the environment.

    Raises:
        ValueError: as `channel_settings`, or there is no `channel_id` or `sender_id`.
        OSError: the file cannot be read.
    """
    found = {**channel_settings(file), **arguments}
    for name in ("channel_id", "sender_id"):
        if name not in found:
            raise ValueError(
                f"`{name}` is missing: give it as an argument, as {PREFIX}{name.upper()}, or in "
                "the table [channel] of a file"
            )
    return found


def settings(
    table: str,
    names: Collection[str],
    file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    has_tables: bool = False,
) -> dict[str, Any]:
    """Return one table of the file; nothing if no file is named.

    With `has_tables`, tables in it can have any name.

    Raises:
        ValueError, OSError: as `channel_settings`.
    """
    file = file or variable(FILE_VARIABLE, environment)
    if not file:
        return {}
    import tomllib

    try:
        tables = tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # tomllib follows any nesting
        raise ValueError(f"{file} is not a TOML file: {error}") from error
    _check_names(file, "a table of a configuration", tables, TABLES)
    values = tables.get(table, {})
    if not isinstance(values, dict):
        raise ValueError(f"`{table}` in {file} must be a table: write [{table}]")
    plain = [name for name, one in values.items() if not (has_tables and isinstance(one, dict))]
    _check_names(file, f"a name in [{table}]", plain, names)
    return values


def from_text(name: str, text: str, where: str) -> Any:
    """Return the value of a channel's argument from its text; addresses are separated by spaces.

    Raises:
        ValueError: the text is not a value of the argument's kind.
    """
    if name == "node":
        return text.split()
    kind = get_type_hints(OptionValues).get(name, str)
    try:
        if kind is bool:
            return _SWITCH[text.lower()]
        return kind(text) if kind in (int, float) else text
    except (KeyError, ValueError):
        what = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise ValueError(f"`{where}` must be {what} (got {text!r})") from None


def check_channel_name(name: str, where: str) -> None:
    """Check that a channel has an argument of this name that a text can give.

    Raises:
        ValueError: it has none; the text names the closest one.
    """
    _check_names(where, "an argument of a channel", [name], CHANNEL_NAMES)


def _check_names(where: object, what: str, found: Collection[str], names: Collection[str]) -> None:
    for name in found:
        if name not in names:
            close = get_close_matches(name, names, 1)
            advice = f"; did you mean `{close[0]}`?" if close else ""
            raise ValueError(f"`{name}` in {where} is not {what}{advice}")
