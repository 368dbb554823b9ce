"""libp2p on sockets: hosts, links and streams for asyncio and trio.

* framing: WebSocket frames or none, without I/O
* stream, link, host: one stream, one connection, all connections
* inlet: streams on which only the peer sends
* services: identify and ping
"""

from .host import Host, HostLimits, LinkEnded
from .inlet import MessageSink
from .link import Handler, Link
from .services import IdentifiedPeer, identify, ping
from .stream import Carrier, Stream

__all__ = [
    "Carrier",
    "Handler",
    "Host",
    "HostLimits",
    "IdentifiedPeer",
    "Link",
    "LinkEnded",
    "MessageSink",
    "Stream",
    "identify",
    "ping",
]
