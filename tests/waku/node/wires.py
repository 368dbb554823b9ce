"""Nodes that reach each other over HTTP without a network, and lines that can be cut."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel
import httpx

from waku import WakuMessage
from waku.node import EmbeddedNode, NodeOptions

TOPIC = "/app/1/chat/proto"
OPTIONS = NodeOptions(redial_min_s=0.001, redial_max_s=0.002)


class Wires(httpx.AsyncBaseTransport):
    """Leads `http://<name>` to the node of that name, unless it is cut off."""

    def __init__(self) -> None:
        self.nodes: dict[str, EmbeddedNode] = {}
        self.cut: set[str] = set()
        self._cuts: dict[str, anyio.Event] = {}

    def node(self, name: str, *join: str, options: NodeOptions = OPTIONS) -> EmbeddedNode:
        """Return a node that is reached by this name and joins others by theirs."""
        urls = [f"http://{other}" for other in join]
        self.nodes[name] = EmbeddedNode(options, join=urls, transport=self)
        return self.nodes[name]

    def cut_off(self, name: str) -> None:
        """End what is under way to a node, and let nothing more through."""
        self.cut.add(name)
        self._cuts.pop(name, anyio.Event()).set()

    def mend(self, name: str) -> None:
        self.cut.discard(name)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        name = request.url.host
        answers: list[httpx.Response] = []
        if name in self.nodes and name not in self.cut:
            ended = self._cuts.setdefault(name, anyio.Event())

            async def ask() -> None:
                transport = httpx.ASGITransport(app=self.nodes[name].app)
                answers.append(await transport.handle_async_request(request))
                tasks.cancel_scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await ended.wait()
                tasks.cancel_scope.cancel()
        if not answers:
            raise httpx.ConnectError(f"{name} is away", request=request)
        return answers[0]


async def until(condition: Callable[[], bool]) -> None:
    """Return as soon as other tasks have made something true."""
    while not condition():
        await anyio.lowlevel.checkpoint()


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
