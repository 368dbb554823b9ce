"""Service nodes as unkind as nwaku, joined with clients in memory.

Measured on nwaku 0.37.1, and read in nim-libp2p: ten streams of a protocol and peer, further ones
end without an answer; 30 filter requests a minute, then 429 under the request id "N/A", pings
included; a stream between two nodes on which more than 256 kB wait is closed, and the meshes of all
shards are empty for a minute; a node that left its shard answers everything and passes nothing on.
"""

from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import anyio
import pytest

from tests.waku.libp2p.driver.memory import pipes
from waku import message_hash
from waku.libp2p import Multiaddr, PrivateKey
from waku.libp2p.driver import Handler, Host, Link, Stream
from waku.p2p import codec
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.protocols import FILTER_SUBSCRIBE, LIGHT_PUSH_3, METADATA

from .network import MAX_BYTES, ServiceNetwork, ServiceNode
from .service import identity

STREAMS: Final = 10
FILTER_REQUESTS: Final = 30
WINDOW_S: Final = 60.0
MESH_BYTES: Final = 256_000
BROKEN_S: Final = 60.0
PUSH_S: Final = 0.05
BYTES_PER_S: Final = 2_000_000


class Mesh:
    """The stream between a node and the others."""

    def __init__(self) -> None:
        self.breaks = 0
        self.most_bytes = 0
        self._waiting_bytes = 0
        self._broken_until_s = 0.0

    @property
    def holds(self) -> bool:
        return anyio.current_time() >= self._broken_until_s

    async def carry(self, size_bytes: int) -> None:
        """Wait until a message has left; it breaks where too much waits."""
        self._waiting_bytes += size_bytes
        self.most_bytes = max(self.most_bytes, self._waiting_bytes)
        if self._waiting_bytes > MESH_BYTES and self.holds:
            self.breaks += 1
            self._broken_until_s = anyio.current_time() + BROKEN_S
        try:
            await anyio.sleep(PUSH_S + size_bytes / BYTES_PER_S)
        finally:
            self._waiting_bytes -= size_bytes


class Nwaku(ServiceNode):
    """One node with nwaku's limits."""

    def __init__(self, network: "NwakuNetwork", key: PrivateKey) -> None:
        self.own_store: dict[bytes, tuple[str, Any]] = {}
        self.mesh = Mesh()
        self.has_left_shard = False
        self.refused: Counter[str] = Counter()
        """Streams ended without an answer, and requests refused by 429."""
        self._open: Counter[tuple[Any, str]] = Counter()
        self._filter_s: dict[Any, deque[float]] = {}
        super().__init__(network, key)

    @property
    def address(self) -> str:
        return f"/ip4/10.0.0.1/tcp/1/p2p/{self.host.identity.peer_id}"

    @property
    def stored(self) -> dict[bytes, tuple[str, Any]]:
        return self.own_store

    def handlers(self) -> dict[str, Handler]:
        served = super().handlers() | {LIGHT_PUSH_3: self._carry, FILTER_SUBSCRIBE: self._rationed}
        return {
            name: handler if name == METADATA else self._limited(name, handler)
            for name, handler in served.items()
        }

    def _limited(self, name: str, handler: Handler) -> Handler:
        async def handle(stream: Stream) -> None:
            key = stream.link, name
            if self._open[key] >= STREAMS:
                self.refused[name] += 1
                return
            self._open[key] += 1
            try:
                await handler(stream)
            finally:
                self._open[key] -= 1

        return handle

    async def _carry(self, stream: Stream) -> None:
        data = await stream.receive_message(2 * MAX_BYTES)
        request = pb.LightpushRequest.FromString(data or b"")
        await self.mesh.carry(len(request.message.payload))
        assert isinstance(self.network, NwakuNetwork)
        self.network.passes(self, request.pubsub_topic, request.message)
        answer = pb.LightpushResponse(
            request_id=request.request_id, status_code=200, relay_peer_count=1
        )
        await stream.send_message(answer.SerializeToString())

    async def _rationed(self, stream: Stream) -> None:
        now_s = anyio.current_time()
        times = self._filter_s.setdefault(stream.link, deque())
        while times and times[0] <= now_s - WINDOW_S:
            times.popleft()
        if len(times) < FILTER_REQUESTS:
            times.append(now_s)
            await self._filter(stream)
            return
        self.refused["429"] += 1
        await stream.receive_message(MAX_BYTES)
        answer = pb.FilterSubscribeResponse(
            request_id="N/A",
            status_code=429,
            status_desc="filter request rejected due rate limit exceeded",
        )
        await stream.send_message(answer.SerializeToString())


class NwakuNetwork(ServiceNetwork):
    """Nodes that pass on what is published, each with a Store of its own."""

    nodes: list[Nwaku]  # type: ignore[assignment]

    def __init__(self, count: int, *, cluster_id: int = 1) -> None:
        super().__init__(0, cluster_id=cluster_id)
        self.nodes = [Nwaku(self, identity(177 + number)) for number in range(count)]

    def passes(self, by: Nwaku, topic: str, message: Any) -> None:
        """Give a message to the nodes that hear it."""
        digest = message_hash(topic, codec.from_proto(message))
        for node in self.nodes:
            reaches = node is by or (by.mesh.holds and node.mesh.holds)
            if not reaches or node.has_left_shard:
                continue
            if not message.ephemeral:
                node.own_store[digest] = topic, message
            self._queue.send_nowait((node, topic, message))

    @asynccontextmanager
    async def in_memory(self, patch: pytest.MonkeyPatch) -> AsyncIterator[Sequence[str]]:
        """Have the dials of all clients reach the nodes; give their addresses."""
        by_id = {node.host.identity.peer_id: node for node in self.nodes}
        async with AsyncExitStack() as stack:
            for node in self.nodes:
                await stack.enter_async_context(node.host)
            self._queue, queue = anyio.create_memory_object_stream[Any](100_000)
            tasks = await stack.enter_async_context(anyio.create_task_group())

            async def accept(node: Nwaku, pipe: Any) -> None:
                await node.host.connect(pipe, dialler=False)

            async def dial(host: Host, address: Multiaddr, **_: Any) -> Link:
                assert address.peer_id is not None
                ours, theirs = pipes()
                tasks.start_soon(accept, by_id[address.peer_id], theirs)
                return await host.connect(ours, dialler=True, expected=address.peer_id)

            async def carry() -> None:
                async with queue:
                    async for node, topic, message in queue:
                        await node.deliver(topic, message)

            patch.setattr(Host, "dial", dial)
            tasks.start_soon(carry)
            with self._queue:
                yield [node.address for node in self.nodes]
            tasks.cancel_scope.cancel()
