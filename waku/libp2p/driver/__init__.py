"""libp2p on sockets: hosts, links and streams for tasks, on asyncio and trio.

framing            WebSocket frames or none, without I/O
stream link host   one stream, one connection, all connections
services           identify and ping
"""

from .host import Host, HostLimits, LinkEnded
from .link import Handler, Link
from .services import PeerInfo, identify, ping
from .stream import Stream

__all__ = [
    "Handler",
    "Host",
    "HostLimits",
    "Link",
    "LinkEnded",
    "PeerInfo",
    "Stream",
    "identify",
    "ping",
]
