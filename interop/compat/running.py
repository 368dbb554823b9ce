"""One run of a node: the embedded node on its ports, with messaging and channels above."""

from __future__ import annotations

import json
import socket
from functools import partial
from ipaddress import ip_address
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from waku.libp2p import PrivateKey
from waku.node import BadAddress, EmbeddedNode, Listen, NodeOptions, serve_node
from waku.node.identity import check_address

from .addresses import ADDRESSES, host_and_port
from .channels import Channels
from .config import NodeConfig
from .events import Emit
from .messaging import Messaging
from .metrics_server import serve_metrics
from .peers import PeerWatch

__all__ = ["INFO_IDS", "RunningNode"]

CACHE_CAPACITY: Final = 10_000
"""Messages that may wait between two looks at the node's cache: a suite sends many at once."""
INFO_IDS: Final = (
    "Version",
    "Metrics",
    "MyMultiaddresses",
    "MyENR",
    "MyPeerId",
    "MyBoundPorts",
    "MyMixPubKey",
    "MaxMessageSize",
)


class RunningNode:
    """The parts of a run; `run` makes them work.

    Args:
        config: of the node.
        key: its identity, which outlives the run.
        topics: the subscribed content topics, which outlive the run.
        emit: takes events.

    Raises:
        BadAddress: a node to dial has no address.
        ArchiveError: the store cannot be opened.
    """

    def __init__(
        self, config: NodeConfig, key: PrivateKey, topics: dict[str, None], emit: Emit
    ) -> None:
        self._config = config
        self._topics = topics
        self._emit = emit
        self._stopping = anyio.Event()
        self._stopped = anyio.Event()
        self.tcp_port = config.tcp_port or _free_port(config.listen_address)
        self.rest_port = 0
        self.metrics_port = 0
        options = NodeOptions(
            cluster_id=config.cluster_id,
            rln=False,
            num_shards=config.num_shards or 1,
            static_sharding=config.num_shards is None,
            relay=config.relay,
            store=config.store,
            store_path=config.store_path,
            filter=config.filter,
            lightpush=config.lightpush,
            self_service=False,
            cache_capacity=CACHE_CAPACITY,
        )
        self.node = EmbeddedNode(options, listen=_listen(config, self.tcp_port, key))
        for address in config.nodes:
            check_address(address)
        self._to_join = list(map(ADDRESSES.real, config.nodes))
        self.messaging = Messaging(self.node, config, topics, emit)
        self.channels: Channels

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve, read and send, until `stop`.

        Raises:
            CannotListen: a port is taken.
        """
        try:
            async with self.node, anyio.create_task_group() as tasks:
                if self._config.rest_port is not None:
                    self.rest_port = await self._serve(tasks, self._config.rest_port)
                if (port := self._config.metrics_port) is not None:
                    serve = partial(serve_metrics, self.node, host=self._config.listen_address)
                    url = await tasks.start(partial(serve, port=port))
                    self.metrics_port = int(url.rpartition(":")[2])
                await tasks.start(self.messaging.run)
                tasks.start_soon(PeerWatch(self.node, self._topics, self._emit).run)
                self.channels = Channels(self.node, self._config, self.messaging, tasks, self._emit)
                task_status.started()
                await self._stopping.wait()
                await self.channels.close_all()
                tasks.cancel_scope.cancel()
        finally:
            self._stopped.set()

    def join(self) -> None:
        """Join the nodes of the configuration.

        Not before the channels are open: what other nodes have held back comes at once.
        """
        assert self.node.network is not None
        for address in self._to_join:
            self.node.network.keep(address)

    async def stop(self) -> None:
        """Close the channels, then everything else."""
        self._stopping.set()
        await self._stopped.wait()

    def info(self, info_id: str) -> str:
        """One of `INFO_IDS`, as text; empty is what this node does not have."""
        match info_id:
            case "Version":
                return self.node.agent
            case "MyMultiaddresses":
                addresses = self.node.libp2p_addresses
                # nwaku announces one interface, also where it listens on all of them. Loopback is
                # the last, and the one that the stand-in's containers reach.
                announced = host_and_port(addresses[-1])[0] if addresses else ""
                return ",".join(one for one in addresses if host_and_port(one)[0] == announced)
            case "MyPeerId":
                return self.node.peer_id
            case "MyENR":
                return self.node.record
            case "MyBoundPorts":
                ports = {"tcp": self.tcp_port, "rest": self.rest_port, "metrics": self.metrics_port}
                sockets = [one for one in self.node.libp2p_addresses if "/ws/" in one]
                websocket = next((host_and_port(one)[1] for one in sockets), 0)
                return json.dumps({**ports, "webSocket": websocket, "quic": 0, "discv5Udp": 0})
            case "MaxMessageSize":
                return str(self.node.options.max_message_bytes)
        return ""

    async def _serve(self, tasks: TaskGroup, port: int) -> int:
        """Serve the node's API on a port."""

        async def serving(*, task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED) -> None:
            host = self._config.listen_address
            await serve_node(self.node, host=host, port=port, started=task_status.started)

        url: str = await tasks.start(serving)
        return int(url.rpartition(":")[2])


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _listen(config: NodeConfig, tcp_port: int, key: PrivateKey) -> Listen:
    """Where the node listens for libp2p peers."""
    try:
        address = ip_address(config.listen_address)
    except ValueError as error:
        raise BadAddress(f"a node needs an IP address to listen at: {error}") from error
    at = f"/ip{address.version}/{address}/tcp"
    websocket = config.websocket_port
    sockets = () if websocket is None else (f"{at}/{websocket}/ws",)
    return Listen((f"{at}/{tcp_port}", *sockets), identity=key)
