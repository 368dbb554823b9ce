"""`EmbeddedNode`: a Waku node in the process, with nwaku's REST API as an ASGI app."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import metadata
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
import httpx
from anyio.abc import TaskGroup

from waku._api.base import EMBEDDED_AGENT
from waku.models import WakuMessage
from waku.node.app import NodeApp
from waku.node.clients import Client, Clients
from waku.node.envelope import MAX_META_BYTES, Envelope, encoded_size
from waku.node.errors import PublishRefused, StoreUnavailable
from waku.node.filter import FilterTable
from waku.node.http import Route
from waku.node.identity import NodeAddress, new_peer_id
from waku.node.local_services import LocalServices
from waku.node.mesh import MAX_TOPICS, Mesh, PeerInfo
from waku.node.messaging import Messaging
from waku.node.metrics import Metrics
from waku.node.options import NodeOptions
from waku.node.protocols import RELAY, protocols_of
from waku.node.relay_behaviours import RELAYS
from waku.node.remote import AcceptedPeer, DialFailed, DialledPeer, RemotePeer
from waku.node.service_nodes import ServiceNodes
from waku.node.services import ServiceKind, Services
from waku.node.sharding import NoShard, Sharding
from waku.node.store import Archive, ArchiveUnavailable
from waku.node.store_sync import StoreSync, SyncFailed

if TYPE_CHECKING:
    from waku.node.libp2p import Listen, Listener
    from waku.node.relay_meshes import RelayMeshes

__all__ = ["EmbeddedNode"]

NS_PER_S: Final = 1_000_000_000
MAX_ACCEPTED_PEERS: Final = 256


class EmbeddedNode:
    """A Waku node that is not part of a network.

    Use it in `async with`, on asyncio or trio. `node.app` is its REST API:

        async with EmbeddedNode() as node:
            transport = httpx.ASGITransport(app=node.app)
            async with WakuClient("http://node", transport=transport) as client:
                ...

    Messages flow between nodes that are joined, in the process (`join`) or over HTTP (`dial`, or
    `join=` here). A node belongs to one event loop.

    Args:
        options: see `NodeOptions`.
        join: addresses of nodes to join as soon as they answer, and again whenever they come back.
        service_nodes: the only node to ask for "filter", "lightpush" or "store", by its address; it
            is joined, too. Other services are asked of any joined node that offers them.
        listen: addresses at which to serve libp2p peers, such as `/ip4/0.0.0.0/tcp/8000/ws`, or
            `Listen` with all options; needs the extra `[libp2p]`.
        relay_peers: go-waku, nwaku or other relay peers whose meshes to join: multiaddresses,
            `enr:…` and `enrtree://…`; needs the extra `[libp2p]`, and a cluster without RLN.
        transport: httpx transport to reach other nodes by, for tests or a proxy.

    Raises:
        ArchiveError: the store cannot be opened.
        CannotListen: the identity or certificate for libp2p cannot be used; entering the node
            raises it where an address is taken.
        BadAddress: an address of `join` or `service_nodes` cannot be read.
        ValueError: `service_nodes` names a service that there is not, an address of `listen` cannot
            be listened at, `listen` and a `peer_id` of the options come together, or `relay_peers`
            are on a cluster with RLN, or none.
    """

    def __init__(
        self,
        options: NodeOptions | None = None,
        *,
        join: Iterable[str] = (),
        service_nodes: Mapping[ServiceKind, str] | None = None,
        listen: Listen | Iterable[str] | None = None,
        relay_peers: Sequence[str] = (),
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.options: Final = options or NodeOptions()
        options = self.options
        self.listener: Final = None if listen is None else _listener(self, listen)
        """Its face to libp2p peers; None where it has none."""
        self.metrics: Final = Metrics()
        """What it has counted, for `GET /metrics`."""
        self.peer_id: Final = self._peer_id()
        relay = RELAYS[options.behave_as]
        self.listen_addresses = options.listen_addresses
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
        self._meshes = _meshes(options, relay_peers, self.receive) if relay_peers else None
        self._transport = transport
        named = {kind: NodeAddress.parse(text) for kind, text in (service_nodes or {}).items()}
        self._to_dial = [*map(NodeAddress.parse, join), *named.values()]
        self.services: Final[LocalServices] = LocalServices(self)
        """What this node does for light clients: its own, and those of joined nodes."""
        self.service_nodes: Final[ServiceNodes] = ServiceNodes(self, named)
        """The nodes that serve its own light clients."""
        self._tasks: TaskGroup | None = None
        self.archive: Final = (
            Archive(
                options.store_path,
                capacity=options.store_capacity,
                capacity_bytes=options.store_limit_bytes,
            )
            if options.store
            else None
        )
        self.store_sync: Final = (
            StoreSync(self, self.archive)
            if options.store_sync and self.archive is not None
            else None
        )
        """What keeps its Store the same as those of joined nodes; None where that is off."""
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
        """The node's REST API."""
        return NodeApp(self)

    @property
    def routes(self) -> tuple[Route, ...]:
        """The operations of its REST API."""
        return self.app.router.routes

    @property
    def agent(self) -> str:
        """What the node calls itself."""
        ours = f"{EMBEDDED_AGENT}{_version()}"
        return f"v0.37.1-beta as {ours}" if self.options.behave_as == "nwaku" else ours

    @property
    def info(self) -> PeerInfo:
        """What the node reports of itself to its peers."""
        options = self.options
        shards: Iterable[int] = ()
        topics = self.relay.pubsub_topics
        if options.relay:
            shards = range(options.num_shards) if options.shards is None else options.shards
        return PeerInfo(
            self.peer_id,
            next(iter(self.listen_addresses), ""),
            protocols_of(options),
            tuple(shards),
            self.agent,
            frozenset(topics) if len(topics) <= MAX_TOPICS else None,
        )

    @property
    def libp2p_addresses(self) -> tuple[str, ...]:
        """Where libp2p peers reach the node: multiaddresses with its peer id."""
        return () if self.listener is None else tuple(map(str, self.listener.addresses))

    @property
    def record(self) -> str:
        """The node's record (`enr:…`): the listener's, or that of the options."""
        return self.options.record if self.listener is None else self.listener.record

    def _peer_id(self) -> str:
        given = self.options.peer_id
        if self.listener is None:
            return given or new_peer_id()
        if given is not None:
            raise ValueError("`peer_id` is that of the identity where the node has `listen`")
        return str(self.listener.identity.peer_id)

    async def __aenter__(self) -> Self:
        if self.listener is not None:
            try:
                await self.listener.__aenter__()
            except BaseException:
                if self.archive is not None:
                    self.archive.close()
                raise
        self._tasks = await anyio.create_task_group().__aenter__()
        for address in self._to_dial:
            self.keep_joined(address)
        if self.store_sync is not None:
            self.start_soon(self.store_sync.run)
        if self._meshes is not None:
            self.mesh.links[self._meshes.key] = self._meshes
            self.start_soon(self._meshes.run)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
        for link in list(self.mesh.links.values()):
            if isinstance(link, LocalLink):
                self.leave(link.other)
        tasks, self._tasks = self._tasks, None
        try:
            if tasks is not None:
                tasks.cancel_scope.cancel()
                # Without the block's exception, the group does not wrap it into an exception group.
                await tasks.__aexit__(None, None, None)
            if self.listener is not None:
                await self.listener.__aexit__(None, None, None)
        finally:
            if self.archive is not None:
                self.archive.close()

    def release(self) -> None:
        """Answer the requests of other nodes that wait until there is something to report."""
        for link in self.mesh.links.values():
            if isinstance(link, AcceptedPeer):
                link.outbox.wake()

    # -- messages ---------------------------------------------------------------------------------

    def publish(self, pubsub_topic: str, message: WakuMessage, *, unfollowed: bool = False) -> int:
        """Publish a message; return how many peers that follow the topic it went to.

        An absent timestamp becomes the node's time.

        Args:
            pubsub_topic: where it travels; for a content topic see `shard_for`.
            message: the message.
            unfollowed: publish on a topic that this node does not follow, too.

        Raises:
            PublishRefused: too large, or a topic that is not followed; with `unfollowed` and
                without `self_service` one that no other node follows either.
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
        if self._meshes is not None:
            self._meshes.admit(pubsub_topic)
        envelope = Envelope.of(pubsub_topic, message)
        if self.relay.takes(pubsub_topic):
            try:
                self._keep(envelope)
            except ArchiveUnavailable as error:
                raise StoreUnavailable(f"{error}; free some space and send it again") from error
        return self.mesh.publish(envelope)

    def check_size(self, message: WakuMessage) -> None:
        """Do nothing for a message that can be published.

        Raises:
            PublishRefused: it is too large.
        """
        limit = self.options.max_message_bytes
        if encoded_size(message) > limit:
            raise PublishRefused(f"Message size exceeded maximum of {limit} bytes")

    def receive(self, envelope: Envelope, source: str) -> None:
        """Take a message from a link; a repeat is ignored, and so is a message that breaks the
        limits.

        Where it cannot be stored, clients and other nodes get it all the same.
        """
        if not self.options.relay or not self.is_publishable(envelope.message):
            return
        takes = self.relay.takes(envelope.pubsub_topic)
        if self.mesh.receive(envelope, source) and takes:
            with suppress(ArchiveUnavailable):  # the archive has logged it
                self._keep(envelope)

    def shard_for(self, content_topic: str) -> str:
        """Return the pubsub topic on which a content topic travels in this cluster.

        Raises:
            NoShard: the content topic has another shape.
        """
        return self._sharding.pubsub_topic_of(content_topic)

    def archive_only(self, envelope: Envelope, *, any_time: bool = False) -> None:
        """Keep a message of another node's store, if it is one to keep, without delivering it.

        Args:
            envelope: the message.
            any_time: keep it however far its timestamp is from this node's clock.
        """
        if self.is_publishable(envelope.message):
            with suppress(ArchiveUnavailable):
                self._keep(envelope, any_time=any_time)

    def is_publishable(self, message: WakuMessage) -> bool:
        """Whether any node may publish a message: by its size, and that of its `meta`."""
        size_bytes = encoded_size(message)
        return len(message.meta) <= MAX_META_BYTES and size_bytes <= self.options.max_message_bytes

    def _keep(self, envelope: Envelope, *, any_time: bool = False) -> None:
        """Put a message into the store, if it is one to keep.

        Raises:
            ArchiveUnavailable: it is, and cannot be kept.
        """
        options, message = self.options, envelope.message
        if self.archive is None or message.ephemeral:
            return
        now_ns = options.now_ns()
        tolerance_s, retention_s = options.store_timestamp_tolerance_s, options.store_retention_s
        if tolerance_s is not None and not any_time:
            if abs(message.timestamp - now_ns) > tolerance_s * NS_PER_S:
                return
        self.archive.insert(envelope.hash, envelope.pubsub_topic, message)
        before_ns = None if retention_s is None else now_ns - int(retention_s * NS_PER_S)
        self.archive.trim(before_ns=before_ns)

    def _deliver(self, envelope: Envelope) -> None:
        self.metrics.message(len(envelope.message.payload))
        if self.relay.takes(envelope.pubsub_topic):
            self.relay.deliver(envelope)
            self.filter.deliver(envelope)

    # -- other nodes ------------------------------------------------------------------------------

    def join(self, other: EmbeddedNode) -> None:
        """Join a node of this process: messages flow both ways, and each can serve the other.

        Raises:
            ValueError: the node itself, or one of another cluster.
        """
        if other is self or other.options.cluster_id != self.options.cluster_id:
            raise ValueError("only another node of the same cluster can be joined")
        self.mesh.links[other.peer_id] = LocalLink(self, other)
        other.mesh.links[self.peer_id] = LocalLink(other, self)

    def leave(self, other: EmbeddedNode) -> None:
        """Undo `join`."""
        self.mesh.links.pop(other.peer_id, None)
        other.mesh.links.pop(self.peer_id, None)

    def keep_joined(self, address: NodeAddress | str) -> None:
        """Join a node over HTTP as soon as it answers, and again whenever it comes back.

        Raises:
            BadAddress: the address cannot be read.
        """
        if (peer := self._new_peer(address)) is not None:
            self._start(peer)

    async def dial(self, address: NodeAddress | str) -> None:
        """Join a node over HTTP now, and again whenever it comes back.

        Raises:
            BadAddress: the address cannot be read.
            DialFailed: no node of our cluster answers there now.
        """
        if (peer := self._new_peer(address)) is None:
            known = self.mesh.links.get(_parsed(address).url)
            if isinstance(known, DialledPeer) and not known.connected:
                await known.hello()  # it is tried again and again; this is whether it answers now
            return
        try:
            await peer.hello()
        except DialFailed:
            await peer.aclose()
            raise
        self._start(peer)

    def accept(self, info: PeerInfo) -> bool:
        """Take up a node that dialled us; return False when there are too many.

        One that comes back soon finds what waits for it.
        """
        accepted = [link for link in self.mesh.links.values() if isinstance(link, AcceptedPeer)]
        for link in accepted:
            if not link.connected:
                del self.mesh.links[link.key]
                self.filter.drop(link.service_link)
            elif link.info.peer_id == info.peer_id:
                link.info = info
                link.heard()
                self.service_nodes.link_up(link)
                return True
        if sum(link.connected for link in accepted) >= MAX_ACCEPTED_PEERS:
            return False
        peer = AcceptedPeer(self, info)
        self.mesh.links[peer.key] = peer
        self.service_nodes.link_up(peer)
        return True

    def announce_topics(self) -> None:
        """Let other nodes know which pubsub topics are followed now, where that has changed."""
        followed = frozenset(self.relay.pubsub_topics)
        for topic in followed ^ self._announced:
            for link in self.mesh.links.values():
                if isinstance(link, RemotePeer):
                    link.service_link.announce(topic, follows=topic in followed)
        self.metrics.followed_topics += len(followed - self._announced)
        self._announced = followed

    def hello_json(self) -> dict[str, object]:
        """Return how the node introduces itself."""
        return {**self.info.to_json(), "clusterId": self.options.cluster_id}

    def relay_peers(self) -> list[PeerInfo]:
        """Return the connected nodes that relay."""
        return [peer for peer in self.mesh.peers().values() if RELAY in peer.protocols]

    def _new_peer(self, address: NodeAddress | str) -> DialledPeer | None:
        """A node to dial; None where it is joined already."""
        if self._tasks is None:
            raise RuntimeError("a node can dial inside its `async with` block only")
        address = _parsed(address)
        if address.url in self.mesh.links:
            return None
        return DialledPeer(self, address, self._transport)

    def _start(self, peer: DialledPeer) -> None:
        self.mesh.links[peer.key] = peer
        self.start_soon(peer.run)

    def start_soon(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something until the node ends; not at all where it has ended."""
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
    """A link between two nodes of one process."""

    connected = True

    def __init__(self, owner: EmbeddedNode, other: EmbeddedNode) -> None:
        self.other = other
        self.key = other.peer_id
        self._owner = owner

    @property
    def info(self) -> PeerInfo:
        """The node at the other end."""
        return self.other.info

    @property
    def services(self) -> Services:
        """What the other node does for light clients."""
        return self.other.services

    def follows(self, pubsub_topic: str) -> bool:
        """Whether the other node follows a topic."""
        return self.other.options.relay and self.other.relay.follows(pubsub_topic)

    async def ask_sync(self, fields: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the answer to a request of store synchronisation, unread.

        Raises:
            SyncFailed: the other node has none, or cannot answer.
        """
        if self.other.store_sync is None:
            raise SyncFailed(f"{self.key} has no store synchronisation")
        try:
            return self.other.store_sync.answer(fields)
        except (ArchiveUnavailable, ValueError) as error:
            raise SyncFailed(str(error)) from error

    def send(self, envelope: Envelope) -> None:
        """Hand over a message now."""
        self.other.receive(envelope, self._owner.peer_id)


def _meshes(
    options: NodeOptions, addresses: Sequence[str], receive: Callable[[Envelope, str], None]
) -> RelayMeshes:
    try:
        from waku.node.relay_meshes import RelayMeshes
    except ModuleNotFoundError as error:
        raise ImportError(
            "relay peers need more packages: pip install 'reliable-channel[libp2p]'"
        ) from error
    return RelayMeshes(options, addresses, receive)


def _listener(node: EmbeddedNode, listen: Listen | Iterable[str]) -> Listener:
    from waku.node.libp2p import Listen, Listener  # an extra

    return Listener(node, listen if isinstance(listen, Listen) else Listen(tuple(listen)))


def _parsed(address: NodeAddress | str) -> NodeAddress:
    return NodeAddress.parse(address) if isinstance(address, str) else address


def _version() -> str:
    try:
        return metadata.version("reliable-channel")
    except metadata.PackageNotFoundError:  # run from a checkout
        return "0"
