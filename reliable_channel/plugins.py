"""Which plugins there are: the SDK's own, those that are installed, and those of one channel."""

import inspect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from itertools import pairwise
from typing import Final

import pluggy

from .errors import PluginError
from .hooks import PROJECT, Hooks, hookimpl
from .plugin_calls import BuiltIn
from .policies import (
    ID_FUNCTIONS,
    REPAIR_POLICIES,
    RETRY_POLICIES,
    IdFunction,
    RepairPolicy,
    RetryPolicy,
)
from .sds import SdsProtocol, WireProfile
from .sds.profile import PROFILES
from .state import StateStore
from .state.connect import memory_store, sqlite_store
from .sync_core import SyncCore, SyncSetting
from .transport import Transport, WakuSettings
from .transport.connect import memory_transport, multicast_transport, waku_transport

SELECTION: Final = "RELIABLE_CHANNEL_PLUGINS"
"""Names of the installed plugins to load, with commas; empty or `none` for none, all if not set."""


class _StateStores(BuiltIn):
    """`memory:` and `sqlite:`."""

    @hookimpl
    def make_state_store(self, url: str, channel_id: str, sender_id: str) -> StateStore | None:
        return memory_store(url, channel_id, sender_id) or sqlite_store(url, channel_id, sender_id)


class _Sds(BuiltIn):
    """`sds`, the default."""

    @hookimpl
    def make_sync_core(self, protocol: str, setting: SyncSetting) -> SyncCore | None:
        return sds_core(setting) if protocol == "sds" else None


def sds_core(setting: SyncSetting) -> SdsProtocol:
    """The core that comes along."""
    options = setting.options.sds_options()
    return SdsProtocol(
        setting.channel_id,
        setting.sender_id,
        now_ms=setting.now_ms,
        random=setting.random,
        options=replace(
            options,
            retry_policy=setting.policies.retry,
            repair=replace(
                options.repair,
                asks_when_told=setting.asks_when_told,
                cache_durably=options.repair.cache_durably or not setting.has_store,
            ),
        ),
        profile=setting.options.profile,
        id_function=setting.policies.id_function,
        signing=setting.signing,
        require_signatures=setting.require_signatures,
        recorder=setting.recorder,
        archive=setting.archive,
    )


class _WireProfiles(BuiltIn):
    """`spec` and `nim`."""

    @hookimpl
    def make_wire_profile(self, name: str) -> WireProfile | None:
        return PROFILES.get(name)


class _Transports(BuiltIn):
    """A Waku node's REST API, a network in memory, and a multicast group."""

    @hookimpl
    def make_transport(self, url: str, settings: WakuSettings) -> Transport | None:
        for make in (waku_transport, memory_transport, multicast_transport):
            if (transport := make(url, settings)) is not None:
                return transport
        return None


class _Policies(BuiltIn):
    """The policies and id functions that have a name."""

    @hookimpl
    def make_repair_policy(self, name: str) -> RepairPolicy | None:
        return REPAIR_POLICIES.get(name)

    @hookimpl
    def make_retry_policy(self, name: str) -> RetryPolicy | None:
        return RETRY_POLICIES.get(name)

    @hookimpl
    def make_id_function(self, name: str) -> IdFunction | None:
        return ID_FUNCTIONS.get(name)


