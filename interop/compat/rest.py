"""What the official REST harness takes for containers of nwaku: embedded nodes in this process.

The harness starts an image with nwaku's flags and calls its REST port. Here the flags make an
embedded node that answers there; `docker_stand_in` puts it where the harness looks for Docker. As
the nodes share an event loop, they also serve each other's light clients.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Final, Literal, NoReturn, Self
from uuid import uuid4

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from waku import WakuMessage
from waku.node import (
    DialFailed,
    EmbeddedNode,
    Envelope,
    NodeAddress,
    NodeOptions,
    PublishRefused,
    serve_node,
)

from .addresses import ADDRESSES
from .failures import first_alone
from .flags import BadFlag, NodeFlags

__all__ = ["BadFlag", "Container", "Engine"]

REDIAL_S: Final = 0.5
STOP_S: Final = 20.0


class Network:
    """The nodes that can be dialled, by host and port."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, int], NetworkNode] = {}

    def admit(self, node: NetworkNode) -> None:
        """Let a node be dialled."""
        self._nodes[node.flags.host, node.flags.tcp_port] = node

    def drop(self, node: NetworkNode) -> None:
        """Let it be dialled no longer."""
        self._nodes.pop((node.flags.host, node.flags.tcp_port), None)

    def at(self, address: NodeAddress) -> NetworkNode | None:
        """The node at an address, if it is one of the network.

        Raises:
            DialFailed: somebody else is there.
        """
        node = self._nodes.get((address.host, address.port))
        if node is not None and address.peer_id not in (None, node.peer_id):
            raise DialFailed(f"{address.multiaddr} is {node.peer_id}, not {address.peer_id}")
        return node

    def peers_of(self, node: NetworkNode) -> list[NetworkNode]:
        """The nodes that one is joined to."""
        peers = node.mesh.peers()
        return [other for other in self._nodes.values() if other.peer_id in peers]


class _Unreachable(EmbeddedNode):
    """A named node that does not serve what it was named for."""

    def check_size(self, message: WakuMessage) -> None:
        """Take no message.

        Raises:
            PublishRefused: always, with nwaku's word.
        """
        raise PublishRefused("dial_failure")


class NetworkNode(EmbeddedNode):
    """An embedded node that dials the others of its network inside the process, and those of the
    bindings over HTTP."""

    def __init__(self, flags: NodeFlags, network: Network) -> None:
        super().__init__(flags.options)
        self.flags = flags
        self._network = network
        self._held: deque[tuple[Envelope, str]] | None = None
        for topic in flags.content_topics:
            self.relay.subscribe_content(self.clients.unnamed, topic)

    def hold(self) -> None:
        """Let what comes wait, as it waits for a process that does not run."""
        self._held = deque(maxlen=self.options.peer_queue_capacity)

    def go_on(self) -> None:
        """Take what waited, and what comes."""
        held, self._held = self._held or (), None
        for envelope, source in held:
            self.receive(envelope, source)

    def receive(self, envelope: Envelope, source: str) -> None:
        """Take a message of another node, or hold it."""
        if self._held is None:
            super().receive(envelope, source)
        else:
            self._held.append((envelope, source))

    def publish(self, pubsub_topic: str, message: WakuMessage, *, unfollowed: bool = False) -> int:
        """Publish, if another node follows the topic: by content topic nwaku publishes to others
        alone.

        Raises:
            PublishRefused: there is none, or as `EmbeddedNode.publish`.
        """
        if unfollowed and not self.mesh.followers(pubsub_topic):
            raise PublishRefused("publish failed in relay: NoPeersToPublish")
        return super().publish(pubsub_topic, message, unfollowed=unfollowed)

    def service(
        self, kind: Literal["filter", "lightpush", "store"], peer_id: str | None = None
    ) -> EmbeddedNode | None:
        """The node that serves this one's light clients; one was named, which does not."""
        found = super().service(kind, peer_id)
        if found is None and kind == "lightpush" and self.flags.names_lightpush:
            return _Unreachable(NodeOptions(store=False))
        return found

    async def dial(self, address: NodeAddress | str) -> None:
        """Join a node of the network; one of another cluster hangs up at once, which nwaku does not
        count as a failure.

        Raises:
            BadAddress: the address cannot be read.
            DialFailed: nobody is there, or it is the node itself.
        """
        address = NodeAddress.parse(address) if isinstance(address, str) else address
        other = self._network.at(address)
        if other is self:
            raise DialFailed("this is the node itself")
        if other is None:
            await super().dial(address)
        elif other.options.cluster_id == self.options.cluster_id:
            self.join(other)


