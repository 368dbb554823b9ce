"""Plugin that adds `sync="svs"` and channels at `ndn://` URLs to reliable-channel."""

from reliable_channel.spi import Register, hookimpl


@hookimpl
def register_sync_cores(register: Register) -> None:
    """Register the sync core of `sync="svs"`."""
    register("svs", "reliable_channel_svs.channel:SvsCore")


@hookimpl
def register_transports(register: Register) -> None:
    """Register the transport `ndn://host:port/group`, a group on NDN through a forwarder."""
    register("ndn", "reliable_channel_svs.ndn.transport:NdnTransport")
