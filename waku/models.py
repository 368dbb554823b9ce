"""Values that travel between a client and a node.

Field names are those of the REST API in snake case. Times are nanoseconds since 1970. Hashes and
cursors are 32 raw bytes. Every notation of a node is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from waku import _json

__all__ = [
    "FilterAnswer",
    "FilterCriterion",
    "FilterSubscription",
    "Health",
    "LightPushAnswer",
    "NodeInfo",
    "Peer",
    "PeerStats",
    "ProtocolHealth",
    "Rejected",
    "ShardPeers",
    "StoreEntry",
    "StorePage",
    "StoreQuery",
    "StoreV1Cursor",
    "StoreV1Page",
    "StoreV1Query",
    "WakuMessage",
]

INT64_MAX = 2**63 - 1
UINT32_MAX = 2**32 - 1
HASH_BYTES = 32
"""Size of a message hash, and of a store's cursor, which is a message hash."""

PeerStats: TypeAlias = Mapping[str, Mapping[str, int]]
"""Counts by heading, then by name: `stats["By Connectedness"]["Connected"]` (nwaku only)."""


@dataclass(frozen=True, slots=True)
class WakuMessage:
    """A Waku message (14/WAKU2-MESSAGE).

    `timestamp` 0 is an absent one: nwaku then writes its own clock, go-waku leaves it absent.
    `version` None is an absent one. `meta` is at most 64 bytes by the specification. That is not
    enforced here, as nwaku relays longer ones.

    Raises:
        ValueError: a version or timestamp no node can hold, or a topic that is not UTF-8. A
            negative version sent to nwaku ends its process, so none can be made.
    """

    payload: bytes
    content_topic: str
    version: int | None = 0
    timestamp: int = 0
    """Nanoseconds since 1970, signed 64 bits."""
    meta: bytes = b""
    ephemeral: bool = False
    proof: bytes = b""
    """RLN proof, which this package does not check."""

    def __post_init__(self) -> None:
        if self.version is not None and not 0 <= self.version <= UINT32_MAX:
            raise ValueError(f"version must be an unsigned 32-bit number (got {self.version})")
        if not -INT64_MAX - 1 <= self.timestamp <= INT64_MAX:
            raise ValueError(f"timestamp must be a signed 64-bit number (got {self.timestamp})")
        _json.text(self.content_topic)

    def to_json(self) -> dict[str, str | int | bool]:
        """Return the REST form: base64 padded, absent and default optionals left out."""
        fields: dict[str, str | int | bool] = {
            "payload": _json.base64_text(self.payload),
            "contentTopic": self.content_topic,
        }
        if self.version is not None:
            fields["version"] = self.version
        if self.timestamp:
            fields["timestamp"] = self.timestamp
        if self.meta:
            fields["meta"] = _json.base64_text(self.meta)
        if self.ephemeral:
            fields["ephemeral"] = True
        if self.proof:
            fields["proof"] = _json.base64_text(self.proof)
        return fields

    @classmethod
    def from_json(cls, value: object) -> WakuMessage:
        """Read either node's form (`waku._json` says what is tolerated). Skip unknown keys.

        Raises:
            ValueError: not an object, no content topic, or a field of the wrong type.
        """
        fields = _json.object_of(value)
        version = fields.get("version")
        timestamp = fields.get("timestamp")
        return cls(
            payload=_json.base64_bytes(fields.get("payload")),
            content_topic=_json.text(_json.field(fields, "contentTopic", "content_topic")),
            version=None if version is None else _json.integer(version),
            timestamp=0 if timestamp is None else _json.integer(timestamp),
            meta=_json.base64_bytes(fields.get("meta")),
            ephemeral=_json.boolean(fields.get("ephemeral")),
            proof=_json.base64_bytes(fields.get("proof")),
        )


