"""The bench: an engine, the images, and networks with a node and peers.

with Bench.open() as bench, bench.network("store") as network:
    alice = network.ours("alice", service="light")
    bob = network.js("bob")
    alice.send(b"hello")
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import IPv4Network
from itertools import count
from pathlib import Path
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

import docker
from docker.errors import APIError, DockerException
from docker.types import IPAMConfig, IPAMPool
from testcontainers.core.config import testcontainers_config

from . import engine
from .container import Container, Event
from .images import Images
from .peers import (
    JS_QUICK,
    JS_STOCK,
    OUR_QUICK,
    OUR_STOCK,
    JsPeer,
    OurPeer,
    js_arguments,
    our_arguments,
)
from .reaper import LABEL, Reaper, run_id, sweep

NodeKind = Literal["store", "stock", "embedded", "python"]
Service = Literal["relay", "light", "native", "leaf"]
"""How ours reach the service node: through a gateway's REST API, by relay or by light push and
filter; `native`, our own libp2p client, without a gateway; or `leaf`, through an embedded node with
`--relay-peer`, whose relay leaf joins the service node's mesh. js-waku is always native."""
LEAF_SHARDS: Final = "42:0,1,2,3,4,5,6,7"
"""Of a network with leaves: cluster 1 has RLN, and they refuse it."""
EMBEDDED: Final = ("embedded", "python")
"""Kinds of which ours need no gateway."""

C = TypeVar("C", bound=Container)

SUBNETS: Final = tuple(IPv4Network("172.30.0.0/15").subnets(new_prefix=24))
NODE_KEY: Final = "11" * 32
NODE_ID: Final = "16Uiu2HAmHzBkRq62mG95vsjKMuYQBezZCtjPXYWUoyVxMxi71aB3"
"""The peer id that go-libp2p makes of `NODE_KEY`."""
TCP_PORT, WS_PORT, REST_PORT = 60000, 60001, 8645
STORE: Final = "/data/store"
IDENTITY: Final = "/data/node.key"
REACHED_AT: Final = b"libp2p peers reach it at "
TOPIC: Final = "/reliable-channel/1/interop/proto"
STOCK_FILTER_CACHE: Final = 30
"""Messages that go-waku's REST API keeps for a filter topic by default."""


class Bench:
    """What a run has in common. Everything that it starts is taken away after it, even after a
    failure."""

    def __init__(self, address: str, images: Images) -> None:
        self.address = address
        self.images = images
        self.labels = {LABEL: run_id()}
        self._client = docker.DockerClient(base_url=address)
        self._subnets = iter(SUBNETS)
        self._lock = Lock()

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Self]:
        """Have an engine and the images, and clean up in the end.

        Raises:
            EngineUnavailable: there is no engine here.
        """
        held = engine.hold() if engine.may_start() else None
        address = engine.ensure()
        testcontainers_config.ryuk_disabled = True  # its image cannot be made here; see reaper.py
        engine.use(address)
        sweep(address)
        reaper = Reaper(address, run_id())
        try:
            images = Images(address)
            began = monotonic()
            made = ", ".join(images.make()) or "none"
            took_s = monotonic() - began
            print(f"\nimages made: {made}; ready after {took_s:.0f} s", file=sys.stderr, flush=True)
            bench = cls(address, images)
            yield bench
            bench._client.close()
        finally:
            if held is not None:  # to the very end: another run's reaper may be about to stop it
                held.close()
            reaper.close()

    def create_network(self) -> tuple[str, IPv4Network]:
        """A network that reaches nothing but its containers, in an unused subnet."""
        for subnet in self._subnets:
            pool = IPAMPool(subnet=str(subnet))
            name = f"reliable-channel-interop-{self.labels[LABEL]}-{subnet.network_address}"
            with self._lock, suppress(APIError):  # in use by somebody else
                self._client.networks.create(
                    name, internal=True, ipam=IPAMConfig(pool_configs=[pool]), labels=self.labels
                )
                return name, subnet
        raise RuntimeError("no free subnet for a network of the bench")

    def output(self, image: str, *arguments: str) -> str:
        """What a program of an image prints that needs no network."""
        printed: bytes = self._client.containers.run(
            self.images.names[image],
            list(arguments),
            network_mode="none",
            remove=True,
            labels=self.labels,
        )
        return printed.decode()

    def remove_network(self, name: str) -> None:
        """Remove a network; what still hangs in it is left to the reaper."""
        with suppress(DockerException):
            self._client.networks.get(name).remove()

    def network(
        self, kind: NodeKind, *, forgets: bool = False, shards: str | None = None
    ) -> "BenchNetwork":
        """A network with a node of this kind, to be entered; see `BenchNetwork`."""
        return BenchNetwork(self, kind, forgets=forgets, shards=shards)


