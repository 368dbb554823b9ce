"""The options of an embedded node, and the limits that it keeps."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

from waku.node.identity import is_peer_id
from waku.topics import MAX_INDEX, PubsubTopic

__all__ = ["REST_APIS", "Behaviour", "HashQueries", "NodeOptions", "RestApi"]

Behaviour = Literal["nwaku", "go-waku"]
HashQueries = Literal["answer", "refuse", "ignore"]
RestApi = Literal["relay", "filter", "lightpush", "store"]
REST_APIS: Final[tuple[RestApi, ...]] = get_args(RestApi)

MIB: Final = 1024 * 1024
RLN_CLUSTER: Final = 1
"""The Waku Network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """Options of an embedded node; the defaults make one that is enough for light clients.

    Raises:
        ValueError: a cluster, shard, limit or time out of range.
    """

    cluster_id: int = 1
    rln: bool | None = None
    """True if messages of the cluster need RLN proofs, which this node can neither make nor check:
    it takes no part in relay between nodes. None is True for cluster 1, The Waku Network. For a
    private network in cluster 1 say False."""
    num_shards: int = 8
    """Shards of the cluster, over which content topics are spread (autosharding)."""
    static_sharding: bool = False
    """True: every call must name its pubsub topic, as on an nwaku without a number of shards."""
    shards: tuple[int, ...] | None = None
    """Shards to follow from the start; None follows all `num_shards` of them."""

    relay: bool = True
    filter: bool = True
    store: bool = True
    lightpush: bool = True
    messaging: bool = False
    """Serve `/messaging/v1`, as logos-delivery does with `--entry-layer messaging`; not with static
    sharding, as it has no pubsub topics."""
    rest_apis: tuple[RestApi, ...] = REST_APIS
    """Which of these have an HTTP API; a path of another one is unknown (404), though the node has
    the protocol. For tests of clients, as is `hash_queries`."""
    hash_queries: HashQueries = "answer"
    """What Store does with a query by message hashes: `answer`; `refuse` with status 400; `ignore`
    the hashes, and answer as if there were none."""
    admin: bool = True
    behave_as: Behaviour | None = None
    """Treat subscriptions as that node does, unkindly; for tests of clients (`docs/node.md`)."""
    self_service: bool = True
    """Be enough for clients without another node. DIVERGES: nwaku looks for another one; a lone one
    answers every light push and filter subscription with 503, and publishing by content topic on a
    shard that it does not follow with 400 (`NoPeersToPublish`)."""

    cache_capacity: int = 50
    """Messages that wait for one client to read them, a cache (relay and filter have one each)."""
    max_message_bytes: int = 153_600
    """Limit of an encoded message: nwaku's 150 KiB; `of_network` takes a network's, 1 MiB on
    `status.prod`."""
    max_clients: int = 4096
    """Clients with separate caches; the one unused for longest is evicted."""
    client_idle_s: float = 600.0
    """Time without a request after which a client's subscriptions and caches are dropped."""
    peer_queue_capacity: int = 10_000
    """Messages that wait for relay peers which are slow or away; further ones are refused (503)."""
    peer_queue_capacity_bytes: int = 64 * MIB
    """Bytes of payload and topic that wait for relay peers."""
    peer_timeout_s: float = 5.0
    """Time that a peer has to answer a request."""
    service_requests_per_s: float = 100.0
    """Light pushes, filter and Store requests that one peer may send in a second, and five times as
    many at once; beyond it they are refused (429)."""
    relay_allow: tuple[str, ...] = ()
    """Peer ids that may take part in relay, beside named `relay_peers`; empty lets all peers."""
    max_body_bytes: int = MIB
    """Limit of a request's body: nwaku's. Where two messages of the greatest size need more,
    that."""
    max_connections: int = 500
    """Connections at a time; beyond it the one that has waited longest with half a request, or
    none, gives way. Fewer where the process may not have so many files open."""
    request_timeout_s: float = 10.0
    """Time that the head of a request may take, and its body again; then the connection is
    closed."""

    store_path: str | Path = ":memory:"
    store_capacity: int = 1_000_000
    """Messages that the store keeps; the oldest give way."""
    store_capacity_bytes: int | None = None
    """Bytes that the store takes with its indexes; the oldest messages give way. None is 256 MiB
    in memory, and no limit in a file."""
    store_retention_s: float | None = None
    """Age from which the store forgets messages; None keeps them."""
    store_timestamp_tolerance_s: float | None = None
    """Store only what is stamped within this time of the node's clock. nwaku's value is 20; None
    stores messages with any stamp, so that tests and clients with a wrong clock can be served."""

    allow_origins: tuple[str, ...] = ()
    """Origins of web pages that may call, such as `https://app.example`; `*` is any. Empty: none
    may. DIVERGES: without origins nwaku answers every page."""
    allow_hosts: tuple[str, ...] = ()
    """Names beside the local ones under which the node is called, as in `Host`; `*` is any. What
    arrives at a loopback address must name one, as a foreign web page cannot. Elsewhere IP
    addresses and names without a dot are taken as well."""
    token: str | None = field(default=None, repr=False)
    """What every request must carry, as `Authorization: Bearer` or in `http://:token@host:port`;
    None asks for none."""
    now_ns: Callable[[], int] = time.time_ns
    """The node's clock: nanoseconds since 1970."""

    def __post_init__(self) -> None:
        if self.behave_as not in (None, "nwaku", "go-waku"):
            raise ValueError(f"`behave_as` must be 'nwaku' or 'go-waku' (got {self.behave_as!r})")
        if self.hash_queries not in get_args(HashQueries):
            raise ValueError(
                f"`hash_queries` must be 'answer', 'refuse' or 'ignore' (got {self.hash_queries!r})"
            )
        if unknown := set(self.rest_apis) - set(REST_APIS):
            raise ValueError(
                f"`rest_apis` must be of {', '.join(REST_APIS)} (got {', '.join(sorted(unknown))})"
            )
        PubsubTopic(self.cluster_id, max((self.num_shards - 1, *(self.shards or ()))))
        positive = (
            "num_shards",
            "cache_capacity",
            "max_message_bytes",
            "max_clients",
            "client_idle_s",
            "peer_queue_capacity",
            "peer_queue_capacity_bytes",
            "peer_timeout_s",
            "service_requests_per_s",
            "max_connections",
            "request_timeout_s",
            "store_capacity",
        )
        for name in positive:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive (got {getattr(self, name)})")
        if self.max_body_bytes < MIB:
            raise ValueError(f"`max_body_bytes` must be at least {MIB} (got {self.max_body_bytes})")
        if self.store_capacity_bytes is not None and self.store_capacity_bytes < MIB:
            raise ValueError(
                f"`store_capacity_bytes` must be at least {MIB}, or None"
                f" (got {self.store_capacity_bytes})"
            )
        for origin in self.allow_origins:
            if not re.fullmatch(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s]+", origin, re.IGNORECASE):
                raise ValueError(
                    f"`allow_origins` must be like https://app.example, or * (got {origin!r})"
                )
        for host in self.allow_hosts:
            if not host or re.search(r"[/@\[\]\s]|^[^:]*:[^:]*$", host):
                raise ValueError(
                    f"`allow_hosts` must be names without scheme and port, or * (got {host!r})"
                )
        if self.token is not None and not re.fullmatch(r"[!-~]+", self.token):
            raise ValueError("`token` must be visible ASCII characters, at least one")
        for peer_id in self.relay_allow:
            if not is_peer_id(peer_id):
                raise ValueError(f"`relay_allow` must be peer ids (got {peer_id!r})")
        if self.num_shards > MAX_INDEX:
            raise ValueError(f"num_shards must be at most {MAX_INDEX} (got {self.num_shards})")

    @classmethod
    def of_network(cls, network: str, **others: Any) -> Self:
        """Options for a named network, or a TOML file: its cluster, shards and greatest message.

        `others` are further options, which override those of the network. Needs the extra
        `[libp2p]`, as everything of `waku.discovery`.

        Raises:
            ValueError: an unknown name, a bad file, or an option out of range.
            OSError: the file cannot be read.
        """
        from waku.discovery import find_network

        found = find_network(network)
        given: dict[str, Any] = {
            "cluster_id": found.cluster_id,
            "max_message_bytes": found.max_message_bytes,
            "rln": found.rln,
        }
        if found.num_shards is not None:
            given["num_shards"] = found.num_shards
        else:
            given["shards"] = found.shards
            given["static_sharding"] = True
        return cls(**(given | others))

    @property
    def has_rln(self) -> bool:
        """True if messages of the cluster need RLN proofs."""
        return self.cluster_id == RLN_CLUSTER if self.rln is None else self.rln

    @property
    def body_limit_bytes(self) -> int:
        """The limit of a body in both directions."""
        return max(self.max_body_bytes, 2 * self.max_message_bytes)

    @property
    def store_limit_bytes(self) -> int | None:
        """The limit of the store in bytes, None where there is none."""
        in_memory = str(self.store_path) == ":memory:"
        return self.store_capacity_bytes or (256 * MIB if in_memory else None)

    @property
    def pubsub_topics(self) -> tuple[str, ...]:
        """The pubsub topics that the node follows from the start."""
        shards = range(self.num_shards) if self.shards is None else self.shards
        return tuple(str(PubsubTopic(self.cluster_id, shard)) for shard in shards)
