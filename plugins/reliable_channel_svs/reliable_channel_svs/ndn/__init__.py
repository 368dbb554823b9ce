"""Groups on NDN itself: a face of our own to a forwarder, and a node that publishes and fetches."""

from .events import (
    ForwarderConnected,
    ForwarderLost,
    NodeEvent,
    PacketRefused,
    PublicationEvicted,
    PublicationReceived,
    PublicationUnavailable,
)
from .node import SvsNode
from .options import NodeOptions

__all__ = [
    "ForwarderConnected",
    "ForwarderLost",
    "NodeEvent",
    "NodeOptions",
    "PacketRefused",
    "PublicationEvicted",
    "PublicationReceived",
    "PublicationUnavailable",
    "SvsNode",
]
