"""Finding and loading plugins: the SDK's own, the installed ones, and those of one channel."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from .._contracts.plugin_code import Owner
from .._version import __version__
from ..errors import PluginError
from .builtin import BuiltIn
from .hooks import PROJECT
from .registry import Kind, Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SELECTION: Final = "RELIABLE_CHANNEL_PLUGINS"
"""Names of the installed plugins to load, with commas. Empty or `none`: none. Not set: all."""
BUILT_IN: Final = "built in"
"""The plugin of the SDK itself."""


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A row in the output of `reliable-channel plugins`."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    registered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Schemes and names by kind, such as `{"transports": ["ndn"]}`."""
    problem: str = ""
    """The reason why it is not in use, or an empty text."""


@cache
def process_registry() -> Registry:
    """Return the registry of this process: built-in plugins, and installed ones that are selected.

    Raises:
        PluginError: a plugin cannot be loaded; the text names it and a way to go on without it.
    """
    registry, problems = working_registry()
    if problems:
        raise problems[0]
    return registry


def working_registry() -> tuple[Registry, list[PluginError]]:
    """Return a registry of the selected plugins that can be loaded, and why the others cannot.

    For the command line, whose other commands work without a broken plugin. A channel needs all
    installed plugins (`process_registry`): it cannot know what the broken one provides.

    Raises:
        PluginError: a plugin is selected but not installed, or two have one name.
    """
    registry = _built_in()
    return registry, [error for entry in _selected() if (error := _load(registry, entry))]


def registry_with(plugins: Sequence[object]) -> Registry:
    """Return the registry of one channel: the process's plugins, and its own.

    Raises:
        PluginError: one of them is not a plugin, or registers a name that is taken.
    """
    registry = process_registry().copy()
    for plugin in plugins:
        if any(plugin is other for other in registry.plugins.values()):
            continue  # installed as well
        name = getattr(plugin, "__name__", type(plugin).__name__)
        if name in registry.plugins:
            name = f"{name} ({len(registry.plugins)})"
        registry.add(plugin, name)
    return registry


def installed() -> Iterator[InstalledPlugin]:
    """Iterate over all plugins, also those that are left out or broken."""
    registry, names = _built_in(), _selection()
    yield _described(registry, BUILT_IN, "reliable-channel", __version__)
    for entry in _all():
        if names is None or entry.name in names:
            problem = str(_load(registry, entry) or "")
        else:
            problem = f"left out by {SELECTION}"
        yield _described(registry, entry.name, *_distribution(entry), problem)


def _described(
    registry: Registry, name: str, distribution: str, version: str, problem: str = ""
) -> InstalledPlugin:
    hooks = () if problem else tuple(sorted(registry.hooks[name]))
    registered = {
        kind.plural: [one.name for one in registry.registered(kind) if one.plugin == name]
        for kind in Kind
        if kind.hook in hooks
    }
    return InstalledPlugin(name, distribution, version, hooks, registered, problem)


def _built_in() -> Registry:
    registry = Registry()
    registry.add(BuiltIn(), BUILT_IN, built_in=True)
    return registry


def _all() -> "list[EntryPoint]":
    from importlib.metadata import entry_points  # late, because it imports the package `email`

    return sorted(entry_points(group=PROJECT), key=lambda entry: entry.name)


def _selection() -> frozenset[str] | None:
    """Return the names of the plugins to load; None for all."""
    selection = os.environ.get(SELECTION)
    if selection is None:
        return None
    return frozenset(name.strip() for name in selection.split(",")) - {"", "none"}


def _selected() -> "list[EntryPoint]":
    names = _selection()
    if names is not None and not names:
        return []
    installed = _all()
    found = [entry for entry in installed if names is None or entry.name in names]
    if absent := sorted((names or set()) - {entry.name for entry in found}):
        known = ", ".join(entry.name for entry in installed) or "none"
        raise PluginError(f"{SELECTION} names {', '.join(absent)}; installed are {known}")
    for one, other in pairwise(found):  # sorted by name
        if one.name == other.name:
            both = f"{_distribution(one)[0]} and {_distribution(other)[0]}"
            raise PluginError(
                f"two plugins have the name {one.name!r}: those of {both}; uninstall one of them"
            )
    return found


def _load(registry: Registry, entry: "EntryPoint") -> PluginError | None:
    """Add an installed plugin, or return the reason why that is not possible."""
    owner = Owner(f"plugin {entry.name!r} of {' '.join(_distribution(entry))}")
    try:
        with owner.loading(": import"):
            registry.add(entry.load(), entry.name)
    except PluginError as error:
        return error
    return None


def _distribution(entry: "EntryPoint") -> tuple[str, str]:
    return ("unknown", "") if entry.dist is None else (entry.dist.name, entry.dist.version)
