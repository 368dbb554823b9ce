"""The one plugin manager, and what the SDK registers there itself."""

from functools import cache

import pluggy

from .hooks import PROJECT, Hooks, hookimpl
from .sds import SdsProtocol
from .state import StateStore
from .state.connect import memory_store, sqlite_store
from .sync_core import SyncCore, SyncSetting


class _StateStores:
    """`memory:` and `sqlite:`."""

    @hookimpl(trylast=True)
    def make_state_store(self, url: str, channel_id: str, sender_id: str) -> StateStore | None:
        return memory_store(url, channel_id, sender_id) or sqlite_store(url, channel_id, sender_id)


class _Sds:
    """`sds`, the default."""

    @hookimpl(trylast=True)
    def make_sync_core(self, protocol: str, setting: SyncSetting) -> SyncCore | None:
        return sds_core(setting) if protocol == "sds" else None


def sds_core(setting: SyncSetting) -> SdsProtocol:
    """The core that comes along."""
    return SdsProtocol(
        setting.channel_id,
        setting.sender_id,
        now_ms=setting.now_ms,
        random=setting.random,
        options=setting.options.sds_options(),
        profile=setting.options.profile,
        signing=setting.signing,
        require_signatures=setting.require_signatures,
        recorder=setting.recorder,
        archive=setting.archive,
    )


@cache
def plugin_manager() -> pluggy.PluginManager:
    """The plugin manager of this process."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.register(_StateStores(), name="state stores")
    manager.register(_Sds(), name="sds")
    return manager


def state_store(url: str, channel_id: str, sender_id: str) -> StateStore:
    """The state store of a URL.

    Raises:
        ValueError: no plugin knows the scheme, or the one that does refuses the rest.
    """
    store: StateStore | None = plugin_manager().hook.make_state_store(
        url=url, channel_id=channel_id, sender_id=sender_id
    )
    if store is None:
        raise ValueError(
            f"state is {url!r}: no plugin knows this scheme; built in are memory: and "
            "sqlite:///path"
        )
    return store


def sync_core(protocol: str, setting: SyncSetting) -> SyncCore:
    """A core of a sync protocol.

    Raises:
        ValueError: no plugin knows the protocol.
    """
    core: SyncCore | None = plugin_manager().hook.make_sync_core(protocol=protocol, setting=setting)
    if core is None:
        raise ValueError(
            f"sync is {protocol!r}: no plugin knows this protocol; built in is sds, and others "
            "come with packages such as reliable-channel-mvds"
        )
    return core
