"""Settings from a TOML file and from the environment, with the names of the arguments.

`retry_interval_ms=5000` in a program is `RELIABLE_CHANNEL_RETRY_INTERVAL_MS=5000` in the
environment. In the table `[channel]` of a file, the same setting is `retry_interval_ms = 5000`. On
the command line, the same setting is `--retry-interval-ms 5000`. `limits=Limits(events=50)` is
`RELIABLE_CHANNEL_LIMITS_EVENTS=50`, `events = 50` in the table `[channel.limits]`, and
`--limits-events 50`. An argument or flag overrides the environment, which overrides the file, which
overrides the preset.

The variable `RELIABLE_CHANNEL_CONFIG` names the file. No file is read unless the program or the
variable names it.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from ._terminal_text import is_text
from .errors import SettingsError
from .options import GROUPS, ChannelOptions, close_to
from .sds.declared import Declared, declared

__all__ = [
    "CHANNEL_NAMES",
    "FILE_VARIABLE",
    "PREFIX",
    "SETTINGS",
    "Setting",
    "channel_settings",
    "flat",
    "from_text",
    "nested",
    "settings",
    "settings_named",
    "variable",
    "with_config",
]


class Setting(NamedTuple):
    """Option that a text can set, alone or in a group."""

    group: str
    """Name of the option's group, or an empty text if the option is in no group."""
    name: str
    declared: Declared

    @property
    def path(self) -> str:
        """Name of the option in a program, such as `repair.t_min_ms`."""
        return f"{self.group}.{self.name}" if self.group else self.name


def _declared_settings() -> Iterator[tuple[str, Setting]]:
    for name, option in declared(ChannelOptions).items():
        if name not in GROUPS:
            yield name, Setting("", name, option)
            continue
        for member, one in declared(GROUPS[name]).items():
            yield f"{name}_{member}", Setting(name, member, one)


SETTINGS: Final[Mapping[str, Setting]] = dict(_declared_settings())
"""Options by their flat names, options of groups included, in the order of the reference."""


def nested(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return keyword arguments of a channel from settings with flat names. The settings of a
    group's options become one mapping."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        one = SETTINGS.get(name)
        if one is not None and one.group:
            found.setdefault(one.group, {})[one.name] = value
        else:
            found[name] = value
    return found


def flat(options: ChannelOptions) -> dict[str, object]:
    """Return all options by their flat names, with the defaults of the wire profile."""
    resolved = options.resolved()
    return {
        name: getattr(getattr(resolved, one.group) if one.group else resolved, one.name)
        for name, one in SETTINGS.items()
    }


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
    *(name for name, one in SETTINGS.items() if one.declared.kind is not None),
)
"""Names of the channel arguments that a file or the environment can set."""
_SWITCH: Final = {
    **dict.fromkeys(("1", "on", "true", "yes"), True),
    **dict.fromkeys(("0", "off", "false", "no"), False),
}


def channel_settings(
    file: str | Path | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the channel arguments that a file and the environment set, by flat name.

    Raises:
        ValueError: an unknown name in the file, a value of the wrong kind, or a file that is not
            TOML.
        OSError: the file cannot be read.
    """
    names = [name for name in CHANNEL_NAMES if name not in SETTINGS or not SETTINGS[name].group]
    found = _flattened(settings("channel", names, file, environment, has_tables=True), file)
    for name in CHANNEL_NAMES:
        if text := variable(PREFIX + name.upper(), environment):
            found[name] = from_text(name, text, PREFIX + name.upper())
    return found


def variable(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the value of a variable without spaces and line ends around it.

    An empty variable counts as unset, because compose files and units cannot unset a variable.

    Raises:
        ValueError: its bytes are not text in the encoding of the locale.
    """
    text = environment.get(name, "").strip()
    if not is_text(text):
        raise ValueError(f"`{name}` must be text in the locale's encoding (got {text!r})")
    return text


@contextmanager
def settings_named() -> Iterator[None]:
    """Raise `SettingsError` for unusable values and files."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise SettingsError(str(error)) from error


def with_config(file: str | Path | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a channel, completed from a file and the environment.

    Raises:
        ValueError: as `channel_settings`, or there is no `channel_id` or `sender_id`.
        OSError: the file cannot be read.
    """
    found = {**nested(channel_settings(file)), **arguments}
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
    """Return one table of the file, with values of the environment (empty if no file is named).

    With `has_tables`, the table may contain tables with any name.

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
    """Return the value of a channel's argument from its text. Spaces separate several addresses in
    the text.

    Raises:
        ValueError: the text is not a value of the argument's kind.
    """
    if name == "node":
        return text.split()
    kind = SETTINGS[name].declared.kind if name in SETTINGS else str
    try:
        if kind is bool:
            return _SWITCH[text.lower()]
        return kind(text) if kind in (int, float) else text
    except (KeyError, ValueError):
        what = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise ValueError(f"`{where}` must be {what} (got {text!r})") from None


def _flattened(table: Mapping[str, Any], file: str | Path | None) -> dict[str, Any]:
    found = dict[str, Any]()
    for name, value in table.items():
        if not isinstance(value, dict):
            found[name] = value
            continue
        _check_names(file, "a table in [channel]", [name], GROUPS)
        names = [one.name for one in SETTINGS.values() if one.group == name]
        _check_names(file, f"a name in [channel.{name}]", value, names)
        found |= {f"{name}_{member}": one for member, one in value.items()}
    return found


def check_channel_name(name: str, where: str) -> None:
    """Check that a channel has an argument with this name, and that a text can give its value.

    Raises:
        ValueError: it has none; the text names the closest one.
    """
    _check_names(where, "an argument of a channel", [name], CHANNEL_NAMES)


def _check_names(where: object, what: str, found: Collection[str], names: Collection[str]) -> None:
    for name in found:
        if name not in names:
            raise ValueError(f"`{name}` in {where} is not {what}{close_to(name, names)}")
