"""What a link to another node needs of the node around it."""

from __future__ import annotations

from typing import Protocol

from waku.node.envelope import Envelope
from waku.node.host import Host
from waku.node.service_nodes import ServiceNodes

__all__ = ["PeerHost"]


class PeerHost(Host, Protocol):
    """An `EmbeddedNode`, as its links see it."""

    @property
    def peer_id(self) -> str:
        """What other nodes know it by."""

    @property
    def service_nodes(self) -> ServiceNodes:
        """The nodes that serve its own light clients."""

    def hello_json(self) -> dict[str, object]:
        """Return how the node introduces itself."""

    def receive(self, envelope: Envelope, source: str) -> None:
        """Take a message from a link."""

    def archive_only(self, envelope: Envelope) -> None:
        """Keep a message of another node's store, without delivering it."""
