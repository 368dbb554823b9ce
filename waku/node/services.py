"""Services of a node for light clients, which are light push, filter and Store.

The REST API and the libp2p protocols use the same `Services`. `LocalServices` answers from this
node, and `PeerServices` (`waku.node.libp2p`) asks a libp2p peer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from waku.models import StorePage, StoreQuery, WakuMessage
from waku.node.envelope import MAX_META_BYTES, Envelope

__all__ = [
    "Criterion",
    "RemoteServices",
    "ServiceKind",
    "ServiceRefused",
    "Services",
    "Subscriber",
    "refuse_unreadable",
]

ServiceKind: TypeAlias = Literal["filter", "lightpush", "store"]

Criterion: TypeAlias = tuple[str, str]
"""Filter criterion, as a pubsub topic and a content topic."""


class ServiceRefused(Exception):
    """A service node refuses a request or cannot be reached.

    Args:
        status: of the protocol: 300, 400, 404, 429, 500, 503, 504 or 505.
        description: in nwaku's words.
        legacy: the description in light push v2, where that has another.
    """

    def __init__(self, status: int, description: str, *, legacy: str | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.legacy = description if legacy is None else legacy


def refuse_unreadable(message: WakuMessage) -> None:
    """Raise an error unless a service node can decode a message.

    Raises:
        ServiceRefused: in the words of nwaku's client about one with a long `meta`.
    """
    if len(message.meta) > MAX_META_BYTES:
        reason = 'decode_rpc_failure: (kind: InvalidLengthField, field: "meta")'
        raise ServiceRefused(500, "response failure, requestId mismatch", legacy=reason)


class Subscriber(Protocol):
    """Filter subscriber, which is a client of this node or another node."""

    def __hash__(self) -> int: ...

    @property
    def peer_id(self) -> str:
        """Peer id of the node that is the subscriber or has the client."""

    def push(self, envelope: Envelope) -> None:
        """Receive a message now, or keep the message for later. The call never waits."""


class Services(Protocol):
    """Services of one node for light clients. Every method raises `ServiceRefused` if the node
    refuses."""

    async def push(self, pubsub_topic: str, message: WakuMessage) -> int:
        """Publish a message through the service node. Return the number of relay peers that
        received the message.

        If no pubsub topic is given, the service node derives it from the content topic.
        """

    async def ping(self, subscriber: Subscriber) -> None:
        """Raise an error unless a subscriber has a filter subscription."""

    async def subscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Push messages that match the criteria to a subscriber from now on."""

    async def unsubscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Stop pushing messages that match the criteria to a subscriber."""

    async def unsubscribe_all(self, subscriber: Subscriber) -> None:
        """End every filter subscription of a subscriber."""

    async def query(self, query: StoreQuery) -> StorePage:
        """Return one page of messages from Store."""


@runtime_checkable
class RemoteServices(Services, Protocol):
    """Services of a peer, which knows this node as the one filter subscriber for all its
    clients."""

    async def check(self) -> None:
        """Raise an error unless the peer knows this node as a subscriber."""

    async def renew(self, criteria: Sequence[Criterion]) -> None:
        """Ask the peer to push the messages that clients want."""

    async def forget(self, criteria: Sequence[Criterion]) -> None:
        """Ask the peer to stop pushing messages that no client wants. The method ignores a failure
        of the request."""
