"""A link between two nodes of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waku.node.envelope import Envelope

if TYPE_CHECKING:
    from waku.node.mesh import PeerInfo
    from waku.node.node import EmbeddedNode
    from waku.node.services import Services

__all__ = ["LocalLink"]


class LocalLink:
    """A link between two nodes of one process."""

    connected = True

    def __init__(self, owner: EmbeddedNode, other: EmbeddedNode) -> None:
        self.other = other
        self.key = other.peer_id
        self._owner = owner

    @property
    def info(self) -> PeerInfo:
        """Who is at the other end."""
        return self.other.info

    @property
    def services(self) -> Services:
        """What the other node does for light clients."""
        return self.other.services

    def follows(self, pubsub_topic: str) -> bool:
        """Tell whether the other node follows a topic."""
        return self.other.options.relay and self.other.relay.follows(pubsub_topic)

    def send(self, envelope: Envelope) -> None:
        """Hand over a message now."""
        self.other.receive(envelope, self._owner.peer_id)
