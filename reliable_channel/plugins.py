"""Finding and loading plugins: the SDK's own, the installed ones, and those of one channel."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from .builtin_plugin import BuiltIn
from .errors import PluginError
from .hooks import PROJECT
from .registry import Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SELECTION: Final = "RELIABLE_CHANNEL_PLUGINS"
"""Names of the installed plugins to load, with commas. Empty or `none`: none. Not set: all."""


BUILT_IN: Final = "built in"
"""The plugin of the SDK itself."""


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A row of `reliable-channel plugins`."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    registered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Schemes and names by kind, such as `{"transports": ["ndn"]}`."""
    problem: str = ""
    """Why it is not in use; empty if it is."""


@cache
def process_registry() -> Registry:
    """The registry of this process: built-in plugins, and installed ones that are selected.

    Raises:
        PluginError: a plugin cannot be loaded; the text names it and a way to go on without it.
    """
    registry = _built_in()
    for entry in _selected():
        _load(registry, entry)
    return registry


def working_registry() -> tuple[Registry, list[PluginError]]:
    """A registry of the selected plugins that can be loaded, and why the others cannot.

    For the command line, whose other commands work without a broken plugin. A channel needs all
    installed plugins (`process_registry`): it cannot know what the broken one provides.

    Raises:
        PluginError: a plugin is selected but not installed, or two have one name.
    """
    registry = _built_in()
    problems: list[PluginError] = []
    for entry in _selected():
        try:
            _load(registry, entry)
        except PluginError as error:
            problems.append(error)
    return registry, problems


def registry_with(plugins: Sequence[object]) -> Registry:
    """The registry of one channel: the process's plugins, and its own.

    Raises:
        PluginError: one of them is not a plugin, or registers a name that is taken.
    """
    registry = process_registry()
    if not plugins:
        return registry
    registry = registry.copy()
    for plugin in plugins:
        if registry.has(plugin):
            continue  # installed as well
        name = getattr(plugin, "__name__", type(plugin).__name__)
        if name in registry.plugins:
            name = f"{name} ({len(registry.plugins)})"
        registry.add(plugin, name)
    return registry


def installed() -> Iterator[InstalledPlugin]:
    """All plugins, with those that are left out or broken."""
    from importlib.metadata import version

    registry = _built_in()
    yield _described(registry, BUILT_IN, "reliable-channel", version("reliable-channel"))
    names = _selection()
    for entry in _all():
        if names is not None and entry.name not in names:
            problem = f"left out by {SELECTION}"
        else:
            try:
                _load(registry, entry)
                yield _described(registry, entry.name, *_distribution(entry))
                continue
            except PluginError as error:
                problem = str(error)
        yield InstalledPlugin(entry.name, *_distribution(entry), problem=problem)


def _described(registry: Registry, name: str, distribution: str, version: str) -> InstalledPlugin:
    registered: dict[str, list[str]] = {}
    for one in registry.registered_by(name):
        registered.setdefault(one.kind.plural, []).append(one.name)
    return InstalledPlugin(name, distribution, version, registry.hooks_of(name), registered)


def _built_in() -> Registry:
    registry = Registry()
    registry.add(BuiltIn(), BUILT_IN, built_in=True)
    return registry


def _all() -> "list[EntryPoint]":
    from importlib.metadata import entry_points  # brings a parser of mail

    return sorted(entry_points(group=PROJECT), key=lambda entry: entry.name)


def _selection() -> frozenset[str] | None:
    """The names of the plugins to load; None for all."""
    selection = os.environ.get(SELECTION)
    if selection is None:
        return None
    return frozenset(name.strip() for name in selection.split(",")) - {"", "none"}


def _selected() -> "list[EntryPoint]":
    """The installed plugins to load.

    Raises:
        PluginError: one is selected but not installed, or two have one name.
    """
    names = _selection()
    if names is not None and not names:
        return []
    found = _all()
    if names is not None:
        if absent := sorted(names - {entry.name for entry in found}):
            raise PluginError(
                f"{SELECTION} names {', '.join(absent)}; installed are "
                f"{', '.join(entry.name for entry in found) or 'none'}"
            )
        found = [entry for entry in found if entry.name in names]
    for one, other in pairwise(found):  # sorted by name
        if one.name == other.name:
            raise PluginError(
                f"two plugins are called {one.name!r}: those of {_distribution(one)[0]} and "
                f"{_distribution(other)[0]}; uninstall one of them"
            )
    return found


def _load(registry: Registry, entry: "EntryPoint") -> None:
    try:
        plugin = entry.load()
    except Exception as error:
        raise PluginError(
            f"plugin {entry.name!r} of {' '.join(_distribution(entry))} cannot be loaded: "
            f"{error!r}; repair or uninstall it, or leave it out ({SELECTION}=none)"
        ) from error
    registry.add(plugin, entry.name)


def _distribution(entry: "EntryPoint") -> tuple[str, str]:
    return ("unknown", "") if entry.dist is None else (entry.dist.name, entry.dist.version)
