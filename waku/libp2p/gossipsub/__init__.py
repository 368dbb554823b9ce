"""Gossipsub v1.1 without I/O, as Waku's relay speaks it: anonymous messages, no scores.

    options    parameters and limits
    caches     messages of the last seconds, and the ids of the last minutes
    router     meshes and gossip: RPCs and the time go in, RPCs and events come out

https://github.com/libp2p/specs/blob/master/pubsub/gossipsub/gossipsub-v1.1.md, 11/WAKU2-RELAY
"""

from .options import RELAY, GossipOptions
from .router import Arrived, Blamed, GossipEvent, Peer, QueueFull, Router, message_id

__all__ = [
    "RELAY",
    "Arrived",
    "Blamed",
    "GossipEvent",
    "GossipOptions",
    "Peer",
    "QueueFull",
    "Router",
    "message_id",
]
