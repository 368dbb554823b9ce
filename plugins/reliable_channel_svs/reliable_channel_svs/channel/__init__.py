"""`sync="svs"`: a channel over any transport with state vectors as the digest."""

from reliable_channel.hooks import hookimpl
from reliable_channel.sync_core import SyncCore, SyncSetting

from .core import SvsCore

__all__ = ["SvsCore", "make_sync_core"]


@hookimpl
def make_sync_core(protocol: str, setting: SyncSetting) -> SyncCore | None:
    """The core of `sync="svs"`."""
    return SvsCore(setting) if protocol == "svs" else None
