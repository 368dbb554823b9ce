"""Plugin that adds an observer to `reliable-channel`, which counts the events of channels."""

from reliable_channel.spi import Register, hookimpl


@hookimpl
def register_observers(register: Register) -> None:
    register("metrics", "reliable_channel_metrics.meters:observe")
