"""Groups on NDN itself: a face of our own to a forwarder, a node that publishes and fetches, and
channels on it."""

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
from .transport import NdnTransport

__all__ = [
    "ForwarderConnected",
    "ForwarderLost",
    "NdnTransport",
    "NodeEvent",
    "NodeOptions",
    "PacketRefused",
    "PublicationEvicted",
    "PublicationReceived",
    "PublicationUnavailable",
    "SvsNode",
]
