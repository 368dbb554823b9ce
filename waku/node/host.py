"""View of a node for its parts."""

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
    """`EmbeddedNode` as its services see it."""

    @property
    def options(self) -> NodeOptions:
        """The options of the node."""

    @property
    def agent(self) -> str:
        """Name of the node among its peers."""

    @property
    def relay(self) -> Relay:
        """Topics that the node follows."""

    @property
    def mesh(self) -> Mesh:
        """Links of the node to other nodes."""

    @property
    def shards(self) -> frozenset[int]:
        """Shards of its cluster that the node follows. Without relay, the shards of its options."""

    @property
    def filter(self) -> FilterTable:
        """Filter table of the node."""

    @property
    def archive(self) -> Archive | None:
        """Store of the node. None if it has no Store."""

    @property
    def services(self) -> Services:
        """Services of the node for light clients."""

    def check_size(self, message: WakuMessage) -> None:
        """Raise `PublishRefused` for a message that is too large."""

    def publish(self, pubsub_topic: str, message: WakuMessage, *, unfollowed: bool = False) -> int:
        """Publish a message. Return the number of peers that follow its topic."""

    def receive(self, envelope: Envelope, source: str) -> None:
        """Receive a message of a peer."""

    def shard_for(self, content_topic: str) -> str:
        """Return the pubsub topic of a content topic, or raise `NoShard`."""

    def is_publishable(self, message: WakuMessage) -> bool:
        """Return True if any node may publish a message."""

    def start_soon(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a task until the node ends."""