class Container:
    """A node with the methods of docker-py's containers that the harness calls."""

    def __init__(self, portal: BlockingPortal, network: Network, flags: NodeFlags, folder: Path):
        self.id = uuid4().hex
        self.short_id = self.id[:12]
        self.status = "created"
        self.address = ""
        """Where its REST API answers."""
        self._portal = portal
        self._network = network
        self._flags = flags
        self._folder = folder
        self._ended = Event()
        self._node: NetworkNode
        self._running: Future[None]
        self._stopping: anyio.Event
        self._start([])

    @property
    def rest_port(self) -> int:
        """The port of the address."""
        return int(self.address.rpartition(":")[2])

    def stop(self) -> None:
        """End the node; what it stored stays until `remove`."""
        if self.status != "exited":
            self._stop()
            self._ended.set()

    kill = stop

    def remove(self) -> None:
        """End it, and forget what it stored."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start a node that was stopped, under its name."""
        if self.status == "exited":
            self._ended.clear()
            self._start([])

    def restart(self) -> None:
        """End the node and start it again under its name; its peers come back."""
        self._start(self._stop())

    def pause(self) -> None:
        """Let what comes for the node wait. Its REST port still answers, which Docker's would
        not."""
        self._portal.call(self._node.hold)
        self.status = "paused"

    def unpause(self) -> None:
        """Undo `pause`."""
        self._portal.call(self._node.go_on)
        self.status = "running"

    def logs(self, *, stream: bool) -> Iterator[bytes]:
        """Where the node answers, and the end when it ends."""
        yield f"listening on {self.address}\n".encode()
        if stream:
            self._ended.wait()

    # -- in the event loop ------------------------------------------------------------------------

    def _start(self, peers: Sequence[NetworkNode]) -> None:
        with first_alone():
            self._running, self._node = self._portal.start_task(self._run)
        self._portal.call(self._rejoin, peers)
        # Its name stays, as a node key makes it stay, and so does its port.
        self._flags = replace(
            self._flags,
            options=replace(self._flags.options, peer_id=self._node.peer_id),
            rest_port=self.rest_port,
        )
        self.status = "running"

    def _stop(self) -> Sequence[NetworkNode]:
        peers = self._portal.call(self._leave)
        ADDRESSES.forget(self._flags.host, self._flags.tcp_port)
        self._portal.call(self._stopping.set)
        self._running.result(STOP_S)
        self.status = "exited"
        return peers

    async def _run(
        self, *, task_status: TaskStatus[NetworkNode] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        self._stopping = anyio.Event()
        async with NetworkNode(self._flags, self._network) as node:
            async with anyio.create_task_group() as tasks:
                await self._dial(node)

                def started(address: str) -> None:
                    self.address = address
                    ADDRESSES.lead(self._flags.host, self._flags.tcp_port, self.rest_port)
                    task_status.started(node)

                tasks.start_soon(
                    partial(serve_node, node, port=self._flags.rest_port, started=started)
                )
                tasks.start_soon(self._keep_dialling, node)
                await self._stopping.wait()
                tasks.cancel_scope.cancel()

    async def _leave(self) -> Sequence[NetworkNode]:
        peers = self._network.peers_of(self._node)
        self._network.drop(self._node)
        for peer in peers:
            self._node.leave(peer)
        return peers

    async def _rejoin(self, peers: Sequence[NetworkNode]) -> None:
        self._network.admit(self._node)
        for peer in peers:
            address = NodeAddress(peer.flags.host, peer.flags.tcp_port)
            if (found := self._network.at(address)) is not None:  # else it has ended meanwhile
                self._node.join(found)

    async def _dial(self, node: NetworkNode) -> None:
        """Dial the nodes of the flags that are away."""
        for address in self._flags.nodes:
            if address.peer_id not in node.mesh.peers():
                with suppress(DialFailed):
                    await node.dial(address)

    async def _keep_dialling(self, node: NetworkNode) -> NoReturn:
        while True:
            await anyio.sleep(REDIAL_S)
            await self._dial(node)


class Engine:
    """Runs nodes in an event loop of its own. Use it in `with`."""

    def __init__(self) -> None:
        self.containers: dict[str, Container] = {}
        self._network = Network()
        self._exit = ExitStack()
        self._portal: BlockingPortal | None = None

    def run(self, arguments: Sequence[str]) -> Container:
        """Start a node with nwaku's flags; return once it answers.

        Raises:
            BadFlag: a flag that is not known or cannot be obeyed.
            CannotListen: its REST port is taken.
        """
        if self._portal is None:
            raise RuntimeError("use the engine inside `with`")
        folder = Path(tempfile.mkdtemp(prefix="waku-"))
        try:
            flags = NodeFlags.of(arguments, folder)
            container = Container(self._portal, self._network, flags, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.containers[container.id] = container
        return container

    def __enter__(self) -> Self:
        self._portal = self._exit.enter_context(start_blocking_portal(name="waku nodes"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for container in self.containers.values():
            container.remove()
        self._exit.close()
        self._portal = None
