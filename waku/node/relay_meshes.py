"""The meshes of libp2p's relay as one link of a node: it joins go-waku and nwaku nodes by it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import anyio

from waku.errors import LocalError, WakuError
from waku.libp2p.gossipsub import GossipOptions
from waku.models import WakuMessage
from waku.node.envelope import Envelope
from waku.node.errors import RelayFull
from waku.node.mesh import PeerInfo
from waku.node.options import NodeOptions
from waku.node.outbox import Outbox
from waku.node.protocols import RELAY
from waku.node.services import Services
from waku.p2p import ClientEvent, PeerBehind, PeerConnected, PeerLost, RelayLeaf
from waku.topics import PubsubTopic

__all__ = ["RelayMeshes"]

_log = logging.getLogger("waku.node.relay")


class RelayMeshes:
    """A relay leaf that passes the node's messages on, and hands it those of others.

    Args:
        options: those of the node, whose shards are joined.
        addresses: peers to keep connected to, see `RelayLeaf`.
        receive: takes what comes, with the link's key.

    Raises:
        ValueError: a cluster with RLN, or an address that is none.
    """

    key = "libp2p relay"

    def __init__(
        self,
        options: NodeOptions,
        addresses: Sequence[str],
        receive: Callable[[Envelope, str], None],
    ) -> None:
        self._receive = receive
        self._topics = options.pubsub_topics
        limit = options.max_message_bytes
        self._leaf = RelayLeaf(
            addresses,
            cluster_id=options.cluster_id,
            shards=[PubsubTopic.parse(topic).shard for topic in self._topics],
            buffer_messages=options.peer_queue_capacity,
            options=GossipOptions(message_bytes=limit, rpc_bytes=max(1 << 20, 2 * limit)),
            on_event=_report,
        )
        self._outbox = Outbox.of(options)
        self._is_dropping = False

    @property
    def info(self) -> PeerInfo:
        """What the meshes are to the node: a peer that relays, and serves nothing."""
        agent, topics = "meshes of libp2p's relay", frozenset(self._topics)
        return PeerInfo(str(self._leaf.peer_id), "", (RELAY,), (), agent, topics)

    @property
    def connected(self) -> bool:
        """Whether some peer of the node's shards is there."""
        return any(map(self._leaf.peers, self._topics))

    @property
    def services(self) -> Services:
        """None: `info` offers no protocol of a service, so that nothing is asked."""
        raise AssertionError("the meshes of relay serve nothing")

    def follows(self, pubsub_topic: str) -> bool:
        """Whether some peer takes messages of a topic."""
        return pubsub_topic in self._topics and self._leaf.peers(pubsub_topic) > 0

    def admit(self, pubsub_topic: str) -> None:
        """Do nothing while there is room for a message of this node's clients.

        Raises:
            RelayFull: as many wait for relay peers as the node's options allow.
        """
        if self._outbox.is_full and pubsub_topic in self._topics:
            raise RelayFull(
                f"{len(self._outbox)} messages wait for relay peers, which are away or slow; "
                "send it again later"
            )

    def send(self, envelope: Envelope) -> None:
        """Publish a message, now or when a peer is there."""
        if envelope.pubsub_topic in self._topics:
            if self._outbox.is_full and not self._is_dropping:
                _log.warning("relay is slow: the oldest messages of joined nodes are dropped")
            self._is_dropping = self._outbox.is_full
            self._outbox.put(envelope)

    async def run(self) -> None:
        """Take part in the meshes until cancelled."""
        async with self._leaf, anyio.create_task_group() as tasks:
            for topic in self._topics:
                tasks.start_soon(self._listen, topic)
            while True:
                await self._outbox.wait()
                batch, last = self._outbox.batch()
                for item in batch:
                    if isinstance(item, Envelope):
                        await self._publish(item.message, item.pubsub_topic)
                self._outbox.acknowledge(last)

    async def _listen(self, topic: str) -> None:
        async with self._leaf.subscribe(topic) as messages:
            async for pushed in messages:
                envelope = Envelope(topic, pushed.message, pushed.message_hash)
                self._receive(envelope, self.key)

    async def _publish(self, message: WakuMessage, topic: str) -> None:
        """Publish, and again until some peer is there; what is refused is logged and dropped."""
        while True:
            try:
                await self._leaf.publish(message, topic)
                return
            except LocalError as error:
                _log.warning("a message is not relayed: %s", error)
                return
            except WakuError as error:
                _log.warning("relay waits: %s", error)


def _report(event: ClientEvent) -> None:
    match event:
        case PeerConnected(peer_id, agent):
            _log.info("relay peer %s is connected (%s)", peer_id, agent)
        case PeerLost(reason, peer_id):
            _log.warning("relay peer %s is lost: %s", peer_id or "without a name", reason)
        case PeerBehind(peer_id):
            _log.warning("relay peer %s is slow: messages are dropped for it", peer_id)
        case _:
            _log.warning("%s", event)
