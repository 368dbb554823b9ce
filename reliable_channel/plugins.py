"""The one plugin manager, and what the SDK registers there itself."""

from functools import cache

import pluggy

from .hooks import PROJECT, Hooks, hookimpl
from .state import StateStore
from .state.connect import memory_store, sqlite_store


class _StateStores:
    """`memory:` and `sqlite:`."""

    @hookimpl(trylast=True)
    def make_state_store(self, url: str, channel_id: str, sender_id: str) -> StateStore | None:
        return memory_store(url, channel_id, sender_id) or sqlite_store(url, channel_id, sender_id)


@cache
def plugin_manager() -> pluggy.PluginManager:
    """The plugin manager of this process."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.register(_StateStores(), name="state stores")
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
