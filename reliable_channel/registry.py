"""The registry of a process or a channel: which plugin registered what under which name.

Each kind of thing that plugins provide has one table from a name to a `Registration`. A name has
one owner; a plugin that registers a name of another plugin is refused, with both named.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, cast

import pluggy

from .calls import Call, parameters
from .errors import PluginError
from .guard import FUNCTION, NOTHING, Contract, Guard
from .hooks import PROJECT, Hooks

MUST_BE: Final = "must be"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing that plugins provide."""

    what: str
    hook: str
    offers: tuple[str, ...] = ()
    """Arguments with which a registered function is called; without any, the registered object
    itself is used."""
    by_scheme: bool = False
    """Names are URL schemes."""

    @property
    def plural(self) -> str:
        """Name of its list, such as `state_stores`."""
        return self.hook.removeprefix("register_")


_CHANNEL: Final = ("url", "channel_id", "sender_id")
TRANSPORTS: Final = Kind(
    "transport", "register_transports", (*_CHANNEL, "settings"), by_scheme=True
)
STATE_STORES: Final = Kind("state store", "register_state_stores", _CHANNEL, by_scheme=True)
ENCRYPTIONS: Final = Kind("encryption", "register_encryptions", _CHANNEL, by_scheme=True)
SYNC_CORES: Final = Kind("sync core", "register_sync_cores", ("context",))
WIRE_PROFILES: Final = Kind("wire profile", "register_wire_profiles")
REPAIR_POLICIES: Final = Kind("repair policy", "register_repair_policies")
RETRY_POLICIES: Final = Kind("retry policy", "register_retry_policies")
ID_FUNCTIONS: Final = Kind("id function", "register_id_functions")
OBSERVERS: Final = Kind(
    "observer", "register_observers", ("channel_id", "sender_id", "event", "at_ms", "health")
)
CHECKS: Final = Kind("check", "register_checks", ("nodes", "config"))
KINDS: Final = (
    TRANSPORTS,
    STATE_STORES,
    ENCRYPTIONS,
    SYNC_CORES,
    WIRE_PROFILES,
    REPAIR_POLICIES,
    RETRY_POLICIES,
    ID_FUNCTIONS,
    OBSERVERS,
    CHECKS,
)


@dataclass(frozen=True, slots=True)
class Registration:
    """What one plugin registered under one name."""

    plugin: str
    kind: Kind
    name: str
    value: object
    """The object, or `module:name` of one that is imported when it is used."""
    built_in: bool = False

    @property
    def what(self) -> str:
        """What it is, for an error text."""
        return f"{self.kind.what} {self.name!r}"

    @property
    def guard(self) -> Guard:
        """The guard that names the plugin."""
        return Guard(f"plugin {self.plugin!r}")

    def load(self) -> Any:
        """The registered object, imported where it was registered by its place.

        Raises:
            PluginError: it cannot be imported, or takes arguments that are not offered.
        """
        value = self.value
        if isinstance(value, str):
            module, _, name = value.partition(":")
            with self.guard.watching(f"import of {self.what} from {value!r}"):
                value = attrgetter(name)(import_module(module))
        if self.kind.offers:
            function: Callable[..., object] = cast("Any", value)
            self._check_parameters(self.guard.checked(self.what, function, FUNCTION, MUST_BE))
        return value

    def call(self) -> Call:
        """The registered function, ready to be called with what is offered.

        Raises:
            PluginError: as `load`.
        """
        function = self.load()
        return Call(self.plugin, self.what, function, parameters(function)[0], self.built_in)

    def provide(self, contract: Contract, **offered: object) -> Any:
        """The object, made or as it is.

        Raises:
            PluginError: it cannot be made, or breaks the contract.
            ValueError: its maker refuses the arguments.
        """
        if not self.kind.offers:
            return self.guard.checked(self.what, self.load(), contract, MUST_BE)
        try:
            return self.call().guarded(contract, (ValueError,), **offered)
        except ValueError as error:
            if self.built_in:
                raise
            raise ValueError(f"{error} (plugin {self.plugin!r})") from error

    def _check_parameters(self, function: Callable[..., object]) -> None:
        if lacking := parameters(function)[1].difference(self.kind.offers):
            raise PluginError(
                f"{self.guard.owner}: {self.what} takes {', '.join(sorted(lacking))}; it can take "
                f"{', '.join(self.kind.offers)}"
            )


