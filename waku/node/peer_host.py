"""What a link to another node needs of the node around it."""

from __future__ import annotations

from typing import Protocol

from waku.node.envelope import Envelope
from waku.node.host import Host
from waku.node.metrics import Metrics
from waku.node.service_nodes import ServiceNodes
from waku.node.store_sync import StoreSync

__all__ = ["PeerHost"]


class PeerHost(Host, Protocol):
    """An `EmbeddedNode`, as its links see it."""

    @property
    def peer_id(self) -> str:
        """What other nodes know it by."""

    @property
    def service_nodes(self) -> ServiceNodes:
        """The nodes that serve its own light clients."""

    @property
    def store_sync(self) -> StoreSync | None:
        """What keeps its Store the same as theirs; None where that is off."""

    @property
    def metrics(self) -> Metrics:
        """What it has counted."""

    def hello_json(self) -> dict[str, object]:
        """Return how the node introduces itself."""

    def receive(self, envelope: Envelope, source: str) -> None:
        """Take a message from a link."""

    def archive_only(self, envelope: Envelope, *, any_time: bool = False) -> None:
        """Keep a message of another node's store, without delivering it."""
