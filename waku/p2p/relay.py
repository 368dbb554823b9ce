"""Relay leaf, a participant of Waku's relay that needs no node.

    async with RelayLeaf("/ip4/…/tcp/60000/p2p/16Uiu2…", cluster_id=42, shards=[0]) as leaf:
        async with leaf.subscribe("/waku/2/rs/42/0") as messages:
            await leaf.publish(message, "/waku/2/rs/42/0")

The leaf joins the meshes of its shards, passes messages on, and returns each message once. A leaf
works only on clusters without RLN, because it can neither make nor check proofs.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random
from types import TracebackType
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from waku.discovery import Network, Resolver, SystemResolver, find_network
from waku.errors import EndpointMissing, MessageTooLarge, NoPeers, WrongNetwork
from waku.hashing import message_hash
from waku.libp2p import InvalidInput, KeyType, Multiaddr, PeerId, PrivateKey
from waku.libp2p.driver import Host, MessageSink, Stream
from waku.libp2p.gossipsub import RELAY, GossipOptions
from waku.models import WakuMessage
from waku.topics import PubsubTopic

from .codec import Metadata, decode_message, encode_message, encode_metadata
from .events import ClientEvent, MessageDropped, PeerBehind
from .kept_peers import KeptPeers
from .meshes import Meshes
from .protocols import MAX_ANSWER_BYTES, MAX_MESSAGE_BYTES, METADATA
from .service_peer import ServicePeer
from .subscriptions import Pushed

__all__ = ["RelayLeaf"]

RLN_CLUSTER: Final = 1
"""Cluster id of The Waku Network, where each message needs a proof."""
PEERS_S: Final = 30.0
"""Maximum time (s) for which `publish` waits for a peer of the shard."""
RECENT: Final = 20_000
"""Number of messages that are also remembered by Waku hash, because nwaku encodes them again
(T15)."""
RPC_OVERHEAD_BYTES: Final = 64 * 1024
"""Maximum size of an RPC besides the message (bytes)."""


class RelayLeaf:
    """Participant in the relay meshes of some shards, used in `async with`.

    The leaf emits `PeerConnected`, `PeerLost`, `PeerBehind`, `MessageDropped` and `SearchFailed`.
    The reason of a `PeerLost` event also names broken rules of gossipsub.
    """

    def __init__(
        self,
        addresses: str | Sequence[str] | None = None,
        *,
        cluster_id: int | None = None,
        shards: Iterable[int] = (),
        network: str | Network | None = None,
        listen: Sequence[str] = (),
        identity: PrivateKey | None = None,
        resolver: Resolver | None = None,
        publish_per_second: int = 400,
        buffer_messages: int = 1_024,
        options: GossipOptions | None = None,
        ssl_context: ssl.SSLContext | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        on_event: Callable[[ClientEvent], None] = lambda _: None,
    ) -> None:
        """Args:
            addresses: peers to keep connected to, as multiaddresses and `enr:…`, and lists of peers
                (`enrtree://…`), of which 6 are chosen. None for the network's own.
            cluster_id: the network's number. None for the network's.
            shards: the shards whose meshes to join. None for all of the network.
            network: name of a preset or path of a TOML file (docs/light-client.md).
            listen: where to listen, such as `/ip4/0.0.0.0/tcp/60000`.
            identity: own key. None for a new one.
            resolver: asks the DNS for `enrtree://`. None for the system's.
            publish_per_second: messages that are published at most: nodes drop what comes in
                larger bursts.
            buffer_messages: messages that a subscription keeps for its reader.
            options: parameters and limits of gossipsub. None for the defaults.
            ssl_context: trusted certificates for `wss`. None for the system's.
            random_bytes: source of keys and choices.
            on_event: called with each `ClientEvent`.

        Raises:
            InvalidInput: an address that is none, or cannot be dialled.
            ValueError: a network with RLN, no cluster, no shard, or a number out of range.
            WrongNetwork: an `enr:…` of another network.
        """
        if isinstance(network, str):
            network = find_network(network)
        if cluster_id is None:
            if network is None:
                raise ValueError("`cluster_id` or `network` must say which network this is")
            cluster_id = network.cluster_id
        _refuse_rln(cluster_id, network)
        chosen = frozenset(shards) or (network.all_shards if network else frozenset())
        if not chosen:
            raise ValueError("`shards` must name at least one shard")
        if publish_per_second < 1 or buffer_messages < 1:
            given = publish_per_second, buffer_messages
            raise ValueError(
                f"`publish_per_second` and `buffer_messages` must be at least 1 (got {given})"
            )
        self._own = Metadata(cluster_id, chosen)
        if addresses is None:
            addresses = () if network is None else network.entry
        self._listen = [Multiaddr.parse(text) for text in listen]
        self._on_event = on_event
        self._buffer_messages = buffer_messages
        if options is None:
            limit = MAX_MESSAGE_BYTES if network is None else network.max_message_bytes
            rpc_bytes = max(GossipOptions().rpc_bytes, limit + RPC_OVERHEAD_BYTES)
            options = GossipOptions(message_bytes=limit, rpc_bytes=rpc_bytes)
        random = Random(random_bytes(16))
        self._meshes = Meshes(
            options,
            publish_per_second=publish_per_second,
            random=random,
            is_valid=_is_message,
            on_arrived=self._arrived,
            on_full=self._behind,
        )
        self._host = Host(
            identity or PrivateKey(KeyType.SECP256K1, random_bytes(32)),
            handlers={
                RELAY: MessageSink(options.rpc_bytes, self._meshes.take, self._meshes.refuse),
                METADATA: self._answer_metadata,
            },
            random_bytes=random_bytes,
        )
        self._peers = KeptPeers(
            self._host,
            [addresses] if isinstance(addresses, str) else addresses,
            own=lambda: self._own,
            met=self._met,
            resolver=resolver or SystemResolver(),
            ssl_context=ssl_context,
            random=random,
            random_bytes=random_bytes,
            on_event=on_event,
        )
        self._readers: dict[str, list[_Reader]] = {}
        self._recent: dict[bytes, None] = {}
        self._stack = AsyncExitStack()

    @property
    def addresses(self) -> list[str]:
        """Addresses at which peers can dial this leaf, or no address if it does not listen."""
        return [str(address) for address in self._host.listen_addresses]

    @property
    def peer_id(self) -> PeerId:
        """Peer id of this leaf."""
        return self._host.identity.peer_id

    def peers(self, pubsub_topic: str) -> int:
        """Return the number of peers to which this leaf sends messages of a shard."""
        return len(self._meshes.subscribers(pubsub_topic))

    async def __aenter__(self) -> RelayLeaf:
        try:
            await self._stack.enter_async_context(self._host)
            tasks = await self._stack.enter_async_context(anyio.create_task_group())
            self._stack.callback(tasks.cancel_scope.cancel)
            for shard in sorted(self._own.shards):
                assert self._own.cluster_id is not None
                self._meshes.join(str(PubsubTopic(self._own.cluster_id, shard)))
            await tasks.start(self._meshes.run)
            for address in self._listen:
                await self._host.listen(address)
            tasks.start_soon(self._peers.run)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()  # the block's exception goes on as it is

    async def publish(self, message: WakuMessage, pubsub_topic: str) -> int:
        """Publish a message, and return the number of peers that receive it.

        The method waits for a peer of the shard, for its turn (`publish_per_second`), and for slow
        peers.

        Raises:
            NoPeers: no peer of the shard is connected within half a minute.
            MessageTooLarge: the message is longer than the network's limit.
            WrongNetwork: the leaf does not have this shard.
        """
        data = encode_message(message)
        if pubsub_topic not in self._meshes.topics:
            raise WrongNetwork("relay_publish", detail=f"{pubsub_topic} is no shard of this leaf")
        if len(data) > self._meshes.options.message_bytes:
            raise MessageTooLarge("relay_publish", detail=f"a message of {len(data)} bytes")
        try:
            with anyio.fail_after(PEERS_S):
                count = await self._meshes.publish(pubsub_topic, data)
        except TimeoutError:
            raise NoPeers(
                "relay_publish",
                detail=f"no peer of {pubsub_topic} takes messages for {PEERS_S:.0f} s",
            ) from None
        self._deliver(pubsub_topic, message)
        return count

    @asynccontextmanager
    async def subscribe(
        self, pubsub_topic: str, content_topics: Iterable[str] | None = None
    ) -> AsyncIterator[MemoryObjectReceiveStream[Pushed]]:
        """Return a stream of `Pushed`, each message once, own messages included.

        Raises:
            WrongNetwork: the leaf does not follow the shard.
        """
        if pubsub_topic not in self._meshes.topics:
            raise WrongNetwork("relay_subscribe", detail=f"{pubsub_topic} is no shard of this leaf")
        inbox: MemoryObjectSendStream[Pushed]
        outbox: MemoryObjectReceiveStream[Pushed]
        inbox, outbox = anyio.create_memory_object_stream[Pushed](self._buffer_messages)
        reader = _Reader(inbox, None if content_topics is None else frozenset(content_topics))
        with inbox, outbox:
            readers = self._readers.setdefault(pubsub_topic, [])
            readers.append(reader)
            try:
                yield outbox
            finally:
                readers.remove(reader)

    # Messages

    def _arrived(self, topic: str, data: bytes) -> None:
        self._deliver(topic, decode_message(data))

    def _deliver(self, topic: str, message: WakuMessage) -> None:
        """Give a message to the readers, unless it came before, maybe in other bytes (T15)."""
        digest = message_hash(topic, message)
        if digest in self._recent:
            return
        self._recent[digest] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
        for reader in self._readers.get(topic, ()):
            if reader.content_topics is None or message.content_topic in reader.content_topics:
                try:
                    reader.inbox.send_nowait(Pushed(topic, message, digest))
                except anyio.WouldBlock:
                    self._on_event(MessageDropped(topic, message.content_topic))

    def _behind(self, peer_id: PeerId) -> None:
        self._on_event(PeerBehind(peer_id))

    def _met(self, peer: ServicePeer) -> None:
        """Be in meshes with a peer.

        Raises:
            EndpointMissing: it does not relay.
        """
        if RELAY not in peer.info.protocols:
            detail = f"{peer.link.peer_id} does not speak {RELAY}"
            raise EndpointMissing("connect", detail=detail)
        self._meshes.meet(peer.link)

    async def _answer_metadata(self, stream: Stream) -> None:
        """Say which network this leaf belongs to: nwaku asks, and hangs up otherwise (T12)."""
        with suppress(InvalidInput):
            await stream.receive_message(MAX_ANSWER_BYTES)
        await stream.send_message(encode_metadata(self._own))


class _Reader:
    """One subscription of the application."""

    def __init__(
        self, inbox: MemoryObjectSendStream[Pushed], content_topics: frozenset[str] | None
    ) -> None:
        self.inbox = inbox
        self.content_topics = content_topics


def _refuse_rln(cluster_id: int, network: Network | None) -> None:
    has_rln = cluster_id == RLN_CLUSTER if network is None else network.rln
    if has_rln:
        raise ValueError(
            f"cluster {cluster_id} has RLN: relay needs a proof for each message, which this "
            "package cannot make; use LightClient, or another `network`, whose `rln` is false"
        )


def _is_message(topic: str, data: bytes) -> bool:
    try:
        return bool(decode_message(data).content_topic)
    except (InvalidInput, ValueError):
        return False
