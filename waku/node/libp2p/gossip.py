"""Relay of the node by gossipsub, with messages to publish, and received messages."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable
from random import Random
from typing import Final

import anyio
from anyio.abc import TaskGroup

from waku.libp2p import InvalidInput, PeerId
from waku.libp2p.driver import Carrier, MessageSink
from waku.libp2p.gossipsub import GossipOptions
from waku.node.envelope import Envelope, carried_size
from waku.node.errors import RelayFull
from waku.node.host import ServiceHost
from waku.node.libp2p.reports import Reports
from waku.node.mesh import GOSSIP
from waku.p2p.codec import decode_message, encode_message
from waku.p2p.meshes import Meshes

__all__ = ["RelayGossip"]

PUBLISH_PER_SECOND: Final = 400
"""Maximum number of messages in a burst, because go-libp2p drops larger bursts."""
CONGESTED_S: Final = 30.0
"""Time (s) for which a message waits for a ready peer of its topic. After this time the message is
dropped."""
RPC_BYTES: Final = 1 << 20
"""Maximum size of an RPC in the specification (bytes), raised to two messages if that is more."""

_log = logging.getLogger("waku.node.relay")


class RelayGossip:
    """Relay that publishes the node's messages to relay peers, and passes their messages to the
    node.

    Args:
        node: the node around it.
        allowed: the only peers that may take part; all if empty.
        has_peers: True if the node keeps relay peers: messages wait for the first one.
        random: chooses mesh peers.
        reports: gets a line for each peer that may not take part.
    """

    def __init__(
        self,
        node: ServiceHost,
        *,
        allowed: Collection[PeerId],
        has_peers: bool,
        random: Random,
        reports: Reports,
    ) -> None:
        options = node.options
        limit = options.max_message_bytes
        gossip_options = GossipOptions(message_bytes=limit, rpc_bytes=max(RPC_BYTES, 2 * limit))
        self.meshes: Final = Meshes(
            gossip_options,
            publish_per_second=PUBLISH_PER_SECOND,
            random=random,
            is_valid=self._is_valid,
            on_arrived=self._arrived,
            on_full=_behind,
        )
        self.sink: Final = MessageSink(gossip_options.rpc_bytes, self._take, self.meshes.refuse)
        """What serves the streams that relay peers open."""
        self.has_peers = has_peers
        self._node = node
        self._allowed = frozenset(allowed)
        self._reports = reports
        self._outbox: deque[Envelope] = deque()
        self._outbox_bytes = 0
        self._filled = anyio.Event()
        self._is_dropping = False

    async def run(self, tasks: TaskGroup) -> None:
        """Join the gossipsub meshes of the node's topics. Return when peers can be connected."""
        self.follow(self._node.relay.pubsub_topics)
        await tasks.start(self.meshes.run)
        tasks.start_soon(self._publish_all)

    def follow(self, pubsub_topics: Iterable[str]) -> None:
        """Join the meshes of the given topics, and leave all other meshes."""
        wanted = frozenset(pubsub_topics)
        for topic in wanted - self.meshes.topics:
            self.meshes.join(topic)
        for topic in self.meshes.topics - wanted:
            self.meshes.leave(topic)

    def meet(self, link: Carrier) -> bool:
        """Add a relay peer. Return False if the peer may not take part."""
        if not self._admits(link.peer_id):
            return False
        self.meshes.meet(link)
        return True

    def admit(self) -> None:
        """Raise an error unless there is room for a message of this node's clients.

        Raises:
            RelayFull: as many wait for relay peers as the node's options allow.
        """
        if self._is_full:
            raise RelayFull(
                f"{len(self._outbox)} messages wait for relay peers, which are away or slow; "
                "send it again later"
            )

    def send(self, envelope: Envelope) -> None:
        """Publish a message now, or when a peer is connected. If too many messages wait for a peer,
        the oldest are dropped.

        A message that no peer takes is kept for peers that subscribe within seconds. While the node
        has no relay peers, the message waits for a peer.
        """
        topic, meshes = envelope.pubsub_topic, self.meshes
        data = encode_message(envelope.message)
        if not meshes.subscribers(topic) and (meshes.has_met_some or not self.has_peers):
            meshes.keep(topic, data)
            return
        if not self._outbox and meshes.offer(topic, data):
            return
        if self._is_full and not self._is_dropping:
            _log.warning("relay is slow: the oldest messages are dropped")
        self._is_dropping = self._is_full
        if self._is_full:
            self._pop()
        self._outbox.append(envelope)
        self._outbox_bytes += _size(envelope)
        self._filled.set()

    @property
    def _is_full(self) -> bool:
        options = self._node.options
        too_many = len(self._outbox) >= options.peer_queue_capacity
        return too_many or self._outbox_bytes >= options.peer_queue_capacity_bytes

    def _pop(self) -> Envelope:
        envelope = self._outbox.popleft()
        self._outbox_bytes -= _size(envelope)
        return envelope

    async def _publish_all(self) -> None:
        while True:
            while not self._outbox:
                self._filled = anyio.Event()
                await self._filled.wait()
            await self.meshes.met_some()
            envelope = self._pop()
            data = encode_message(envelope.message)
            if not self.meshes.subscribers(envelope.pubsub_topic):
                self.meshes.keep(envelope.pubsub_topic, data)
                continue
            with anyio.move_on_after(CONGESTED_S) as patience:
                await self.meshes.publish(envelope.pubsub_topic, data)
            if patience.cancelled_caught:
                _log.warning("relay is slow: a message on %s is dropped", envelope.pubsub_topic)

    def _admits(self, peer_id: PeerId) -> bool:
        return not self._allowed or peer_id in self._allowed

    def _take(self, link: Carrier, data: bytes) -> None:
        """Take an RPC.

        Raises:
            InvalidInput: it cannot be read, or the peer may not take part; its stream is reset.
        """
        if not self._admits(link.peer_id):
            reason = "may not relay here (`relay_allow`)"
            self._reports.note("relay", str(link.peer_id), reason)
            raise InvalidInput(reason)
        self.meshes.take(link, data)

    def _is_valid(self, topic: str, data: bytes) -> bool:
        try:
            message = decode_message(data)
        except (InvalidInput, ValueError):
            return False
        return bool(message.content_topic) and self._node.is_publishable(message)

    def _arrived(self, topic: str, data: bytes) -> None:
        self._node.receive(Envelope.of(topic, decode_message(data)), GOSSIP)


def _size(envelope: Envelope) -> int:
    return carried_size(envelope.pubsub_topic, envelope.message)


def _behind(peer_id: PeerId) -> None:
    _log.warning("relay peer %s is slow: messages are dropped for it", peer_id)
