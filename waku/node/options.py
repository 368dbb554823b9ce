"""Options of an embedded node, and their limits."""

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
"""Cluster of The Waku Network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """Options of an embedded node. A node with the default options can serve light clients.

    Raises:
        ValueError: a cluster, shard, limit or time out of range.
    """

    cluster_id: int = 1
    rln: bool | None = None
    """True if messages of the cluster need RLN proofs. This node can neither make nor check proofs,
    so it then takes no part in relay between nodes. None means True for cluster 1, The Waku
    Network. Set False for a private network in cluster 1."""
    num_shards: int = 8
    """Number of shards of the cluster, over which content topics are spread (autosharding)."""
    static_sharding: bool = False
    """True if every call must name its pubsub topic, as on an nwaku without a number of shards."""
    shards: tuple[int, ...] | None = None
    """Shards to follow from the start. None follows all `num_shards` of them."""

    relay: bool = True
    filter: bool = True
    store: bool = True
    lightpush: bool = True
    messaging: bool = False
    """True if the node serves `/messaging/v1`, as logos-delivery does with `--entry-layer
    messaging`. Not possible with static sharding, which needs pubsub topics."""
    rest_apis: tuple[RestApi, ...] = REST_APIS
    """Protocols that have an HTTP API, for tests of clients. The paths of the others return 404,
    although the node has the protocol."""
    hash_queries: HashQueries = "answer"
    """Reaction of Store to a query by message hashes. `answer` answers it, and `refuse` returns
    status 400. `ignore` answers as if the query named no hashes."""
    admin: bool = True
    behave_as: Behaviour | None = None
    """Implementation (`nwaku` or `go-waku`) whose defects in subscriptions the node copies, for
    tests of clients (`docs/node.md`)."""
    self_service: bool = True
    """True if clients need no other node. DIVERGES: nwaku needs another node. Alone, it refuses
    every light push and filter subscription with 503. It also refuses (400, `NoPeersToPublish`) to
    publish on a shard that it does not follow."""

    cache_capacity: int = 50
    """Maximum number of messages in one cache, which wait until a client reads them. Relay and
    filter have separate caches."""
    max_message_bytes: int = 153_600
    """Limit of an encoded message: 150 KiB, as in nwaku. `of_network` sets the limit of a network
    (1 MiB on `status.prod`)."""
    max_clients: int = 4096
    """Maximum number of clients with their own cache. The cache that was unused for the longest
    time is evicted."""
    client_idle_s: float = 600.0
    """Time without a request after which a client's subscriptions and caches are dropped."""
    peer_queue_capacity: int = 10_000
    """Maximum number of messages that wait for slow or absent relay peers. Further messages are
    refused (503)."""
    peer_queue_capacity_bytes: int = 64 * MIB
    """Maximum number of bytes of payload and topic that wait for relay peers."""
    peer_timeout_s: float = 5.0
    """Time limit of a peer's answer to a request."""
    service_requests_per_s: float = 100.0
    """Light pushes, filter requests and Store requests that a peer may send each second. Five times
    as many may come at once, and further requests are refused (429)."""
    relay_allow: tuple[str, ...] = ()
    """Peer ids that may take part in relay, besides the named `relay_peers`. Empty admits all
    peers."""
    max_body_bytes: int = MIB
    """Limit of a request's body: that of nwaku, or twice the greatest message if that is more."""
    max_connections: int = 500
    """Connections at a time. One connection too many closes the one that has been idle or
    incomplete for longest. The number is lower if the process may not open so many files."""
    request_timeout_s: float = 10.0
    """Time limit of a request's head, and again of its body. The node then closes the
    connection."""

    store_path: str | Path = ":memory:"
    store_capacity: int = 1_000_000
    """Maximum number of messages in the store. The oldest are evicted."""
    store_capacity_bytes: int | None = None
    """Maximum number of bytes in the store, with its indexes. The oldest messages are evicted. None
    means 256 MiB in memory, and no limit in a file."""
    store_retention_s: float | None = None
    """Age at which the store deletes messages. None keeps them."""
    store_timestamp_tolerance_s: float | None = None
    """Largest difference between a message's timestamp and the node's clock. The store ignores
    messages beyond it. nwaku uses 20. None stores messages with any timestamp, so that tests and
    clients with a wrong clock work."""

    allow_origins: tuple[str, ...] = ()
    """Origins of web pages that may call the node, such as `https://app.example`. `*` allows any
    origin, and an empty list none. DIVERGES: without origins, nwaku answers every page."""
    allow_hosts: tuple[str, ...] = ()
    """Host names that requests may use besides the local ones (the header `Host`). `*` allows any
    name. Requests to a loopback address must use an allowed name, so that a foreign web page cannot
    call the node. At other addresses, IP addresses and names without a dot are always allowed."""
    token: str | None = field(default=None, repr=False)
    """Secret that every request must contain, as `Authorization: Bearer` or in
    `http://:token@host:port`. None requires no secret."""
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
            raise ValueError("`token` must be visible ASCII characters (got none, or others)")
        for peer_id in self.relay_allow:
            if not is_peer_id(peer_id):
                raise ValueError(f"`relay_allow` must be peer ids (got {peer_id!r})")
        if self.num_shards > MAX_INDEX:
            raise ValueError(f"num_shards must be at most {MAX_INDEX} (got {self.num_shards})")

    @classmethod
    def of_network(cls, network: str, **others: Any) -> Self:
        """Return the options for a named network or a TOML file: its cluster, shards and greatest
        message.

        `others` are further options, which override those of the network. Needs the extra
        `[libp2p]`.

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
        """Maximum size of the body of a request or an answer (bytes)."""
        return max(self.max_body_bytes, 2 * self.max_message_bytes)

    @property
    def store_limit_bytes(self) -> int | None:
        """Limit of the store in bytes. None means no limit."""
        in_memory = str(self.store_path) == ":memory:"
        return self.store_capacity_bytes or (256 * MIB if in_memory else None)

    @property
    def pubsub_topics(self) -> tuple[str, ...]:
        """Pubsub topics that the node follows from the start."""
        shards = range(self.num_shards) if self.shards is None else self.shards
        return tuple(str(PubsubTopic(self.cluster_id, shard)) for shard in shards)