class Registry:
    """The registrations of a set of plugins."""

    def __init__(self) -> None:
        self._plugins: dict[str, object] = {}
        self._hooks: dict[str, tuple[str, ...]] = {}
        self._tables: dict[str, dict[str, Registration]] = {kind.hook: {} for kind in KINDS}
        self._commands: list[Call] = []

    def copy(self) -> "Registry":
        """A registry of the same plugins, to which others can be added."""
        made = Registry()
        made._plugins, made._hooks = dict(self._plugins), dict(self._hooks)
        made._tables = {hook: dict(table) for hook, table in self._tables.items()}
        made._commands = list(self._commands)
        return made

    def add(self, plugin: object, name: str, *, built_in: bool = False) -> None:
        """Add a plugin: all of its registrations, or none.

        Raises:
            PluginError: it implements no hook, or in a way that does not fit; or it registers what
                another plugin has registered.
        """
        hooks = implemented(plugin, name)
        found: list[Registration] = []
        for kind in KINDS:
            if kind.hook in hooks:
                self._collect(kind, Call(name, kind.hook, hooks[kind.hook]), found, built_in)
        for registration in found:
            if taken := self._tables[registration.kind.hook].get(registration.name):
                raise PluginError(_both(registration.what, taken.plugin, name))
        for registration in found:
            self._tables[registration.kind.hook][registration.name] = registration
        if "register_commands" in hooks:
            self._commands.append(Call(name, "register_commands", hooks["register_commands"]))
        self._plugins[name], self._hooks[name] = plugin, tuple(sorted(hooks))

    def remove(self, name: str) -> None:
        """Remove a plugin and its registrations."""
        del self._plugins[name], self._hooks[name]
        for table in self._tables.values():
            for one in [one for one in table.values() if one.plugin == name]:
                del table[one.name]
        self._commands = [call for call in self._commands if call.plugin != name]

    @property
    def plugins(self) -> tuple[str, ...]:
        """Names of the plugins."""
        return tuple(self._plugins)

    def has(self, plugin: object) -> bool:
        """Whether this very object is among the plugins."""
        return any(one is plugin for one in self._plugins.values())

    def hooks_of(self, plugin: str) -> tuple[str, ...]:
        """Names of the hooks that a plugin implements."""
        return self._hooks[plugin]

    def names(self, kind: Kind) -> tuple[str, ...]:
        """The registered names of a kind."""
        return tuple(self._tables[kind.hook])

    def registered_by(self, plugin: str) -> Iterator[Registration]:
        """All that a plugin registered."""
        for table in self._tables.values():
            yield from (one for one in table.values() if one.plugin == plugin)

    def observers(self) -> list[Call]:
        """The registered observers.

        Raises:
            PluginError: one of them cannot be imported.
        """
        return [
            replace(one.call(), what="observe") for one in self._tables[OBSERVERS.hook].values()
        ]

    def checks(self) -> list[Registration]:
        """The registered checks of the doctor."""
        return list(self._tables[CHECKS.hook].values())

    def commands(self) -> list[Call]:
        """The hooks `register_commands`."""
        return list(self._commands)

    def provide(
        self, kind: Kind, given: str, contract: Contract, **offered: object
    ) -> tuple[Registration, Any] | None:
        """The object of a name or URL, and its registration; None if no plugin knows it.

        Raises:
            PluginError: its plugin failed.
            ValueError: its plugin refuses the rest of the URL.
        """
        key = given.partition(":")[0].lower() if kind.by_scheme else given
        found = self._tables[kind.hook].get(key)
        return None if found is None else (found, found.provide(contract, **offered))

    def _collect(self, kind: Kind, hook: Call, found: list[Registration], built_in: bool) -> None:
        """Let a plugin register what it has of a kind."""
        guard = Guard(f"plugin {hook.plugin!r}")

        def register(name: str, value: object) -> None:
            pattern = r"[a-z][a-z0-9+.-]*" if kind.by_scheme else r"\S.*"
            if not (isinstance(name, str) and re.fullmatch(pattern, name)):
                form = (
                    "a URL scheme in lower case, such as 'pigeon'" if kind.by_scheme else "a name"
                )
                raise PluginError(f"{guard.owner}: {kind.hook} must be given {form} (got {name!r})")
            one = Registration(hook.plugin, kind, name, value, built_in)
            if any(other.kind is kind and other.name == name for other in found):
                raise PluginError(f"{guard.owner}: {kind.hook} registers {name!r} twice")
            if not isinstance(value, str):
                one.load()
            found.append(one)

        hook.guarded(NOTHING, register=register)


def implemented(plugin: object, name: str) -> dict[str, Callable[..., object]]:
    """The functions of a plugin by the hooks that they implement.

    Raises:
        PluginError: it implements no hook, or in a way that does not fit.
    """
    if inspect.isclass(plugin):
        raise PluginError(f"plugin {name!r} is a class; give an instance of it")
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    try:
        manager.register(plugin, name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise PluginError(f"plugin {name!r} does not fit its hooks: {reason}") from error
    callers = manager.get_hookcallers(plugin)
    if not callers:
        raise PluginError(
            f"plugin {name!r} implements no hook: its functions need "
            "@reliable_channel.spi.hookimpl and the names in reliable_channel.spi.Hooks "
            f"(got {plugin!r})"
        )
    return {caller.name: caller.get_hookimpls()[0].function for caller in callers}


def _both(what: str, one: str, other: str) -> str:
    return (
        f"{what} is registered by two plugins, {one!r} and {other!r}; leave one of them out "
        "(RELIABLE_CHANNEL_PLUGINS names those to load)"
    )
