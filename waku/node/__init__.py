"""An embedded Waku node: nwaku's REST API in the process or on a port, messages in SQLite.

`EmbeddedNode` is the node, `serve` runs one as a server; see `docs/node.md`.
"""

from typing import TYPE_CHECKING, Any

from waku.node.envelope import Envelope
from waku.node.identity import BadAddress, NodeAddress
from waku.node.node import EmbeddedNode, PublishRefused, StoreUnavailable
from waku.node.options import NodeOptions
from waku.node.remote import DialFailed
from waku.node.store import ArchiveError

if TYPE_CHECKING:
    from waku.node.server import CannotListen, serve, serve_node

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


def __getattr__(name: str) -> Any:
    # Loaded when used: serving over HTTP needs uvicorn, an extra.
    if name in {"CannotListen", "serve", "serve_node"}:
        from waku.node import server

        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
