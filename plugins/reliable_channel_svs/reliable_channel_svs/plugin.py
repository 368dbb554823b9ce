"""What the package adds to reliable-channel: `sync="svs"`, and channels at `ndn://` URLs."""

from reliable_channel.spi import SyncCore, SyncSetting, Transport, WakuSettings, hookimpl

from .channel import SvsCore
from .ndn.transport import NdnTransport
from .ndn.url import SCHEME


@hookimpl
def make_sync_core(protocol: str, setting: SyncSetting) -> SyncCore | None:
    """The core of `sync="svs"`."""
    return SvsCore(setting) if protocol == "svs" else None


@hookimpl
def make_transport(url: str, sender_id: str, settings: WakuSettings) -> Transport | None:
    """`ndn://host:port/group`: a group on NDN, through a forwarder.

    Raises:
        ValueError: it is not of that form.
    """
    if url.partition("://")[0].lower() != SCHEME:
        return None
    return NdnTransport(url, settings, sender_id)
