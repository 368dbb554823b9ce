"""What reliable-channel finds through the entry point `mvds`."""

from typing import Final

from reliable_channel.hooks import hookimpl
from reliable_channel.sync_core import SyncCore, SyncSetting

from .channel import MvdsCore

NAME: Final = "mvds"


@hookimpl
def make_sync_core(protocol: str, setting: SyncSetting) -> SyncCore | None:
    """The core of `sync="mvds"`."""
    return MvdsCore(setting) if protocol == NAME else None
