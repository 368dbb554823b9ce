"""What the parts of a node need of the node around them."""

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
    """An `EmbeddedNode`, as its services see it."""

    @property
    def options(self) -> NodeOptions:
        """The node's options."""

    @property
    def agent(self) -> str:
        """What the node calls itself."""

    @property
    def relay(self) -> Relay:
        """The topics that it follows."""

    @property
    def mesh(self) -> Mesh:
        """The links to other nodes."""

    @property
    def shards(self) -> frozenset[int]:
        """The shards of its cluster that it follows; without relay, those of its options."""

    @property
    def filter(self) -> FilterTable:
        """What its filter subscribers want."""

    @property
    def archive(self) -> Archive | None:
        """Its Store; None where it has none."""

    @property
    def services(self) -> Services:
        """What it does for light clients."""

    def check_size(self, message: WakuMessage) -> None:
        """Raise `PublishRefused` for a message that is too large."""

    def publish(self, pubsub_topic: str, message: WakuMessage, *, unfollowed: bool = False) -> int:
        """Publish a message; return how many peers that follow the topic it went to."""

    def receive(self, envelope: Envelope, source: str) -> None:
        """Take a message of a peer."""

    def shard_for(self, content_topic: str) -> str:
        """Return the pubsub topic of a content topic, or raise `NoShard`."""

    def is_publishable(self, message: WakuMessage) -> bool:
        """Whether any node may publish a message."""

    def start_soon(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something until the node ends."""
