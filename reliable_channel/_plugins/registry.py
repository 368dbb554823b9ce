"""The registry of a process or a channel: which plugin registered what under which name.

A name has one owner. A plugin that registers a name of another plugin is refused, and the error
names both.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from operator import attrgetter
from reprlib import Repr
from typing import Any, Final

import pluggy

from .._contracts.plugin_code import SHORT, Owner
from ..errors import PluginError
from ..transport.addresses import masked_address, masked_text
from .hooks import PROJECT, Hooks

_CHANNEL: Final = ("url", "channel_id", "sender_id")


class _Arguments(Repr):
    """Short texts of arguments, without the tokens in addresses."""

    def repr_str(self, x: str, level: int) -> str:
        """Mask a string before a part is cut out."""
        return super().repr_str(masked_text(x), level)


_ARGUMENTS: Final = _Arguments()
_ARGUMENTS.maxstring, _ARGUMENTS.maxother = SHORT.maxstring, SHORT.maxother


class Kind(Enum):
    """Kinds of things that plugins provide.

    Each has its plural and the argument of a channel that selects by name. Each also has the
    arguments that are offered to a registered function. Without any, the registered object itself
    is used.
    """

    TRANSPORT = "transports", "node", (*_CHANNEL, "settings")
    STATE_STORE = "state_stores", "state", _CHANNEL
    ENCRYPTION = "encryptions", "encryption", _CHANNEL
    SYNC_CORE = "sync_cores", "sync", ("context",)
    WIRE_PROFILE = "wire_profiles", "wire_profile", ()
    REPAIR_POLICY = "repair_policies", "retrieval_strategy", ()
    RETRY_POLICY = "retry_policies", "retry_policy", ()
    ID_FUNCTION = "id_functions", "id_function", ()
    OBSERVER = "observers", "", ("channel_id", "sender_id", "event", "at_ms", "health")
    CHECK = "checks", "", ("nodes", "config")

    def __init__(self, plural: str, argument: str, offers: tuple[str, ...]) -> None:
        self.plural, self.argument, self.offers = plural, argument, offers
        self.what = self.name.lower().replace("_", " ")
        self.hook = f"register_{plural}"
        self.by_scheme = "url" in offers


@dataclass(frozen=True, slots=True)
class Registration:
    """A thing that a plugin registered under one name."""

    plugin: str
    kind: Kind
    name: str
    value: object
    """The object, or `module:name` of an object that is imported when it is used."""
    built_in: bool = False

    @property
    def owner(self) -> Owner:
        """The plugin, to be named in errors."""
        note = f"plugin {self.plugin!r}: {self.kind.what} {self.name!r}"
        return Owner(note, shown=_ARGUMENTS.repr)

    def load(self) -> Any:
        """Return the registered object, imported if it was registered by its place.

        Raises:
            PluginError: it cannot be imported.
        """
        if not isinstance(self.value, str):
            return self.value
        module, _, name = self.value.partition(":")
        with self.owner.loading(f": import of {self.value!r}"):
            return attrgetter(name)(import_module(module))

    def call(self) -> Callable[..., Any]:
        """Return the registered function as one that takes all that is offered.

        Raises:
            PluginError: it cannot be imported, takes arguments that are not offered, or is an
                observer that would have to be awaited.
        """
        value = self.load()
        if self.kind is Kind.OBSERVER and _is_async(value):
            raise PluginError(
                f"{self.owner.note} must be a function without `async`, because the channel does "
                "not await it; let the function put events into a queue of the plugin (got "
                f"{SHORT.repr(value)})"
            )
        return self.owner.bound(value, self.kind.offers)


@dataclass(slots=True)
class Registry:
    """The registrations of a set of plugins."""

    plugins: dict[str, object] = field(default_factory=dict)
    hooks: dict[str, dict[str, Callable[..., object]]] = field(default_factory=dict)
    """The implemented hooks of each plugin."""
    _found: dict[tuple[Kind, str], Registration] = field(default_factory=dict)

    def copy(self) -> "Registry":
        """Return a registry of the same plugins, to which others can be added."""
        return Registry(dict(self.plugins), dict(self.hooks), dict(self._found))

    def add(self, plugin: object, name: str, *, built_in: bool = False) -> None:
        """Add a plugin: all of its registrations, or none.

        Raises:
            PluginError: it implements no hook, or in a way that does not fit; or it registers what
                another plugin has registered; or its code failed.
        """
        registry = self.copy()
        registry.plugins[name], registry.hooks[name] = plugin, _implemented(plugin, name)
        for kind in Kind:
            if kind.hook in registry.hooks[name]:

                def register(called: str, value: object, kind: Kind = kind) -> None:
                    registry._register(Registration(name, kind, called, value, built_in))

                registry.run(name, kind.hook, register=register)
        self.plugins, self.hooks, self._found = registry.plugins, registry.hooks, registry._found

    def run(self, plugin: str, hook: str, **offered: object) -> None:
        """Call a hook of a plugin.

        Raises:
            PluginError: the hook failed.
        """
        owner = Owner(f"plugin {plugin!r}: {hook}")
        owner.at_load(owner.bound(self.hooks[plugin][hook], tuple(offered)), offered)

    def _register(self, one: Registration) -> None:
        form, pattern = "a name", r"\S.*"
        if one.kind.by_scheme:
            form, pattern = "a URL scheme in lower case, such as 'pigeon'", r"[a-z][a-z0-9+.-]*"
        if not (isinstance(one.name, str) and re.fullmatch(pattern, one.name)):
            raise PluginError(f"{one.owner.note} must be registered by {form} (got {one.name!r})")
        if taken := self._found.get((one.kind, one.name)):
            raise PluginError(
                f"{one.kind.what} {one.name!r} is registered twice, by {taken.plugin!r} and by "
                f"{one.plugin!r}; leave one out (RELIABLE_CHANNEL_PLUGINS names those to load)"
            )
        if one.kind.offers and not isinstance(one.value, str):
            one.call()
        self._found[one.kind, one.name] = one

    def registered(self, kind: Kind) -> list[Registration]:
        """Return the registrations of a kind."""
        return [one for one in self._found.values() if one.kind is kind]

    def provide(
        self, kind: Kind, given: str, must_be: Any, **offered: object
    ) -> tuple[Registration, Any]:
        """Return the registration of a name or URL, and its object: made, or as registered.

        Raises:
            PluginError: its plugin failed, or the object is not of the type.
            ValueError: no plugin registered it, or its plugin refuses the rest of the URL.
        """
        shown = masked_address(given) if kind.by_scheme else given
        key = given.partition(":")[0].lower() if kind.by_scheme else given
        if kind is Kind.ENCRYPTION and "/" not in given:
            shown = f"{key}:…"  # because the rest is a key, as in an invitation
        one = self._found.get((kind, key))
        if one is None:
            form = "a URL of one of the schemes" if kind.by_scheme else "one of"
            names = ", ".join(sorted(other.name for other in self.registered(kind)))
            known = f"must be {form} {names}" if names else "needs a plugin"
            raise ValueError(
                f"`{kind.argument}` {known} (got {shown!r}); plugins provide others, and "
                "`reliable-channel plugins` lists those that are installed"
            )
        try:
            if not kind.offers:
                made = one.load()
            elif one.built_in:
                made = one.call()(**offered)
            else:
                made = one.owner.at_load(one.call(), offered, ValueError)
        except ValueError as error:
            if shown != given:
                error.args = (masked_text(str(error).replace(given, shown)),)
            raise
        if not isinstance(made, must_be) or isinstance(made, type):
            wanted = f"must be of type {must_be.__name__} (got {SHORT.repr(made)})"
            raise PluginError(f"{one.owner.note} {wanted}")
        return one, made


def _is_async(value: object) -> bool:
    call = getattr(value, "__call__", None)  # noqa: B004 - the method itself is wanted
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(call)


def _implemented(plugin: object, name: str) -> dict[str, Callable[..., object]]:
    """Return the functions of a plugin by the hooks that they implement."""
    if inspect.isclass(plugin):
        raise PluginError(f"plugin {name!r} is a class; register an instance of the class")
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
    found = {caller.name: caller.get_hookimpls()[0].function for caller in callers}
    for hook, function in found.items():
        if inspect.isgeneratorfunction(function) or _is_async(function):  # all wrappers are such
            raise PluginError(
                f"plugin {name!r}: {hook} cannot run as a hook; leave out `wrapper=True`, `yield` "
                f"and `async` (got {function!r})"
            )
    return found
