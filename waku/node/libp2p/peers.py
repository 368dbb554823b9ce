"""libp2p peers as links of the node, with their services for the node's clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from waku.errors import BadAnswer, EndpointMissing, NodeUnreachable, NoPeers, WakuError
from waku.models import HASH_BYTES, StoreEntry, StorePage, StoreQuery, WakuMessage
from waku.node.envelope import Envelope, encoded_size
from waku.node.filter import FilterTable, in_requests
from waku.node.libp2p.gossip import RelayGossip
from waku.node.mesh import PeerInfo
from waku.node.services import Criterion, ServiceRefused, Subscriber, refuse_unreadable
from waku.p2p.codec import FilterRequest
from waku.p2p.service_peer import ServicePeer

if TYPE_CHECKING:
    from waku.p2p.codec import FilterKind

__all__ = ["PeerLink", "PeerServices"]

T = TypeVar("T")

DIAL_S: Final = 2.0
"""Time (s) that a request waits for an absent service node, because nwaku dials it at each
request."""

NOBODY_STATUS: Final = 505
NOBODY: Final = "No peers for topic, skipping publish"
LEGACY_NOBODY: Final = "not_published_to_any_peer"
UNREADABLE: Final = "decode_rpc_failure"

_EMPTY_CURSOR: Final = bytes(HASH_BYTES)


class PeerLink:
    """Link of the node to one libp2p peer.

    Args:
        peer_id: the peer.
        gossip: the node's part in relay; None where it takes none.
        table: what the node's clients want of peers that serve filter.
        max_message_bytes: limit of the network's messages.
        dial: dials the peer now, if the node stays connected to it.
    """

    def __init__(
        self,
        peer_id: str,
        gossip: RelayGossip | None,
        table: FilterTable,
        *,
        max_message_bytes: int,
        dial: Callable[[str], None],
    ) -> None:
        self.key: Final = peer_id
        self.max_message_bytes: Final = max_message_bytes
        self.services: Final = PeerServices(self, table)
        self.is_kept = False
        """True if the node stays connected to the peer, and dials it again."""
        self._gossip = gossip
        self._dial = dial
        self._changed = anyio.Event()
        self._peers: list[ServicePeer] = []
        self._info: PeerInfo | None = None

    @property
    def peer(self) -> ServicePeer | None:
        """Newest connection to the peer, or None if there is no connection."""
        return self._peers[-1] if self._peers else None

    async def reached(self) -> ServicePeer | None:
        """Return the peer, and dial it if there is no connection. Return None if the peer does not
        answer."""
        if not self._peers and self.is_kept:
            self._dial(self.key)
            with anyio.move_on_after(DIAL_S):
                await self._changed.wait()
        return self.peer

    @property
    def info(self) -> PeerInfo | None:
        """Last report of the peer about itself, or None before the first report."""
        return self._info

    @property
    def connected(self) -> bool:
        """True if there is a connection to the peer."""
        return bool(self._peers)

    def met(self, peer: ServicePeer) -> None:
        """Note a new connection to the peer."""
        self._peers.append(peer)
        self._changed.set()
        metadata = peer.metadata
        addresses = peer.info.listen_addresses
        self._info = PeerInfo(
            peer_id=self.key,
            multiaddr=str(addresses[0]).partition("/p2p/")[0] if addresses else "",
            protocols=tuple(sorted(peer.info.protocols)),
            shards=tuple(sorted(metadata.shards)) if metadata is not None else (),
            agent=peer.info.agent,
        )

    def lost(self, peer: ServicePeer) -> None:
        """Note that a connection to the peer ended."""
        self._peers.remove(peer)
        if not self._peers:
            self._changed = anyio.Event()

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if the peer is subscribed to a relay topic."""
        if self._gossip is None:
            return False
        return any(self.key == str(one) for one in self._gossip.meshes.subscribers(pubsub_topic))

    def send(self, envelope: Envelope) -> None:
        """Do nothing, because gossipsub sends messages to all peers at once."""


