"""What a service node does for light clients: light push, filter and Store.

`Services` is what every face of a node serves from (REST, libp2p) and what a light client asks.
`LocalServices` answers from this node, `PeerServices` (`waku.node.libp2p`) asks a libp2p peer.
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
"""Pubsub topic and content topic."""


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
    """Do nothing for a message that a service node can decode.

    Raises:
        ServiceRefused: in the words of nwaku's client about one with a long `meta`.
    """
    if len(message.meta) > MAX_META_BYTES:
        reason = 'decode_rpc_failure: (kind: InvalidLengthField, field: "meta")'
        raise ServiceRefused(500, "response failure, requestId mismatch", legacy=reason)


class Subscriber(Protocol):
    """A filter subscriber: a client of this node, or another node."""

    def __hash__(self) -> int: ...

    @property
    def peer_id(self) -> str:
        """The node that it is, or belongs to."""

    def push(self, envelope: Envelope) -> None:
        """Take a message now, or keep it for later; never waits."""


class Services(Protocol):
    """The services of one node. Every method raises `ServiceRefused`."""

    async def push(self, pubsub_topic: str, message: WakuMessage) -> int:
        """Publish a message; return how many relay peers it went to.

        Without a pubsub topic the service node derives it from the content topic.
        """

    async def ping(self, subscriber: Subscriber) -> None:
        """Return if a subscriber has a filter subscription."""

    async def subscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Push what matches to a subscriber from now on."""

    async def unsubscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Push it no longer."""

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
        """Have the peer push what clients want."""

    async def forget(self, criteria: Sequence[Criterion]) -> None:
        """Have the peer push no longer what no client wants; a failure is ignored."""