BUILT_IN: Final[dict[str, BuiltIn]] = {
    "state stores": _StateStores(),
    "transports": _Transports(),
    "policies": _Policies(),
    "wire profiles": _WireProfiles(),
    "sds": _Sds(),
}


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """What `reliable-channel plugins` tells of a plugin."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...]
    problem: str
    """Why it is not in use; empty where it is."""


@cache
def plugin_manager() -> pluggy.PluginManager:
    """The plugin manager of this process: what is built in, and what is installed and selected.

    Raises:
        PluginError: a plugin cannot be loaded; the text says which, and how to do without.
    """
    manager = _bare_manager()
    for entry in _selected():
        _load(manager, entry)
    return manager


def working_plugins() -> tuple[pluggy.PluginManager, list[PluginError]]:
    """A manager of every selected plugin that can be loaded, and why the others cannot.

    For the command line, whose other commands work without a broken plugin. A channel needs all
    that are installed (`plugin_manager`): it cannot know what the broken one would have done.

    Raises:
        PluginError: a plugin is selected that is not installed, or two have one name.
    """
    manager = _bare_manager()
    problems: list[PluginError] = []
    for entry in _selected():
        try:
            _load(manager, entry)
        except PluginError as error:
            problems.append(error)
            if manager.has_plugin(entry.name):
                manager.unregister(name=entry.name)
    return manager, problems


def manager_with(plugins: Sequence[object]) -> pluggy.PluginManager:
    """The plugin manager of one channel: the process's plugins, and its own.

    Raises:
        PluginError: one of them is no plugin.
    """
    if not plugins:
        return plugin_manager()
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    for name, plugin in plugin_manager().list_name_plugin():
        manager.register(plugin, name)
    for plugin in plugins:
        if manager.is_registered(plugin):
            continue  # installed, too
        name = getattr(plugin, "__name__", type(plugin).__name__)
        if manager.has_plugin(name):
            name = f"{name} ({len(manager.get_plugins())})"
        register(manager, plugin, name)
    return manager


def register(manager: pluggy.PluginManager, plugin: object, name: str) -> None:
    """Add a plugin.

    Raises:
        PluginError: it fills no hook, or one in a way that does not fit.
    """
    if inspect.isclass(plugin):
        raise PluginError(f"plugin {name!r} is a class; give an instance of it")
    try:
        manager.register(plugin, name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise PluginError(f"plugin {name!r} does not fit its hooks: {reason}") from error
    if not manager.get_hookcallers(plugin):
        raise PluginError(
            f"plugin {name!r} fills no hook: its functions need @reliable_channel.hooks.hookimpl "
            f"and the names in reliable_channel.hooks ({plugin!r})"
        )


def installed() -> Iterator[InstalledPlugin]:
    """All plugins, those that are left out or broken too."""
    ours = version("reliable-channel")
    for name, plugin in BUILT_IN.items():
        yield InstalledPlugin(name, "reliable-channel", ours, _hooks_of(plugin), "")
    names = _selection()
    for entry in _all():
        hooks: tuple[str, ...] = ()
        problem = ""
        if names is not None and entry.name not in names:
            problem = f"left out by {SELECTION}"
        else:
            manager = _bare_manager()
            try:
                _load(manager, entry)
                hooks = _hooks_of(manager.get_plugin(entry.name))
            except PluginError as error:
                problem = str(error)
        yield InstalledPlugin(entry.name, *_distribution(entry), hooks, problem)


def _bare_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    for name, plugin in BUILT_IN.items():
        manager.register(plugin, name)
    return manager


def _all() -> list[EntryPoint]:
    return sorted(entry_points(group=PROJECT), key=lambda entry: entry.name)


def _selection() -> frozenset[str] | None:
    """The names of the plugins to load; None for all."""
    selection = os.environ.get(SELECTION)
    if selection is None:
        return None
    return frozenset(name.strip() for name in selection.split(",")) - {"", "none"}


def _selected() -> list[EntryPoint]:
    """The installed plugins to load.

    Raises:
        PluginError: one is asked for that is not installed, or two have one name.
    """
    found, names = _all(), _selection()
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


def _load(manager: pluggy.PluginManager, entry: EntryPoint) -> None:
    try:
        plugin = entry.load()
    except Exception as error:
        raise PluginError(
            f"plugin {entry.name!r} of {' '.join(_distribution(entry))} cannot be loaded: "
            f"{error!r}; repair or uninstall it, or leave it out ({SELECTION}=none)"
        ) from error
    register(manager, plugin, entry.name)


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    return ("unknown", "") if entry.dist is None else (entry.dist.name, entry.dist.version)


def _hooks_of(plugin: object) -> tuple[str, ...]:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.register(plugin, "it")
    return tuple(caller.name for caller in manager.get_hookcallers(plugin) or ())
