"""One run of a node: the embedded node on its ports, with messaging and channels above."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from waku.libp2p import PrivateKey
from waku.node import BadAddress, EmbeddedNode, NodeAddress, NodeOptions, serve_node
from waku.node.libp2p import Listen

from .addresses import ADDRESSES
from .channels import Channels
from .config import NodeConfig
from .events import Emit
from .messaging import Messaging
from .metrics_server import serve_metrics
from .peers import PeerWatch
from .records import record_of

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
        listen = None if config.websocket_port is None else _websocket(config, key)
        options = NodeOptions(
            cluster_id=config.cluster_id,
            num_shards=config.num_shards or 1,
            static_sharding=config.num_shards is None,
            relay=config.relay,
            store=config.store,
            store_path=config.store_path,
            filter=config.filter,
            lightpush=config.lightpush,
            self_service=False,
            cache_capacity=CACHE_CAPACITY,
            peer_id=str(key.peer_id) if listen is None else None,
            listen_addresses=(_multiaddr(config.listen_address, self.tcp_port),),
        )
        options = replace(options, record=record_of(key, options))
        self.node = EmbeddedNode(options, listen=listen)
        self._to_join = [NodeAddress.parse(_dialled(node)) for node in config.nodes]
        self.messaging = Messaging(self.node, config, topics, emit)
        self.channels: Channels

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve, read and send, until `stop`.

        Raises:
            CannotListen: a port is taken.
        """
        try:
            async with self.node, anyio.create_task_group() as tasks:
                await self._serve(tasks, self.tcp_port)
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
        for address in self._to_join:
            self.node.keep_joined(address)

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
                return ",".join(f"{a}/p2p/{self.node.peer_id}" for a in self.node.listen_addresses)
            case "MyPeerId":
                return self.node.peer_id
            case "MyENR":
                return self.node.record
            case "MyBoundPorts":
                ports = {"tcp": self.tcp_port, "rest": self.rest_port, "metrics": self.metrics_port}
                websocket = next(map(_port_of, self.node.libp2p_addresses), 0)
                return json.dumps({**ports, "webSocket": websocket, "quic": 0, "discv5Udp": 0})
            case "MaxMessageSize":
                return str(self.node.options.max_message_bytes)
        return ""

    async def _serve(self, tasks: TaskGroup, port: int) -> int:
        """Serve the node's API, and so its links to others, on a port."""

        async def serving(*, task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED) -> None:
            host = self._config.listen_address
            await serve_node(self.node, host=host, port=port, started=task_status.started)

        url: str = await tasks.start(serving)
        return int(url.rpartition(":")[2])


def _dialled(node: str) -> str:
    """Raises BadAddress: it is not an address."""
    real = ADDRESSES.real(node)
    return real.multiaddr if real.peer_id is None else f"{real.multiaddr}/p2p/{real.peer_id}"


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _websocket(config: NodeConfig, key: PrivateKey) -> Listen:
    """Where the node listens for libp2p peers."""
    try:
        address = ip_address(config.listen_address)
    except ValueError as error:
        raise BadAddress(f"a websocket needs an IP address to listen at: {error}") from error
    at = f"/ip{address.version}/{address}/tcp/{config.websocket_port}/ws"
    return Listen((at,), identity=key)


def _port_of(multiaddress: str) -> int:
    return int(multiaddress.split("/")[4])


def _multiaddr(host: str, port: int) -> str:
    """Where nodes on this machine dial a listener."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"/dns/{host}/tcp/{port}"
    if address.is_unspecified:
        address = ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"/ip{address.version}/{address}/tcp/{port}"
