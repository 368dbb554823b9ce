"""Embedded Waku node: nwaku's REST API in the process or on a port, with messages in SQLite.

`EmbeddedNode` is the node, and `serve` runs it as a server (`docs/node.md`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from waku.node.envelope import Envelope
    from waku.node.errors import (
        CannotListen,
        DialFailed,
        PublishRefused,
        RelayFull,
        StoreUnavailable,
    )
    from waku.node.identity import BadAddress
    from waku.node.libp2p import Listen, ListenLimits
    from waku.node.node import EmbeddedNode
    from waku.node.options import NodeOptions
    from waku.node.server import serve, serve_node
    from waku.node.services import Criterion, ServiceKind, ServiceRefused, Services, Subscriber
    from waku.node.store import ArchiveError

__all__ = [
    "ArchiveError",
    "BadAddress",
    "CannotListen",
    "Criterion",
    "DialFailed",
    "EmbeddedNode",
    "Envelope",
    "Listen",
    "ListenLimits",
    "NodeOptions",
    "PublishRefused",
    "RelayFull",
    "ServiceKind",
    "ServiceRefused",
    "Services",
    "StoreUnavailable",
    "Subscriber",
    "serve",
    "serve_node",
]

_HOME_OF: Final = {
    "ArchiveError": "store",
    "BadAddress": "identity",
    "CannotListen": "errors",
    "Criterion": "services",
    "DialFailed": "errors",
    "EmbeddedNode": "node",
    "Envelope": "envelope",
    "Listen": "libp2p",
    "ListenLimits": "libp2p",
    "NodeOptions": "options",
    "PublishRefused": "errors",
    "RelayFull": "errors",
    "ServiceKind": "services",
    "ServiceRefused": "services",
    "Services": "services",
    "StoreUnavailable": "errors",
    "Subscriber": "services",
    "serve": "server",
    "serve_node": "server",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name when it is used: serving over HTTP needs uvicorn, an extra."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"waku.node.{_HOME_OF[name]}"), name)

    def __dir__() -> list[str]:
        return __all__