class PeerServices:
    """Services of a libp2p peer for all clients of this node.

    The peer knows only one subscriber, this node. `table` records which client of this node wants
    which topic. Refusals that this node decides also use nwaku's words.
    """

    def __init__(self, link: PeerLink, table: FilterTable) -> None:
        self._link = link
        self._table = table

    async def push(self, pubsub_topic: str, message: WakuMessage) -> int:
        """Publish a message through the peer. Return the number of relay peers that the message
        reached.

        Raises:
            ServiceRefused: by the peer, or it cannot be reached.
        """

        refuse_unreadable(message)
        limit_bytes = self._link.max_message_bytes
        if encoded_size(message) > limit_bytes:  # the peer would end the stream without an answer
            raise ServiceRefused(500, f"Message size exceeded maximum of {limit_bytes} bytes")

        async def push(peer: ServicePeer) -> int:
            return (await peer.light_push(message, pubsub_topic)).relay_peer_count or 1

        dial_failure = f"dial_failure: {self._link.key} is not accessible"
        try:
            return await self._asked(
                push,
                away=ServiceRefused(505, dial_failure, legacy="dial_failure"),
                silent=ServiceRefused(503, "Push request timed out"),
                unreadable=ServiceRefused(500, UNREADABLE),
            )
        except NoPeers as error:
            detail = NOBODY if error.status in (None, 200) else error.detail
            raise ServiceRefused(NOBODY_STATUS, detail, legacy=LEGACY_NOBODY) from error

    async def query(self, query: StoreQuery) -> StorePage:
        """Return one page of the peer's Store.

        Raises:
            ServiceRefused: by the peer, or it cannot be reached, or its page cannot be used.
        """
        if query.cursor == _EMPTY_CURSOR:
            raise ServiceRefused(400, "BAD_REQUEST: invalid cursor")
        unreadable = ServiceRefused(300, f"BAD_RESPONSE: {UNREADABLE}")
        page = await self._asked(
            lambda peer: peer.store(query),
            away=ServiceRefused(504, f"PEER_DIAL_FAILURE: {self._link.key}"),
            silent=ServiceRefused(500, "No history response received (timeout)"),
            unreadable=unreadable,
        )
        if not all(map(_is_true, page.entries)):
            raise unreadable
        return page

    async def ping(self, subscriber: Subscriber) -> None:
        """Raise an error unless a client is subscribed and the peer still knows this node as a
        subscriber.

        Raises:
            ServiceRefused: not, or it cannot be reached.
        """
        self._table.ping(subscriber)
        await self.check()

    async def subscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Ask the peer to push messages that match the criteria of a client.

        Raises:
            ServiceRefused: too many criteria, or it cannot be reached.
        """
        added = self._table.subscribe(subscriber, criteria)  # first: a push may come at once
        try:
            await self.renew(criteria)
        except ServiceRefused:
            if added:
                self._table.unsubscribe(subscriber, added)
            raise

    async def unsubscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """End the subscription of a client to the given criteria. The peer still pushes messages
        for other clients.

        Raises:
            ServiceRefused: none was subscribed to, or it cannot be reached.
        """
        await self._end(subscriber, self._table.unsubscribe(subscriber, criteria))

    async def unsubscribe_all(self, subscriber: Subscriber) -> None:
        """End all filter subscriptions of a client.

        Raises:
            ServiceRefused: it has none, or the peer cannot be reached.
        """
        await self._end(subscriber, self._table.unsubscribe_all(subscriber))

    async def check(self) -> None:
        """Raise an error unless the peer knows this node as a subscriber.

        Raises:
            ServiceRefused: not (404), or it cannot be reached.
        """
        await self._filter(FilterRequest.SUBSCRIBER_PING)

    async def renew(self, criteria: Sequence[Criterion]) -> None:
        """Ask the peer to push the messages that clients want.

        Raises:
            ServiceRefused: as `subscribe`.
        """
        await self._filter(FilterRequest.SUBSCRIBE, criteria)

    async def forget(self, criteria: Sequence[Criterion]) -> None:
        """Ask the peer to stop pushing messages that no client wants. The method ignores a failure
        of the request."""
        with suppress(ServiceRefused):
            for part in in_requests(self._unwanted(criteria)):
                await self._filter(FilterRequest.UNSUBSCRIBE, part)

    async def _end(self, subscriber: Subscriber, removed: Sequence[Criterion]) -> None:
        """Have the peer push no longer what a client gave up; where that fails, it keeps it."""
        for part in in_requests(self._unwanted(removed)):
            try:
                await self._filter(FilterRequest.UNSUBSCRIBE, part)
            except ServiceRefused as refusal:
                if refusal.status != 404:  # the peer has forgotten us, which is as good
                    for kept in in_requests(removed):
                        self._table.subscribe(subscriber, kept)
                    raise

    def _unwanted(self, criteria: Sequence[Criterion]) -> list[Criterion]:
        return [one for one in criteria if one not in self._table.criteria]

    async def _filter(self, kind: FilterKind, criteria: Sequence[Criterion] = ()) -> None:
        """Make one request for each pubsub topic; without criteria, one."""
        by_shard: dict[str | None, list[str]] = {} if criteria else {None: []}
        for pubsub_topic, content_topic in criteria:
            by_shard.setdefault(pubsub_topic, []).append(content_topic)

        async def ask(peer: ServicePeer) -> None:
            async with peer.subscribing:
                for shard, topics in by_shard.items():
                    await peer.filter(kind, shard, topics)

        await self._asked(
            ask,
            away=ServiceRefused(504, f"PEER_DIAL_FAILURE: {self._link.key}"),
            silent=ServiceRefused(503, "SERVICE_UNAVAILABLE: Subscription request timed out"),
            unreadable=ServiceRefused(500, f"BAD_RESPONSE: {UNREADABLE}"),
        )

    async def _asked(
        self,
        ask: Callable[[ServicePeer], Awaitable[T]],
        *,
        away: ServiceRefused,
        silent: ServiceRefused,
        unreadable: ServiceRefused,
    ) -> T:
        """Ask the peer; the refusals are for one that cannot be reached, one that does not answer,
        and an answer that cannot be read."""
        peer = await self._link.reached()
        if peer is None:
            raise away
        try:
            return await ask(peer)
        except NoPeers:
            raise
        except EndpointMissing as error:
            raise away from error
        except NodeUnreachable as error:
            raise (silent if peer.link.is_open else away) from error
        except BadAnswer as error:
            raise unreadable from error
        except WakuError as error:
            raise ServiceRefused(error.status or 500, error.detail) from error


def _is_true(entry: StoreEntry) -> bool:
    """Return True if a message has the hash that the peer claims, as far as that can be seen."""
    if entry.message is None or entry.pubsub_topic is None:
        return True
    return Envelope.of(entry.pubsub_topic, entry.message).hash == entry.message_hash
