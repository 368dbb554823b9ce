"""Interface of a node, as its services use it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from waku.models import WakuMessage
from waku.node.envelope import Envelope
from waku.node.filter import FilterTable
from waku.node.mesh import Mesh
from waku.node.options import NodeOptions
from waku.node.relay import Relay
from waku.node.services import Services
from waku.node.store import Archive

__all__ = ["ServiceHost"]


class ServiceHost(Protocol):
    """Interface of `EmbeddedNode` for its services."""

    @property
    def options(self) -> NodeOptions:
        """Options that the node was made with."""

    @property
    def agent(self) -> str:
        """Name that the node reports to its peers."""

    @property
    def relay(self) -> Relay:
        """Topics that the node follows."""

    @property
    def mesh(self) -> Mesh:
        """Links of the node to other nodes."""

    @property
    def shards(self) -> frozenset[int]:
        """Shards of the node's cluster that the node follows. Without relay, the property has the
        shards of the options."""

    @property
    def filter(self) -> FilterTable:
        """Filter subscribers of the node."""

    @property
    def archive(self) -> Archive | None:
        """Archive of the Store service, or None if the node has no Store."""

    @property
    def services(self) -> Services:
        """Services of the node for light clients."""

    def check_size(self, message: WakuMessage) -> None:
        """Raise `PublishRefused` if a message is too large."""

    def publish(self, pubsub_topic: str, message: WakuMessage, *, unfollowed: bool = False) -> int:
        """Publish a message, and return the number of peers that follow its topic."""

    def receive(self, envelope: Envelope, source: str) -> None:
        """Process a message that a peer sent."""

    def shard_for(self, content_topic: str) -> str:
        """Return the pubsub topic for a content topic, or raise `NoShard`."""

    def is_publishable(self, message: WakuMessage) -> bool:
        """Return True if nodes accept a message of this size."""

    def start_soon(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a task until the node ends."""
