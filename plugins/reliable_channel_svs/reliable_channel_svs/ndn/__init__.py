"""Groups on NDN itself: a face to a forwarder, a node that publishes and fetches, and channels on
top."""

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
