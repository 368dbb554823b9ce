"""What reliable-channel finds through the entry point `mvds`."""

from typing import Final

from reliable_channel.spi import SyncCore, SyncSetting, hookimpl

from .channel import MvdsCore

NAME: Final = "mvds"


@hookimpl
def make_sync_core(protocol: str, setting: SyncSetting) -> SyncCore | None:
    """The core of `sync="mvds"`."""
    return MvdsCore(setting) if protocol == NAME else None
