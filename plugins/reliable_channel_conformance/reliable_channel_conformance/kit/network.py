"""Network of a check, with a node for each peer. The kit connects the nodes and sees every message.

The kit is the only link between the nodes. A peer's message reaches the kit and, unless the peer is
cut off, the other nodes. The kit's own messages reach all nodes.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
from anyio.abc import TaskStatus

from reliable_channel.spi import CodecError, Message, WireProfile
from waku.models import WakuMessage
from waku.node import EmbeddedNode, Envelope, NodeOptions, Services, serve_node

KIT: Final = "kit"


@dataclass(frozen=True, slots=True)
class Seen:
    """Message that was published in the network."""

    at_ms: int
    sender: str
    """Name of the peer whose node published the message, or `kit`."""
    data: bytes
    message: Message | None
    """Decoded message, or None if the bytes cannot be decoded."""

    def record(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"at_ms": self.at_ms, "wire": self.sender, "bytes": len(self.data)}
        if self.message is not None:
            message = self.message
            shown |= {
                "message_id": message.message_id,
                "sender_id": message.sender_id,
                "lamport_timestamp": message.lamport_timestamp,
                "causal_history": list(message.causal_ids),
                "repair_request": [entry.message_id for entry in message.repair_request],
                "content_bytes": len(message.content or b""),
                "bloom_filter_bytes": len(message.bloom_filter or b""),
            }
        return {**shown, "hex": self.data.hex()}


class Network:
    """Nodes of a check, with the connections between all of them."""

    def __init__(self, profile: WireProfile, content_topic: str) -> None:
        self.profile = profile
        self.content_topic = content_topic
        self.wire: list[Seen] = []
        self.keep: Callable[[str, str], bool] = lambda sender, receiver: True
        """True if what one peer publishes reaches another one."""
        self.observer: Callable[[dict[str, Any]], None] = lambda record: None
        self._nodes: dict[str, EmbeddedNode] = {}

    @asynccontextmanager
    async def node(self, name: str) -> AsyncIterator[str]:
        """Start a node for a peer, and yield the node's address."""
        options = NodeOptions(cache_capacity=10_000, max_message_bytes=1024 * 1024)
        async with EmbeddedNode(options) as node, anyio.create_task_group() as tasks:
            link = _Link(self, name, node)
            node.mesh.links[KIT] = link
            self._nodes[name] = node
            address: str = await tasks.start(_serve, node)
            yield address
            del self._nodes[name], node.mesh.links[KIT]
            tasks.cancel_scope.cancel()

    def publish(self, data: bytes, *, sender: str = KIT, ephemeral: bool = False) -> None:
        """Publish an SDS message to all nodes."""
        node = next(iter(self._nodes.values()))
        meta = self.profile.marker or b""
        message = WakuMessage(
            data, self.content_topic, timestamp=time.time_ns(), meta=meta, ephemeral=ephemeral
        )
        self.carry(sender, Envelope.of(node.shard_for(self.content_topic), message))

    def carry(self, sender: str, envelope: Envelope) -> None:
        """Note a message, and pass it to all nodes that it reaches."""
        seen = Seen(_now_ms(), sender, envelope.message.payload, self._decoded(envelope.message))
        self.wire.append(seen)
        self.observer(seen.record())
        for name, node in self._nodes.items():
            if name != sender and self.keep(sender, name):
                node.receive(envelope, KIT)

    def by(self, sender: str) -> list[Message]:
        """Return the decoded messages that a peer published, in order."""
        return [each.message for each in self.wire if each.sender == sender and each.message]

    def _decoded(self, message: WakuMessage) -> Message | None:
        try:
            return self.profile.codec.decode(message.payload)
        except CodecError:
            return None


class _Link:
    """The kit, as a node's peer."""

    key = KIT
    connected = True
    info = None

    def __init__(self, network: Network, name: str, node: EmbeddedNode) -> None:
        self._network = network
        self._name = name
        self._node = node

    @property
    def services(self) -> Services:
        return self._node.services

    def follows(self, pubsub_topic: str) -> bool:
        return True

    def send(self, envelope: Envelope) -> None:
        self._network.carry(self._name, envelope)


async def _serve(node: EmbeddedNode, *, task_status: TaskStatus[str]) -> None:
    await serve_node(node, port=0, started=task_status.started)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
