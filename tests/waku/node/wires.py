"""What tests of several nodes share: messages, waiting, and a client that reads."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus

from waku import WakuMessage
from waku.node import EmbeddedNode, NodeOptions

TOPIC = "/app/1/chat/proto"
SHARD = "/waku/2/rs/1/4"
"""That of `TOPIC`."""
HERE = ("/ip4/127.0.0.1/tcp/0",)
OPTIONS = NodeOptions(rln=False)


async def until(condition: Callable[[], bool]) -> None:
    """Return as soon as other tasks have made something true."""
    while not condition():
        await anyio.lowlevel.checkpoint()


async def live(node: EmbeddedNode, *, task_status: TaskStatus[anyio.CancelScope]) -> None:
    """Run a node until the scope is cancelled that the caller gets."""
    with anyio.CancelScope() as scope:
        async with node:
            task_status.started(scope)
            await anyio.Event().wait()  # until cancelled


def message(number: int, *, ephemeral: bool = False, timestamp: int = 0) -> WakuMessage:
    return WakuMessage(
        b"message %d" % number,
        TOPIC,
        timestamp=timestamp,
        ephemeral=ephemeral,
    )


def publish(node: EmbeddedNode, *messages: WakuMessage) -> None:
    for one in messages:
        node.publish(node.shard_for(one.content_topic), one)


class Inbox:
    """What a client of a node has read."""

    def __init__(self, node: EmbeddedNode, client_id: str = "inbox") -> None:
        self._client = node.clients.get(client_id)
        node.relay.subscribe_content(self._client, TOPIC)
        self._payloads: list[bytes] = []

    @property
    def payloads(self) -> list[bytes]:
        found = self._client.relay_cache.take_content(TOPIC) or []
        self._payloads += [one.payload for one in found]
        return self._payloads