class StockNode(Container):
    """An unchanged go-waku, which says by its log that it is ready."""

    def parse(self, line: bytes) -> Event | None:
        return {"event": "ready"} if b"Node setup complete" in line else None


class EmbeddedNode(Container):
    """`reliable-channel node`."""

    def parse(self, line: bytes) -> Event | None:
        if line.startswith(REACHED_AT):
            return {"event": "reached_at", "address": line.removeprefix(REACHED_AT).decode()}
        return {"event": "ready"} if line.startswith(b"listening on") else None

    def address_of(self, transport: Literal["tcp", "ws"]) -> str:
        """Its multiaddress, the same in all its lives."""
        addresses = [str(event["address"]) for event in self.emitted("reached_at")]
        return next(a for a in addresses if ("/ws/" in a) == (transport == "ws"))


class BenchNetwork:
    """One network: a service node, and participants around it. Ours have a node each,
    a gateway to the service node, as REST caches have one reader; the embedded node needs none.

    With `forgets` the node's Store does not outlive it. `shards` of the kind `store` are static
    ones of any cluster, as in `16:128,256`.

    Raises:
        ValueError: shards of another kind.
    """

    def __init__(self, bench: Bench, kind: NodeKind, *, forgets: bool, shards: str | None) -> None:
        if shards is not None and kind != "store":
            raise ValueError(f"a node of the kind {kind} takes no shards: use a store node")
        self._bench = bench
        self.kind = kind
        self._forgets = forgets
        self._shards = [] if shards is None else ["-shards", shards]
        self._cluster = [] if shards is None else ["--cluster-id", shards.partition(":")[0]]
        self._numbers = count(2)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            self._name, self._subnet = self._bench.create_network()
            self._stack.callback(self._bench.remove_network, self._name)
            self.node = self._service_node()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def has_store(self) -> bool:
        """Whether there is a Store that our side and js-waku can ask."""
        return self.kind != "stock"

    def ours(
        self,
        name: str,
        *,
        service: Service = "light",
        topic: str = TOPIC,
        drop_incoming: float = 0,
        **options: Any,
    ) -> OurPeer:
        """One of ours, with its gateway, started."""
        flags = ["--drop-incoming", str(drop_incoming), "--seed", "1", *self._cluster]
        flags += [] if service in ("native", "leaf") else ["--service", service]
        gateway: Container | None = None
        if service == "native":
            node = self.node_address("tcp")
        elif service == "leaf":
            gateway = self.leaf(name)
            node = f"http://{gateway.address}:{REST_PORT}"
        elif self.kind in EMBEDDED:
            node = f"http://{self.node.address}:{REST_PORT}"
        else:
            gateway = self.gateway(name, service)
            node = f"http://{gateway.address}:{REST_PORT}"
            flags += ["--store-peer", self.node_address("tcp")]
        options = {**(OUR_STOCK if self.kind == "stock" else OUR_QUICK), **options}
        arguments = our_arguments(name, topic, node, options, *flags)
        peer = self._add(OurPeer, "ours", arguments, name)
        peer.link = gateway or peer
        return peer

    def js(
        self, name: str, *, topic: str = TOPIC, drop_incoming: float = 0, **options: Any
    ) -> JsPeer:
        """One of js-waku, started; always by light push and filter."""
        flags = ["--drop-incoming", str(drop_incoming), *self._cluster]
        flags += ["--stock"] if self.kind == "stock" else []
        flags += ["--unchanged"] if self.kind == "python" else []
        options = {**(JS_STOCK if self.kind == "stock" else JS_QUICK), **options}
        arguments = js_arguments(name, topic, self.node_address("ws"), options, *flags)
        peer = self._add(JsPeer, "js", arguments, name)
        peer.link = peer
        return peer

    def js_program(self, name: str, program: str, *arguments: str) -> Container:
        """One of the js image's other programs, given the node's address first, started."""
        command = [program, self.node_address("ws"), *arguments]
        return self._add(Container, "js", command, name)

    def program(self, name: str, source: Path) -> Container:
        """A Python program of one file, beside the packages of our image, started."""
        python = str(Path(sys.executable).resolve())
        return self._add(
            Container,
            "ours",
            [],
            name,
            entrypoint=[python, "-c", source.read_text(encoding="utf-8")],
        )

    def program_behind_gateway(self, name: str, source: Path) -> Container:
        """The same, with a separate gateway, whose REST address is its one argument; the embedded
        node needs none."""
        node = self.node if self.kind in EMBEDDED else self.gateway(name, "relay")
        python = str(Path(sys.executable).resolve())
        entrypoint = [
            python,
            "-c",
            source.read_text(encoding="utf-8"),
            f"http://{node.address}:{REST_PORT}",
        ]
        return self._add(Container, "ours", [], name, entrypoint=entrypoint)

    def gateway(self, name: str, service: Service = "relay") -> Container:
        """A participant's own node, started. Processes of the engine's host reach its
        REST API too, on `REST_PORT` of its address."""
        address = self._next_address()
        arguments = ["-address", address, "-gateway", self.node_address("tcp"), *self._shards]
        arguments += [f"-relay={'true' if service == 'relay' else 'false'}"]
        if self.kind == "stock":
            arguments += ["-filter-cache", str(STOCK_FILTER_CACHE)]
        return self._add(Container, "node", arguments, f"{name}'s gateway", address)

    def leaf(self, name: str) -> Container:
        """A participant's own node of ours, started: its relay leaf joins the service node."""
        address = self._next_address()
        arguments = ["node", "--host", address, "--port", str(REST_PORT), *self._cluster]
        arguments += ["--relay-peer", self.node_address("tcp")]
        return self._add(EmbeddedNode, "ours", arguments, f"{name}'s leaf", address)

    def node_address(self, transport: Literal["tcp", "ws"]) -> str:
        if isinstance(self.node, EmbeddedNode):
            return self.node.address_of(transport)
        end = {"tcp": f"tcp/{TCP_PORT}", "ws": f"tcp/{WS_PORT}/ws"}[transport]
        return f"/ip4/{self.node.address}/{end}/p2p/{NODE_ID}"

    def _service_node(self) -> Container:
        address = self._next_address()
        match self.kind:
            case "embedded" | "python":
                arguments = ["node", "--host", address, "--port", str(REST_PORT)]
                arguments += [] if self._forgets else ["--store", STORE]
                arguments += _listening(address) if self.kind == "python" else []
                return self._add(EmbeddedNode, "ours", arguments, "node", address)
            case "stock":
                return self._add(StockNode, "stock", _stock_arguments(address), "node", address)
            case "store":
                arguments = ["-address", address, "-nodekey", NODE_KEY, *self._shards]
                arguments += [] if self._forgets else ["-store", STORE]
                return self._add(Container, "node", arguments, "node", address)

    def _add(
        self,
        kind: type[C],
        image: str,
        arguments: list[str],
        name: str,
        address: str | None = None,
        entrypoint: list[str] | None = None,
    ) -> C:
        container = kind(
            self._bench.images.names[image],
            arguments,
            name=name,
            network=self._name,
            address=address or self._next_address(),
            labels=self._bench.labels,
            entrypoint=entrypoint,
        )
        self._stack.callback(container.remove)
        return container.start()

    def _next_address(self) -> str:
        return str(self._subnet[next(self._numbers)])


