"""The hooks that plugins fill, and that the SDK fills by itself for what it brings along."""

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from .state import StateStore
    from .sync_core import SyncCore, SyncSetting

PROJECT = "reliable_channel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Hooks:
    """What a plugin may implement, each with `@reliable_channel.hooks.hookimpl`."""

    @hookspec(firstresult=True)
    def make_state_store(self, url: str, channel_id: str, sender_id: str) -> "StateStore | None":
        """Return the store of a state URL, or None where its scheme is not yours.

        Called once for each channel that is opened with `state=`, in the channel's thread: must
        not block and do no I/O, which is for the store's `open`.

        Raises:
            ValueError: the scheme is yours and the rest is wrong; the text says what is allowed.
        """

    @hookspec(firstresult=True)
    def make_sync_core(self, protocol: str, setting: "SyncSetting") -> "SyncCore | None":
        """Return the core of a sync protocol, or None where you do not know its name.

        Called once each time a channel is opened, with the name given as `sync=`; must not block
        and do no I/O, as the core itself never does. `sync_core.py` says what is asked of it.
        """
