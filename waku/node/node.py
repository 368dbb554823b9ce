"""Waku node in the process, with nwaku's REST API as an ASGI app."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import metadata
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
from anyio.abc import TaskGroup

from waku._api.base import EMBEDDED_AGENT
from waku.models import WakuMessage
from waku.node.app import NodeApp
from waku.node.clients import Client, Clients
from waku.node.envelope import MAX_META_BYTES, Envelope, encoded_size
from waku.node.errors import DialFailed, PublishRefused, StoreUnavailable
from waku.node.filter import FilterTable
from waku.node.http import Route
from waku.node.identity import BadAddress, check_address, new_peer_id
from waku.node.local_services import LocalServices
from waku.node.mesh import GOSSIP, Mesh, MeshLink, PeerInfo
from waku.node.messaging import Messaging
from waku.node.metrics import Metrics
from waku.node.options import NodeOptions
from waku.node.protocols import RELAY, protocols_of
from waku.node.relay_behaviours import RELAYS
from waku.node.service_nodes import ServiceNodes
from waku.node.services import ServiceKind, Services
from waku.node.sharding import NoShard, Sharding
from waku.node.store import Archive, ArchiveUnavailable
from waku.node.store_resume import StoreResume
from waku.topics import InvalidTopic, PubsubTopic

if TYPE_CHECKING:
    from waku.node.libp2p import Listen, Network

__all__ = ["EmbeddedNode"]

NS_PER_S: Final = 1_000_000_000


class EmbeddedNode:
    """Waku node that runs in the process. The node has no peers unless it listens or is given some
    peers.

    Use the node in `async with`, on asyncio or trio. `node.app` is its REST API:

        async with EmbeddedNode() as node:
            async with WakuClient("http://node", app=node.app) as client:
                ...

    Other nodes are connected by libp2p (extra `[libp2p]`), or joined in the process (`join`). A
    node belongs to one event loop.

    Args:
        options: see `NodeOptions`.
        listen: addresses at which peers are served, such as `/ip4/0.0.0.0/tcp/8000/ws`, or `Listen`
            with all options.
        relay_peers: peers to stay connected to for relay: multiaddresses, `enr:…` and
            `enrtree://…`; on a cluster without RLN.
        service_nodes: the only peer to ask for "filter", "lightpush" or "store", by a multiaddress
            with its peer id. Other services are asked of any connected peer that offers them.

    Raises:
        ArchiveError: the store cannot be opened.
        CannotListen: the identity or certificate cannot be used; entering the node raises it if an
            address is taken.
        BadAddress: an address of `service_nodes` cannot be read, or has no peer id.
        ImportError: peers need the extra `[libp2p]`.
        ValueError: `service_nodes` names a service that there is not, an address cannot be listened
            at or dialled, or `relay_peers` are on a cluster with RLN, or cannot be read.
    """

    def __init__(
        self,
        options: NodeOptions | None = None,
        *,
        listen: Listen | Iterable[str] | None = None,
        relay_peers: Sequence[str] = (),
        service_nodes: Mapping[ServiceKind, str] | None = None,
    ) -> None:
        self.options: Final = options or NodeOptions()
        options = self.options
        self.metrics: Final = Metrics()
        """What it has counted, for `GET /metrics`."""
        self.peer_id = new_peer_id()
        """Name among its peers; made up while the node has no key."""
        relay = RELAYS[options.behave_as]
        self.clients: Final = Clients(
            peer_id=self.peer_id,
            cache_capacity=max(options.cache_capacity, relay.min_capacity),
            max_clients=options.max_clients,
            idle_s=options.client_idle_s,
            now_ns=options.now_ns,
            on_drop=self._forget_client,
        )
        self._sharding = Sharding(options.cluster_id, options.num_shards)
        self.relay: Final = relay(
            self.clients.unnamed,
            options.pubsub_topics if options.relay else (),
            self._shard_or_none,
        )
        self.filter: Final = FilterTable(options.now_ns, repeats_to=self.peer_id)
        self._announced = frozenset(self.relay.pubsub_topics)
        self.metrics.followed_topics = len(self._announced)
        self.mesh: Final = Mesh(self._deliver, options.now_ns)
        self.services: Final[LocalServices] = LocalServices(self)
        """What this node does for light clients: its own, and those of other nodes."""
        services = (service_nodes or {}).items()
        named: dict[ServiceKind, str] = {kind: _named_peer(text) for kind, text in services}
        self.service_nodes: Final = ServiceNodes(self, named)
        """The nodes that serve its own light clients."""
        self.archive: Final = (
            Archive(
                options.store_path,
                capacity=options.store_capacity,
                capacity_bytes=options.store_limit_bytes,
            )
            if options.store
            else None
        )
        self.network: Network | None = None
        """Its connections to libp2p peers; None while it has had none."""
        if listen is not None or relay_peers or service_nodes:
            try:
                _refuse_rln(options, relay_peers)
                self._make_network(
                    listen, relay_peers=relay_peers, service_nodes=service_nodes or {}
                )
            except BaseException:
                if self.archive is not None:
                    self.archive.close()
                raise
        self._tasks: TaskGroup | None = None
        self.store_resume: Final = None if self.archive is None else StoreResume(self, self.archive)
        """What asks peers for messages that were missed; None without a Store."""
        self.messaging: Final = Messaging(
            self,
            peer_id=self.peer_id,
            max_clients=options.max_clients,
            idle_s=options.client_idle_s,
            now_ns=options.now_ns,
        )
        """What `/messaging/v1` serves, where that is on."""

    @cached_property
    def app(self) -> NodeApp:
        """REST API of the node as an ASGI app."""
        return NodeApp(self)

    @property
    def routes(self) -> tuple[Route, ...]:
        """Operations of the REST API."""
        return self.app.router.routes

    @property
    def agent(self) -> str:
        """Name that the node reports to its peers."""
        ours = f"{EMBEDDED_AGENT}{_version()}"
        return f"v0.37.1-beta as {ours}" if self.options.behave_as == "nwaku" else ours

    @property
    def info(self) -> PeerInfo:
        """Properties of the node, as the nodes that join it see them."""
        addresses = self.libp2p_addresses
        return PeerInfo(
            self.peer_id,
            addresses[0].partition("/p2p/")[0] if addresses else "",
            protocols_of(self.options),
            tuple(sorted(self.shards)) if self.options.relay else (),
            self.agent,
        )

    @property
    def shards(self) -> frozenset[int]:
        """Shards of the node's cluster that the node follows. Without relay, the property has the
        shards of the options."""
        options = self.options
        topics = self.relay.pubsub_topics if options.relay else options.pubsub_topics
        found = set()
        for topic in topics:
            with suppress(InvalidTopic):
                parsed = PubsubTopic.parse(topic)
                if parsed.cluster_id == options.cluster_id:
                    found.add(parsed.shard)
        return frozenset(found)

    @property
    def libp2p_addresses(self) -> tuple[str, ...]:
        """Multiaddresses, with the peer id, at which libp2p peers can connect to the node."""
        return () if self.network is None else tuple(map(str, self.network.addresses))

    @property
    def record(self) -> str:
        """Record of the node (`enr:…`), or an empty text unless the node listens."""
        return "" if self.network is None else self.network.record

    @property
    def dials(self) -> Mapping[bool, int]:
        """Number of dial attempts, by success (True) and failure (False)."""
        return {} if self.network is None else self.network.dials

    def _make_network(self, listen: Listen | Iterable[str] | None = None, **peers: Any) -> Network:
        """Make the connections to libp2p peers, which are those of the node from then on."""
        from waku.node.libp2p import Listen, Network  # an extra

        if listen is not None and not isinstance(listen, Listen):
            listen = Listen(tuple(listen))
        self.network = Network(self, listen, **peers)
        self.peer_id = str(self.network.identity.peer_id)
        self.mesh.gossip = self.network.gossip
        return self.network

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        try:
            if self.network is not None:
                await self._tasks.start(self.network.run)
            self.start_soon(self.service_nodes.run)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for link in list(self.mesh.links.values()):
            if isinstance(link, LocalLink):
                self.leave(link.other)
        tasks, self._tasks = self._tasks, None
        try:
            if tasks is not None:
                tasks.cancel_scope.cancel()
                # Without the block's exception, the group does not wrap it into an exception group.
                await tasks.__aexit__(None, None, None)
        finally:
            if self.archive is not None:
                self.archive.close()

    # -- messages ---------------------------------------------------------------------------------

    def publish(self, pubsub_topic: str, message: WakuMessage, *, unfollowed: bool = False) -> int:
        """Publish a message, and return the number of peers that follow its topic.

        If the message has no timestamp, the time of the node becomes its timestamp.

        Args:
            pubsub_topic: where it travels; for a content topic see `shard_for`.
            message: the message.
            unfollowed: publish on a topic that this node does not follow, too.

        Raises:
            PublishRefused: too large, or a topic that is not followed; with `unfollowed` and
                without `self_service` one that no peer follows either.
            StoreUnavailable: it cannot be kept, and so goes nowhere.
            RelayFull: the queue to relay peers is full, and it goes nowhere.
        """
        if not self.relay.follows(pubsub_topic):
            if not unfollowed:
                raise PublishRefused(f"Node not subscribed to topic: {pubsub_topic}")
            if not self.options.self_service and not self.mesh.followers(pubsub_topic):
                raise PublishRefused("publish failed in relay: NoPeersToPublish")
        self.check_size(message)
        if not message.timestamp:
            message = replace(message, timestamp=self.options.now_ns())
        if len(message.meta) > MAX_META_BYTES:
            return 0  # no node could decode it; nwaku does not notice, and its peers drop it
        if self.network is not None and self.network.gossip is not None:
            self.network.gossip.admit()
        envelope = Envelope.of(pubsub_topic, message)
        if self.relay.takes(pubsub_topic):
            try:
                self._keep(envelope)
            except ArchiveUnavailable as error:
                raise StoreUnavailable(f"{error}; free some space and send it again") from error
        return self.mesh.publish(envelope)

    def check_size(self, message: WakuMessage) -> None:
        """Raise an error unless a message can be published.

        Raises:
            PublishRefused: it is too large.
        """
        limit = self.options.max_message_bytes
        if encoded_size(message) > limit:
            raise PublishRefused(f"Message size exceeded maximum of {limit} bytes")

    def receive(self, envelope: Envelope, source: str) -> None:
        """Process a message that a peer sent. A repeated message, or a message over the limits, is
        ignored.

        If the message cannot be stored, clients and other nodes still receive it.
        """
        if not self.options.relay or not self.is_publishable(envelope.message):
            return
        takes = self.relay.takes(envelope.pubsub_topic)
        if self.mesh.receive(envelope, source) and takes:
            with suppress(ArchiveUnavailable):  # the archive has logged it
                self._keep(envelope)

    def shard_for(self, content_topic: str) -> str:
        """Return the pubsub topic for a content topic in the node's cluster.

        Raises:
            NoShard: the content topic has another shape.
        """
        return self._sharding.pubsub_topic_of(content_topic)

    def keep_missed(self, envelope: Envelope, *, deliver: bool) -> None:
        """Store a message that was fetched from a peer's Store, if this node keeps such messages.

        Args:
            envelope: the message.
            deliver: hand it to clients, too, if it is new.
        """
        if not self.is_publishable(envelope.message) or not self.relay.takes(envelope.pubsub_topic):
            return
        with suppress(ArchiveUnavailable):
            if self._keep(envelope) and deliver:
                self.mesh.receive(envelope, GOSSIP)

    def is_publishable(self, message: WakuMessage) -> bool:
        """Return True if nodes accept a message of this size and with a `meta` of this size."""
        size_bytes = encoded_size(message)
        return len(message.meta) <= MAX_META_BYTES and size_bytes <= self.options.max_message_bytes

    def _keep(self, envelope: Envelope) -> bool:
        """Put a message into the store, if it is one to keep; return whether it is new there.

        Raises:
            ArchiveUnavailable: it is one to keep, and cannot be kept.
        """
        options, message = self.options, envelope.message
        if self.archive is None or message.ephemeral:
            return False
        now_ns = options.now_ns()
        tolerance_s, retention_s = options.store_timestamp_tolerance_s, options.store_retention_s
        if tolerance_s is not None and abs(message.timestamp - now_ns) > tolerance_s * NS_PER_S:
            return False
        is_new = self.archive.insert(envelope.hash, envelope.pubsub_topic, message)
        before_ns = None if retention_s is None else now_ns - int(retention_s * NS_PER_S)
        self.archive.trim(before_ns=before_ns)
        return is_new

    def _deliver(self, envelope: Envelope) -> None:
        self.metrics.message(len(envelope.message.payload))
        if self.relay.takes(envelope.pubsub_topic):
            self.relay.deliver(envelope)
            self.filter.deliver(envelope)

    # -- other nodes ------------------------------------------------------------------------------

    def join(self, other: EmbeddedNode) -> None:
        """Join this node with another node of the process. Messages flow in both directions, and
        each node can serve the other node.

        Raises:
            ValueError: the node itself, or one of another cluster.
        """
        if other is self or other.options.cluster_id != self.options.cluster_id:
            raise ValueError("only another node of the same cluster can be joined")
        self.mesh.links[other.peer_id] = LocalLink(self, other)
        other.mesh.links[self.peer_id] = LocalLink(other, self)

    def leave(self, other: EmbeddedNode) -> None:
        """Separate this node from a node that it has joined."""
        self.mesh.links.pop(other.peer_id, None)
        other.mesh.links.pop(self.peer_id, None)

    async def dial(self, address: str, *, stay: bool = True) -> None:
        """Connect to a libp2p peer now.

        Args:
            address: its multiaddress.
            stay: dial it again whenever the connection ends.

        Raises:
            WrongCluster: a peer of another cluster.
            DialFailed: no peer answers there, or the extra `[libp2p]` is missing.
        """
        if self._tasks is None:
            raise RuntimeError("a node can dial only inside its `async with` block")
        if self.network is None:
            try:
                network = self._make_network()
            except ImportError as error:
                raise DialFailed(f"cannot join {address}: {error}") from error
            await self._tasks.start(network.run)
        assert self.network is not None
        await self.network.connect(address, stay=stay)

    def announce_topics(self) -> None:
        """Tell peers which pubsub topics the node follows, if the topics have changed."""
        followed = frozenset(self.relay.pubsub_topics)
        self.metrics.followed_topics += len(followed - self._announced)
        self._announced = followed
        if self.network is not None and self.network.gossip is not None:
            self.network.gossip.follow(followed)

    async def peers_told(self, within_s: float) -> None:
        """Wait until the peers were sent new topics and messages, at most `within_s`."""
        if self.network is not None:
            await self.network.peers_told(within_s)

    def relay_peers(self, pubsub_topic: str | None = None) -> list[PeerInfo]:
        """Return the connected relay peers. If a topic is given, return only the peers that follow
        the topic."""
        return [info for _, info in self._relay_links(pubsub_topic)]

    def mesh_peers(self, pubsub_topic: str) -> list[PeerInfo]:
        """Return the relay peers in the mesh of a pubsub topic. Nodes of this process are always
        included."""
        gossip = None if self.network is None else self.network.gossip
        in_mesh = set() if gossip is None else set(map(str, gossip.meshes.mesh(pubsub_topic)))
        links = self._relay_links(pubsub_topic)
        return [info for link, info in links if link.key in in_mesh or isinstance(link, LocalLink)]

    def _relay_links(self, pubsub_topic: str | None) -> Iterator[tuple[MeshLink, PeerInfo]]:
        for link in self.mesh.links.values():
            if link.connected and (info := link.info) is not None and RELAY in info.protocols:
                if pubsub_topic is None or link.follows(pubsub_topic):
                    yield link, info

    def start_soon(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a task until the node ends. After the end of the node, the call does nothing."""
        if self._tasks is not None:
            self._tasks.start_soon(run)

    # -- clients ----------------------------------------------------------------------------------

    def _forget_client(self, client: Client) -> None:
        self.relay.drop(client)
        self.announce_topics()
        self.filter.drop(client)
        self.service_nodes.drop(client)
        for link in self.mesh.links.values():
            if isinstance(link, LocalLink):
                link.other.filter.drop(client)

    def _shard_or_none(self, content_topic: str) -> str | None:
        if self.options.static_sharding:
            return None
        try:
            return self.shard_for(content_topic)
        except NoShard:
            return None


