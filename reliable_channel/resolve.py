"""From a URL or a name that a channel was given to the object that a plugin registered."""

from typing import Any

from .encryption import Encryption
from .guard import FUNCTION, Contract, Guard, instance
from .guarded_transport import GuardedTransport
from .policies import (
    IdFunction,
    RepairPolicy,
    RetryPolicy,
    guarded_id_function,
    guarded_repair_policy,
    guarded_retry_policy,
)
from .registry import (
    ENCRYPTIONS,
    ID_FUNCTIONS,
    REPAIR_POLICIES,
    RETRY_POLICIES,
    STATE_STORES,
    SYNC_CORES,
    TRANSPORTS,
    WIRE_PROFILES,
    Kind,
    Registration,
    Registry,
)
from .sds.profile import WireProfile
from .state.base import StateStore
from .sync_core import CoreContext, SyncCore
from .transport.base import Transport
from .transport.settings import WakuSettings
from .wire_profile import guarded_wire_profile


def make_transport(
    registry: Registry, url: str, channel_id: str, sender_id: str, settings: WakuSettings
) -> Transport:
    """Return a transport of a node's URL.

    Raises:
        PluginError: its plugin failed.
        ValueError: the scheme is unknown, or the rest of the URL is malformed.
    """
    channel = {"channel_id": channel_id, "sender_id": sender_id, "settings": settings}
    found, transport = _provided(
        registry, TRANSPORTS, "node", url, instance(Transport), url=url, **channel
    )
    made: Transport = transport
    return made if found.built_in else GuardedTransport(made, found.guard)


def make_state_store(registry: Registry, url: str, channel_id: str, sender_id: str) -> StateStore:
    """Return the state store of a URL.

    Raises:
        PluginError, ValueError: as `make_transport`.
    """
    channel = {"url": url, "channel_id": channel_id, "sender_id": sender_id}
    store: StateStore = _provided(
        registry, STATE_STORES, "state", url, instance(StateStore), **channel
    )[1]
    return store


def make_encryption(registry: Registry, url: str, channel_id: str, sender_id: str) -> Encryption:
    """Return the encryption of a URL.

    Raises:
        PluginError, ValueError: as `make_transport`.
    """
    channel = {"url": url, "channel_id": channel_id, "sender_id": sender_id}
    encryption: Encryption = _provided(
        registry, ENCRYPTIONS, "encryption", url, instance(Encryption), **channel
    )[1]
    return encryption


def make_sync_core(registry: Registry, protocol: str, context: CoreContext) -> SyncCore:
    """Return a core of a sync protocol.

    Raises:
        PluginError: its plugin failed.
        ValueError: the name is unknown.
    """
    core: SyncCore = _provided(
        registry, SYNC_CORES, "sync", protocol, instance(SyncCore), context=context
    )[1]
    return core


def make_wire_profile(registry: Registry, given: WireProfile | str) -> WireProfile:
    """Return the wire profile of a name, or the given one.

    Raises:
        PluginError: its plugin failed, or the profile cannot be used.
        ValueError: the name is unknown.
    """
    if isinstance(given, WireProfile):
        return given
    found, profile = _provided(
        registry, WIRE_PROFILES, "wire_profile", given, instance(WireProfile)
    )
    made: WireProfile = profile
    return made if found.built_in else guarded_wire_profile(made, given, found.guard)


def make_retry_policy(registry: Registry, given: RetryPolicy | str) -> RetryPolicy:
    """Return the retry policy of a name, or the given one.

    Raises:
        PluginError, ValueError: as `make_sync_core`.
    """
    policy, guard = _function(registry, RETRY_POLICIES, "retry_policy", given)
    return policy if guard is None else guarded_retry_policy(policy, guard)


def make_repair_policy(registry: Registry, given: RepairPolicy | str) -> RepairPolicy:
    """Return the repair policy of a name, or the given one.

    Raises:
        PluginError, ValueError: as `make_sync_core`.
    """
    policy, guard = _function(registry, REPAIR_POLICIES, "retrieval_strategy", given)
    return policy if guard is None else guarded_repair_policy(policy, guard)


def make_id_function(registry: Registry, given: IdFunction | str) -> IdFunction:
    """Return the id function of a name, or the given one.

    Raises:
        PluginError, ValueError: as `make_sync_core`.
    """
    function, guard = _function(registry, ID_FUNCTIONS, "id_function", given)
    return function if guard is None else guarded_id_function(function, guard)


def _function(
    registry: Registry, kind: Kind, argument: str, given: object
) -> tuple[Any, Guard | None]:
    """A function of a name or the given one, and the guard it needs; None for the SDK's own."""
    if isinstance(given, str):
        found, function = _provided(registry, kind, argument, given, FUNCTION)
        return function, None if found.built_in else found.guard
    if callable(given):
        return given, Guard("the application")
    raise ValueError(f"`{argument}` must be a name or a function (got {given!r})")


def _provided(
    registry: Registry, kind: Kind, argument: str, given: str, contract: Contract, **offered: object
) -> tuple[Registration, Any]:
    found = registry.provide(kind, given, contract, **offered)
    if found is None:
        form = "a URL of one of the schemes" if kind.by_scheme else "one of"
        names = ", ".join(sorted(registry.names(kind)))
        known = f"must be {form} {names}" if names else "needs a plugin"
        raise ValueError(
            f"`{argument}` {known} (got {given!r}); plugins provide others, and "
            "`reliable-channel plugins` lists those that are installed"
        )
    return found