@dataclass(frozen=True, slots=True)
class Rejected:
    """Unreadable item of a node's message list, which was left out."""

    call: str
    reason: str
    item: object
    """The JSON value as the node wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreQuery:
    """Query to a store (13/WAKU2-STORE v3).

    All conditions must match. Empty ones match everything. go-waku wants `pubsub_topic` and
    `content_topics` together, or else only `hashes`. nwaku takes any combination.

    Raises:
        ValueError: a topic with a comma (the REST API separates by commas), a hash or cursor that
            is not 32 bytes, or a page size below 1.
    """

    content_topics: tuple[str, ...] = ()
    pubsub_topic: str | None = None
    hashes: tuple[bytes, ...] = ()
    """Message hashes, at most 100, because they are part of the URL."""
    start_time_ns: int | None = None
    """First time of the range, inclusive. nwaku ignores 0 and below."""
    end_time_ns: int | None = None
    """Last time of the range, inclusive."""
    include_data: bool = True
    """True to ask for whole messages. With False, `StoreEntry.message` is None."""
    ascending: bool = True
    """Order of the pages. Inside a page the oldest message comes first in any case."""
    page_size: int | None = None
    """Messages a page, at most 100 (None: the node's choice, 20)."""
    cursor: bytes | None = None
    peer_addr: str | None = None
    """Multiaddress of the store node (None: the node's choice)."""

    def __post_init__(self) -> None:
        for topic in self.content_topics:
            if "," in topic:
                raise ValueError(f"a content topic with a comma cannot be queried: {topic!r}")
        for digest in (*self.hashes, *(() if self.cursor is None else (self.cursor,))):
            if len(digest) != HASH_BYTES:
                raise ValueError(
                    f"a hash or cursor must have {HASH_BYTES} bytes (got {len(digest)})"
                )
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size must be at least 1 (got {self.page_size})")


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """A message that a store holds."""

    message_hash: bytes
    message: WakuMessage | None = None
    """None unless the query has `include_data`."""
    pubsub_topic: str | None = None


@dataclass(frozen=True, slots=True)
class StorePage:
    """Page of a store query. `cursor` is None on the last page."""

    entries: tuple[StoreEntry, ...]
    cursor: bytes | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class StoreV1Cursor:
    """Position of a message in a legacy store."""

    digest: bytes
    sender_time_ns: int
    store_time_ns: int
    pubsub_topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreV1Query:
    """Query to a legacy store (13/WAKU2-STORE v2, `/store/v1` of the REST API)."""

    content_topics: tuple[str, ...] = ()
    pubsub_topic: str | None = None
    start_time_ns: int | None = None
    end_time_ns: int | None = None
    ascending: bool = True
    page_size: int | None = None
    cursor: StoreV1Cursor | None = None
    peer_addr: str | None = None

    def __post_init__(self) -> None:
        for topic in self.content_topics:
            if "," in topic:
                raise ValueError(f"a content topic with a comma cannot be queried: {topic!r}")


@dataclass(frozen=True, slots=True)
class StoreV1Page:
    """Page of a legacy store, which keeps neither `meta` nor `ephemeral`."""

    messages: tuple[WakuMessage, ...]
    cursor: StoreV1Cursor | None = None


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """A filter call that succeeded (12/WAKU2-FILTER)."""

    request_id: str
    status_desc: str = "OK"


@dataclass(frozen=True, slots=True)
class LightPushAnswer:
    """A light push that succeeded (19/WAKU2-LIGHTPUSH v3)."""

    relay_peer_count: int
    """Relay peers that received the message from the service node (0 for a known message)."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """Addresses of a node, and its record."""

    listen_addresses: tuple[str, ...]
    enr_uri: str = ""


@dataclass(frozen=True, slots=True)
class ProtocolHealth:
    """The health of one of a node's protocols."""

    protocol: str
    status: str
    """INITIALIZING, SYNCHRONIZING, READY, NOT_READY, NOT_MOUNTED or SHUTTING_DOWN."""
    desc: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """A node's health (nwaku). READY does not mean that it has peers."""

    node_health: str
    protocols: tuple[ProtocolHealth, ...] = ()
    connection_status: str | None = None
    """Only newer nodes report it."""

    def status_of(self, protocol: str) -> str:
        """Return the status of a protocol by nwaku's name for it, NOT_MOUNTED if not listed."""
        return next((p.status for p in self.protocols if p.protocol == protocol), "NOT_MOUNTED")


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that a node knows."""

    peer_id: str
    multiaddrs: tuple[str, ...]
    protocols: tuple[str, ...] = ()
    connected: bool = False
    connectedness: str = ""
    """nwaku's word: Connected, NotConnected, CannotConnect or CanConnect."""
    shards: tuple[int, ...] = ()
    pubsub_topics: tuple[str, ...] = ()
    """Only go-waku reports it. nwaku reports `shards`."""
    agent: str = ""
    origin: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ShardPeers:
    """The relay or mesh peers of a shard. Clusters are not distinguished (nwaku)."""

    shard: int
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterCriterion:
    """Topic pair of a filter subscription."""

    pubsub_topic: str
    content_topic: str


@dataclass(frozen=True, slots=True)
class FilterSubscription:
    """Filter subscription of one peer at this node."""

    peer_id: str
    filter_criteria: tuple[FilterCriterion, ...] = ()
