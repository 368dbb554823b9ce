"""Services of a node for light clients: light push, filter and Store.

REST and libp2p both serve from `Services`. `LocalServices` answers from this node, `PeerServices`
(`waku.node.libp2p`) asks a libp2p peer.
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
"""Filter criterion: pubsub topic and content topic."""


class ServiceRefused(Exception):
    """A service node refuses a request, or cannot be reached.

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
    """Do nothing if a service node can decode a message.

    Raises:
        ServiceRefused: in the words of nwaku's client about one with a long `meta`.
    """
    if len(message.meta) > MAX_META_BYTES:
        reason = 'decode_rpc_failure: (kind: InvalidLengthField, field: "meta")'
        raise ServiceRefused(500, "response failure, requestId mismatch", legacy=reason)


class Subscriber(Protocol):
    """Filter subscriber: a client of this node, or another node."""

    def __hash__(self) -> int: ...

    @property
    def peer_id(self) -> str:
        """Node that is the subscriber, or to which the client belongs."""

    def push(self, envelope: Envelope) -> None:
        """Receive a message now, or keep it for later. It never waits."""


class Services(Protocol):
    """The services of one node. Every method raises `ServiceRefused`."""

    async def push(self, pubsub_topic: str, message: WakuMessage) -> int:
        """Publish a message. Return the number of relay peers that received it.

        Without a pubsub topic the service node derives it from the content topic.
        """

    async def ping(self, subscriber: Subscriber) -> None:
        """Return if a subscriber has a filter subscription."""

    async def subscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Push matching messages to a subscriber from now on."""

    async def unsubscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Stop pushing matching messages to a subscriber."""

    async def unsubscribe_all(self, subscriber: Subscriber) -> None:
        """End every filter subscription of a subscriber."""

    async def query(self, query: StoreQuery) -> StorePage:
        """Return one page of Store."""


@runtime_checkable
class RemoteServices(Services, Protocol):
    """Services of a peer that knows one filter subscriber: this node, for all of its clients."""

    async def check(self) -> None:
        """Return if the peer knows this node as a subscriber."""

    async def renew(self, criteria: Sequence[Criterion]) -> None:
        """Ask the peer to push the messages that clients want."""

    async def forget(self, criteria: Sequence[Criterion]) -> None:
        """Ask the peer to stop pushing messages that no client wants. A failure is ignored."""