def _listening(address: str) -> list[str]:
    """Where `reliable-channel node` serves libp2p peers."""
    tcp, ws = f"/ip4/{address}/tcp/{TCP_PORT}", f"/ip4/{address}/tcp/{WS_PORT}/ws"
    return ["--listen", tcp, "--listen", ws, "--identity", IDENTITY]


def _stock_arguments(address: str) -> list[str]:
    """What an operator would write; the comments name what go-waku does not survive otherwise."""
    return [
        *(f"--nodekey={NODE_KEY}", f"--address={address}", f"--tcp-port={TCP_PORT}"),
        *("--websocket-support", f"--websocket-address={address}", f"--websocket-port={WS_PORT}"),
        f"--ext-multiaddr=/ip4/{address}/tcp/{TCP_PORT}",  # also keeps it from asking for NAT
        f"--ext-multiaddr=/ip4/{address}/tcp/{WS_PORT}/ws",
        *("--cluster-id=1", "--relay", "--min-relay-peers-to-publish=0"),
        *(f"--pubsub-topic=/waku/2/rs/1/{shard}" for shard in range(8)),
        "--filter",
        "--filter-timeout=1ns",  # it drops the subscriptions that are younger, once a minute
        *("--lightpush", "--circuit-relay=false", "--ip-colocation-limit=0"),
        *("--log-encoding=nocolor", "--log-level=INFO"),
    ]