class LocalLink:
    """Link between two nodes of one process."""

    connected = True

    def __init__(self, owner: EmbeddedNode, other: EmbeddedNode) -> None:
        self.other = other
        self.key = other.peer_id
        self._owner = owner

    @property
    def info(self) -> PeerInfo:
        """Properties of the other node."""
        return self.other.info

    @property
    def services(self) -> Services:
        """Services of the other node for light clients."""
        return self.other.services

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if the other node follows a pubsub topic."""
        return self.other.options.relay and self.other.relay.follows(pubsub_topic)

    def send(self, envelope: Envelope) -> None:
        """Pass a message to the other node now."""
        self.other.receive(envelope, self._owner.peer_id)


def _named_peer(text: str) -> str:
    """Raises `BadAddress`."""
    peer_id = check_address(text)
    if peer_id is None:
        raise BadAddress(f"a service node must be named with its peer id (got {text!r})")
    return peer_id


def _refuse_rln(options: NodeOptions, relay_peers: Sequence[str]) -> None:
    if relay_peers and options.has_rln:
        raise ValueError(
            f"cluster {options.cluster_id} has RLN: relay needs a proof for each message, which "
            "this node cannot make. If yours is a private network, say so with `rln=False`"
            " (--no-rln), or give it another `cluster_id`"
        )


def _version() -> str:
    try:
        return metadata.version("reliable-channel")
    except metadata.PackageNotFoundError:  # run from a checkout
        return "0"
