"""Plugin behind the entry point `mvds` of reliable-channel."""

from reliable_channel.spi import Register, hookimpl


@hookimpl
def register_sync_cores(register: Register) -> None:
    """Register the sync core of `sync="mvds"`."""
    register("mvds", "reliable_channel_mvds.channel:MvdsCore")
