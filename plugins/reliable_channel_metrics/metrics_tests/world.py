"""Channels for tests of metrics, without a network."""

from typing import Any

from reliable_channel import MessageAcknowledged
from reliable_channel.events import AcknowledgementSource
from reliable_channel.health import ChannelHealth
from reliable_channel_metrics import Meters


class Channel:
    """What a meter sees of a channel."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def health(self) -> ChannelHealth:
        return ChannelHealth("general", "alice", **{"live": True, "ready": True, **self.values})


CHANNEL = Channel()
ACKNOWLEDGED = MessageAcknowledged("m", AcknowledgementSource.CAUSAL_HISTORY, "bob")


def observed(*events: tuple[Any, int], channel: Channel = CHANNEL) -> Meters:
    meters = Meters()
    for event, at_ms in events:
        meters.observe("general", "alice", event, at_ms, channel.health)
    return meters
