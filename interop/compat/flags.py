"""The command line of nwaku, as far as an embedded node can obey it."""

from __future__ import annotations

from argparse import ArgumentError, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waku.libp2p import InvalidInput, PrivateKey
from waku.node import Listen, ListenLimits, NodeOptions, ServiceKind
from waku.node.identity import check_address

from .records import address_in, node_key

__all__ = ["BadFlag", "NodeFlags"]

TIMESTAMP_TOLERANCE_S: Final = 20.0
"""What nwaku's archive allows."""
DEFAULT_SHARDS: Final = 1
"""Autosharding over one shard, where no number is given: logos-delivery since 2026; 0 is none."""
METRICS_PORT: Final = 8008
BODY_BYTES: Final = 16 * 1024 * 1024
"""The suite sends payloads of 10 MiB, and expects the limit of messages, not that of bodies."""
TOPIC_BYTES: Final = 16 * 1024
"""nwaku has no separate limit for a topic."""
PEER_TIMEOUT_S: Final = 15.0
"""A link outlives delays of seconds, as those of libp2p: the suite delays packets by up to 7."""
MISSING: Final = {
    "rln-relay": "there is no RLN",
    "store-sync": "there is no Store synchronisation",
}
"""Switches that this node cannot turn on."""
WITHOUT_EFFECT: Final = (
    "discv5-udp-port dns-discovery dns-discovery-url"
    " listen-address log-format log-level max-connections metrics-logging"
    " metrics-server-address peer-exchange peer-persistence pubsub-topic relay-peer-exchange"
    " rendezvous rest rest-address store-sync-interval store-sync-range store-sync-relay-jitter"
    " websocket-port websocket-support"
).split()
"""Taken, and nothing changes: no peer is discovered, and REST is always on. Nodes that were to
find each other have to be named; a node for discovery or peer exchange is joined, and no more."""


class BadFlag(ValueError):
    """A flag that is not known, or a value that cannot be obeyed; the text names both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFlags:
    """What a command line says."""

    options: NodeOptions
    rest_port: int
    metrics_port: int | None
    """Where `/metrics` is served; None where it is not."""
    host: str
    """The address under which other nodes know this one."""
    tcp_port: int
    join: tuple[str, ...]
    """Multiaddresses of peers to stay connected to."""
    service_nodes: Mapping[ServiceKind, str]
    """Multiaddresses of the peers that are named for a service."""
    key: PrivateKey
    """Its identity."""
    content_topics: tuple[str, ...]
    """To subscribe from the start."""

    @property
    def listen(self) -> Listen:
        """Where the node listens: others know it by another address."""
        announced = f"/ip4/{self.host}/tcp/{self.tcp_port}"
        limits = ListenLimits(topic_bytes=TOPIC_BYTES)
        here = ("/ip4/127.0.0.1/tcp/0",)
        return Listen(here, announce=(announced,), identity=self.key, limits=limits)

    @classmethod
    def of(cls, arguments: Sequence[str], folder: Path) -> NodeFlags:
        """Read `--name=value` flags.

        Args:
            arguments: the command line.
            folder: where the node keeps its messages.

        Raises:
            BadFlag: a flag or value as it says.
        """
        try:
            given, left = _parser().parse_known_args(arguments)
        except ArgumentError as error:
            raise BadFlag(str(error)) from error
        if left:
            raise BadFlag(f"unrecognized options: {' '.join(left)}")
        for name, reason in MISSING.items():
            if getattr(given, name):
                raise BadFlag(f"--{name}=true cannot be obeyed: {reason}")
        if not given.store_message_db_url.startswith("sqlite://"):
            raise BadFlag(
                f"--store-message-db-url={given.store_message_db_url} cannot be obeyed:"
                " the store is SQLite"
            )
        host = given.nat.removeprefix("extip:") if given.nat.startswith("extip:") else "127.0.0.1"
        services: Mapping[ServiceKind, list[str]] = {
            "filter": given.filternode,
            "lightpush": given.lightpushnode,
            "store": given.storenode,
        }
        named: dict[ServiceKind, str] = {kind: n[-1] for kind, n in services.items() if n}
        try:
            options, key = _options(given, folder), node_key(given.nodekey)
            join = (*given.staticnode, *given.peer_exchange_node, *_bootstrap(given))
            for address in (*join, *named.values()):
                check_address(address)
        except (InvalidInput, ValueError) as error:
            raise BadFlag(str(error)) from error
        return cls(
            options=options,
            rest_port=given.rest_port,
            metrics_port=given.metrics_server_port if given.metrics_server else None,
            host=host,
            tcp_port=given.tcp_port,
            join=join,
            service_nodes=named,
            key=key,
            content_topics=tuple(given.content_topic),
        )


def _options(given: Namespace, folder: Path) -> NodeOptions:
    shards = given.num_shards_in_network
    return NodeOptions(
        cluster_id=given.cluster_id,
        rln=False,
        num_shards=shards or 1,
        static_sharding=not shards,
        # Without --shard nwaku follows all that autosharding knows, and none without it.
        shards=tuple(given.shard) if given.shard or not shards else None,
        # Unsubscribing from a content topic leaves its shard, which tests look for.
        behave_as="nwaku",
        relay=given.relay,
        filter=given.filter,
        lightpush=given.lightpush,
        store=given.store,
        admin=given.rest_admin,
        self_service=False,
        cache_capacity=given.rest_relay_cache_capacity,
        max_body_bytes=BODY_BYTES,
        store_path=folder / "store.sqlite3",
        store_timestamp_tolerance_s=TIMESTAMP_TOLERANCE_S,
        peer_timeout_s=PEER_TIMEOUT_S,
    )


def _bootstrap(given: Namespace) -> Iterator[str]:
    """The addresses in the records of nodes to begin discovery at; others are ignored, as in
    nwaku."""
    for record in given.discv5_bootstrap_node if given.discv5_discovery else ():
        with suppress(InvalidInput):
            yield address_in(record)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("rest-port", "tcp-port", "cluster-id"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--num-shards-in-network", type=int, default=DEFAULT_SHARDS)
    parser.add_argument("--rest-relay-cache-capacity", type=int, default=50)
    for name in ("filter", "lightpush", "store", "rest-admin", "metrics-server"):
        parser.add_argument(f"--{name}", type=_switch, default=False)
    for name in ("relay", "discv5-discovery"):
        parser.add_argument(f"--{name}", type=_switch, default=True)
    parser.add_argument("--metrics-server-port", type=int, default=METRICS_PORT)
    parser.add_argument("--nodekey", default="")
    repeated = ("staticnode", "filternode", "lightpushnode", "storenode", "peer-exchange-node")
    for name in (*repeated, "discv5-bootstrap-node", "content-topic"):
        parser.add_argument(f"--{name}", action="append", default=[])
    parser.add_argument("--shard", type=int, action="append", default=[])
    parser.add_argument("--nat", default="any")
    parser.add_argument("--store-message-db-url", default="sqlite://store.sqlite3")
    for name in MISSING:
        parser.add_argument(f"--{name}", dest=name, type=_switch, default=False)
    for name in WITHOUT_EFFECT:
        parser.add_argument(f"--{name}", action="append")
    return parser


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
