"""What a channel asks plugins for: transports, a state store, an encryption, policies."""

from collections.abc import Callable, Iterable
from typing import Any, cast

import pluggy

from .checked_transport import CheckedTransport
from .encryption import Encryption
from .plugin_calls import the_answer
from .policies import (
    ID_FUNCTIONS,
    REPAIR_POLICIES,
    RETRY_POLICIES,
    IdFunction,
    RepairPolicy,
    RetryPolicy,
    checked_id_function,
    checked_repair_policy,
    checked_retry_policy,
)
from .sds.profile import PROFILES, WireProfile
from .state import StateStore
from .sync_core import SyncCore, SyncSetting
from .transport import Transport, WakuSettings
from .wire_profile import checked_wire_profile


def make_transport(
    manager: pluggy.PluginManager,
    url: str,
    channel_id: str,
    sender_id: str,
    settings: WakuSettings,
) -> Transport:
    """The transport of a node's URL.

    Raises:
        PluginError: a plugin failed, or two know the scheme.
        ValueError: no plugin knows the scheme, or the one that does refuses the rest.
    """
    call, transport = the_answer(
        manager,
        "make_transport",
        Transport,
        f"node is {url!r}; allowed is an http or https address, memory://name or "
        "udp+multicast://group:port, or a URL that a plugin knows (`reliable-channel plugins` "
        "lists them)",
        url=url,
        channel_id=channel_id,
        sender_id=sender_id,
        settings=settings,
    )
    made: Transport = transport
    return made if call.built_in else CheckedTransport(made, call.plugin)


def make_encryption(
    manager: pluggy.PluginManager, url: str, channel_id: str, sender_id: str
) -> Encryption:
    """The encryption of a URL.

    Raises:
        PluginError: a plugin failed, or two know the scheme.
        ValueError: no plugin knows the scheme, or the one that does refuses the rest.
    """
    encryption: Encryption = the_answer(
        manager,
        "make_encryption",
        Encryption,
        f"encryption is {url!r}: no installed plugin knows this scheme (`reliable-channel plugins` "
        "lists them)",
        url=url,
        channel_id=channel_id,
        sender_id=sender_id,
    )[1]
    return encryption


def make_retry_policy(manager: pluggy.PluginManager, policy: RetryPolicy | str) -> RetryPolicy:
    """The retry policy of a name, or the one that is given.

    Raises:
        PluginError: a plugin failed, or two know the name.
        ValueError: no plugin knows the name.
    """
    made, whose = _named(manager, "retry_policy", policy, RETRY_POLICIES)
    found: RetryPolicy = made
    return checked_retry_policy(found, whose) if whose else found


def make_repair_policy(manager: pluggy.PluginManager, policy: RepairPolicy | str) -> RepairPolicy:
    """The repair policy of a name, or the one that is given.

    Raises:
        PluginError: a plugin failed, or two know the name.
        ValueError: no plugin knows the name.
    """
    made, whose = _named(
        manager, "retrieval_strategy", policy, REPAIR_POLICIES, hook="make_repair_policy"
    )
    found: RepairPolicy = made
    return checked_repair_policy(found, whose) if whose else found


def make_id_function(manager: pluggy.PluginManager, function: IdFunction | str) -> IdFunction:
    """The id function of a name, or the one that is given.

    Raises:
        PluginError: a plugin failed, or two know the name.
        ValueError: no plugin knows the name.
    """
    made, whose = _named(manager, "id_function", function, ID_FUNCTIONS)
    found: IdFunction = made
    return checked_id_function(found, whose) if whose else found


def _named(
    manager: pluggy.PluginManager,
    argument: str,
    given: object,
    built_in: Iterable[str],
    *,
    hook: str | None = None,
) -> tuple[Any, str]:
    """A function of a name or one that is given, and whose it is; empty for the SDK's own."""
    if not isinstance(given, str):
        if callable(given):
            return given, f"the given {argument}"
        raise ValueError(f"{argument} is {given!r}; allowed is a name or a function")
    call, function = the_answer(
        manager,
        hook or f"make_{argument}",
        cast("type", Callable),
        _unknown(argument, given, built_in),
        name=given,
    )
    return function, "" if call.built_in else f"the {argument} of plugin {call.plugin!r}"


def _unknown(argument: str, given: str, built_in: Iterable[str]) -> str:
    return (
        f"{argument} is {given!r}; allowed are {', '.join(map(repr, built_in))}, and what an "
        "installed plugin knows (`reliable-channel plugins` lists them)"
    )


def make_wire_profile(manager: pluggy.PluginManager, given: WireProfile | str) -> WireProfile:
    """The wire profile of a name, or the one that is given.

    Raises:
        PluginError: a plugin failed, or two know the name.
        ValueError: no plugin knows the name.
    """
    if isinstance(given, WireProfile):
        return given
    call, profile = the_answer(
        manager,
        "make_wire_profile",
        WireProfile,
        _unknown("wire_profile", given, PROFILES),
        name=given,
    )
    made: WireProfile = profile
    if call.built_in:
        return made
    return checked_wire_profile(made, given, f"the wire profile of plugin {call.plugin!r}")


def state_store(
    manager: pluggy.PluginManager, url: str, channel_id: str, sender_id: str
) -> StateStore:
    """The state store of a URL.

    Raises:
        PluginError: a plugin failed, or two know the scheme.
        ValueError: no plugin knows the scheme, or the one that does refuses the rest.
    """
    store: StateStore = the_answer(
        manager,
        "make_state_store",
        StateStore,
        f"state is {url!r}: no plugin knows this scheme; built in are memory: and sqlite:///path",
        url=url,
        channel_id=channel_id,
        sender_id=sender_id,
    )[1]
    return store


def sync_core(manager: pluggy.PluginManager, protocol: str, setting: SyncSetting) -> SyncCore:
    """A core of a sync protocol.

    Raises:
        PluginError: a plugin failed, or two know the protocol.
        ValueError: no plugin knows the protocol.
    """
    core: SyncCore = the_answer(
        manager,
        "make_sync_core",
        SyncCore,
        f"sync is {protocol!r}: no plugin knows this protocol; built in is sds, and others come "
        "with packages such as reliable-channel-mvds",
        protocol=protocol,
        setting=setting,
    )[1]
    return core
