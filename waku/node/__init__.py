"""An embedded Waku node: nwaku's REST API in the process or on a port, messages in SQLite.

`EmbeddedNode` is the node, `serve` runs one as a server; see `docs/node.md`.
"""

from waku.node.envelope import Envelope
from waku.node.identity import BadAddress, NodeAddress
from waku.node.node import EmbeddedNode, PublishRefused, StoreUnavailable
from waku.node.options import NodeOptions
from waku.node.remote import DialFailed
from waku.node.server import CannotListen, serve, serve_node
from waku.node.store import ArchiveError

__all__ = [
    "ArchiveError",
    "BadAddress",
    "CannotListen",
    "DialFailed",
    "EmbeddedNode",
    "Envelope",
    "NodeAddress",
    "NodeOptions",
    "PublishRefused",
    "StoreUnavailable",
    "serve",
    "serve_node",
]
