"""Finds the object that a plugin registered, from a URL or a name in the arguments of a channel.

Each function raises `PluginError` if the plugin fails. It raises `ValueError` for an unknown name,
an unknown scheme or a malformed URL.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast, get_args

from .._contracts.encryption import Encryption
from .._contracts.plugin_code import SHORT, Owner
from .._contracts.repair_policies import Look, RepairStep
from .._contracts.state_store import StateStore
from ..engine.sync_core import CoreContext, SyncCore
from ..errors import PluginError
from ..sds.profile import WireProfile
from ..transport.base import Transport
from ..transport.settings import WakuSettings
from .registry import Kind, Registry
from .transport import PluginTransport


def make_transport(
    registry: Registry, url: str, channel_id: str, sender_id: str, settings: WakuSettings
) -> Transport:
    """Return a transport of a node's URL."""
    channel = {"url": url, "channel_id": channel_id, "sender_id": sender_id, "settings": settings}
    found, made = registry.provide(Kind.TRANSPORT, url, Transport, **channel)
    return made if found.built_in else cast("Transport", PluginTransport(made, found.owner))


def make_state_store(registry: Registry, url: str, channel_id: str, sender_id: str) -> StateStore:
    """Return the state store of a URL."""
    channel = {"url": url, "channel_id": channel_id, "sender_id": sender_id}
    store: StateStore = registry.provide(Kind.STATE_STORE, url, StateStore, **channel)[1]
    return store


def make_encryption(registry: Registry, url: str, channel_id: str, sender_id: str) -> Encryption:
    """Return the encryption of a URL."""
    channel = {"url": url, "channel_id": channel_id, "sender_id": sender_id}
    encryption: Encryption = registry.provide(Kind.ENCRYPTION, url, Encryption, **channel)[1]
    return encryption


def make_sync_core(registry: Registry, protocol: str, context: CoreContext) -> SyncCore:
    """Return a core of a sync protocol."""
    core: SyncCore = registry.provide(Kind.SYNC_CORE, protocol, SyncCore, context=context)[1]
    return core


def make_wire_profile(registry: Registry, given: WireProfile | str) -> WireProfile:
    """Return the wire profile of a name, or the given one."""
    if isinstance(given, WireProfile):
        return given
    found, made = registry.provide(Kind.WIRE_PROFILE, given, WireProfile)
    profile: WireProfile = made
    if profile.name != given:
        raise PluginError(
            f"{found.owner.note} must provide the wire profile under its own name (got "
            f"{profile.name!r})"
        )
    if found.built_in:
        return profile
    owner = found.owner
    return replace(
        profile,
        codec=owner.functions(profile.codec),
        clock=owner.function(profile.clock),
        bloom=owner.functions(profile.bloom),
        id_function=owner.function(profile.id_function),
        repair_timers=owner.functions(profile.repair_timers),
    )


def make_function(registry: Registry, kind: Kind, given: Callable[..., Any] | str) -> Any:
    """Return the policy or id function of a name, or the given one."""
    check = {Kind.RETRY_POLICY: _check_interval, Kind.REPAIR_POLICY: _check_step}.get(kind)
    if not isinstance(given, str):
        return Owner(f"the application: {kind.argument}").function(given, check)
    found, function = registry.provide(kind, given, Callable)
    return function if found.built_in else found.owner.function(function, check)


def _check_interval(made: object) -> None:
    whole = "return a whole number of milliseconds from 1"
    _must("`retry_policy`", whole, made, isinstance(made, int) and made >= 1)


def _check_step(made: object) -> None:
    if isinstance(made, RepairStep):
        for name in ("look_at_ms", "ask_at_ms"):
            at_ms = getattr(made, name)
            whole = at_ms is None or (isinstance(at_ms, int) and not isinstance(at_ms, bool))
            _must(f"`RepairStep.{name}`", "be None or a whole number of milliseconds", at_ms, whole)
        looks = get_args(Look)
        _must("`RepairStep.look`", f"be one of {looks}", made.look, made.look in looks)
    else:
        _must("`retrieval_strategy`", "return a RepairStep", made, False)


def _must(what: str, must: str, got: object, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{what} must {must} (got {SHORT.repr(got)})")
