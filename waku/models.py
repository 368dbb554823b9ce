"""Values that a client and a node exchange.

Field names are those of the REST API, in snake case. Times are nanoseconds since 1970. Hashes and
cursors have 32 raw bytes. Values are read in the notation of every supported node.
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
"""Size of a message hash (bytes), and of a Store cursor, which is a message hash."""

PeerStats: TypeAlias = Mapping[str, Mapping[str, int]]
"""Counts by heading and name, as in `stats["By Connectedness"]["Connected"]` (nwaku only)."""


@dataclass(frozen=True, slots=True)
class WakuMessage:
    """Waku message, as in 14/WAKU2-MESSAGE.

    A `timestamp` of 0 is an absent timestamp, which nwaku replaces by its own clock. A `version` of
    None is an absent version. The specification limits `meta` to 64 bytes. This class does not
    check the limit, because nwaku relays longer values.

    Raises:
        ValueError: a version or timestamp no node can hold, or a topic that is not UTF-8. A
            negative version sent to nwaku ends its process, so none can be made.
    """

    payload: bytes
    content_topic: str
    version: int | None = 0
    timestamp: int = 0
    """Time of sending (ns since 1970, signed 64 bits)."""
    meta: bytes = b""
    ephemeral: bool = False
    proof: bytes = b""
    """RLN proof of the message, which this package does not check."""

    def __post_init__(self) -> None:
        if self.version is not None and not 0 <= self.version <= UINT32_MAX:
            raise ValueError(f"version must be an unsigned 32-bit number (got {self.version})")
        if not -INT64_MAX - 1 <= self.timestamp <= INT64_MAX:
            raise ValueError(f"timestamp must be a signed 64-bit number (got {self.timestamp})")
        _json.text(self.content_topic)

    def to_json(self) -> dict[str, str | int | bool]:
        """Return the message as JSON for the REST API, without absent values and defaults."""
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
        """Parse a message in the JSON of nwaku or go-waku (`waku._json` describes deviations).
        Unknown keys are skipped.

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
    """Item of a node's message list that could not be read and was left out."""

    call: str
    reason: str
    item: object
    """JSON value of the item, as the node wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreQuery:
    """Query to a Store (13/WAKU2-STORE v3).

    A message must match all conditions of the query. An empty condition matches every message.
    go-waku accepts `pubsub_topic` with `content_topics`, or only `hashes`. nwaku accepts any
    combination of conditions.

    Raises:
        ValueError: a topic with a comma (the REST API separates by commas), a hash or cursor that
            is not 32 bytes, or a page size below 1.
    """

    content_topics: tuple[str, ...] = ()
    pubsub_topic: str | None = None
    hashes: tuple[bytes, ...] = ()
    """Message hashes, at most 100, because the hashes are part of the URL."""
    start_time_ns: int | None = None
    """First timestamp of the time range (ns), included. nwaku ignores a value of 0 or below."""
    end_time_ns: int | None = None
    """Last timestamp of the time range (ns), included."""
    include_data: bool = True
    """True if the query asks for whole messages. If False, `StoreEntry.message` is None."""
    ascending: bool = True
    """True if the pages go from old to new messages. Within a page, the oldest message always comes
    first."""
    page_size: int | None = None
    """Maximum number of messages in a page, at most 100 (if None, the node chooses, usually 20)."""
    cursor: bytes | None = None
    peer_addr: str | None = None
    """Multiaddress of the Store node to query (if None, the node chooses)."""

    def __post_init__(self) -> None:
        for topic in self.content_topics:
            if "," in topic:
                raise ValueError(
                    f"the topic {topic!r} has a comma, but the REST API separates topics by "
                    "commas; query another topic"
                )
        for digest in (*self.hashes, *(() if self.cursor is None else (self.cursor,))):
            if len(digest) != HASH_BYTES:
                raise ValueError(
                    f"a hash or cursor must have {HASH_BYTES} bytes (got {len(digest)})"
                )
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size must be at least 1 (got {self.page_size})")


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """Message that a Store holds, with its hash."""

    message_hash: bytes
    message: WakuMessage | None = None
    """Message, or None unless the query has `include_data`."""
    pubsub_topic: str | None = None


@dataclass(frozen=True, slots=True)
class StorePage:
    """Page of the answer to a Store query. On the last page, `cursor` is None."""

    entries: tuple[StoreEntry, ...]
    cursor: bytes | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class StoreV1Cursor:
    """Position of a message in a legacy Store."""

    digest: bytes
    sender_time_ns: int
    store_time_ns: int
    pubsub_topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreV1Query:
    """Query to a legacy Store (13/WAKU2-STORE v2, `/store/v1` of the REST API)."""

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
                raise ValueError(
                    f"the topic {topic!r} has a comma, but the REST API separates topics by "
                    "commas; query another topic"
                )


@dataclass(frozen=True, slots=True)
class StoreV1Page:
    """Page of a legacy Store, which keeps neither `meta` nor `ephemeral`."""

    messages: tuple[WakuMessage, ...]
    cursor: StoreV1Cursor | None = None


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """Answer to a successful filter request (12/WAKU2-FILTER)."""

    request_id: str
    status_desc: str = "OK"


@dataclass(frozen=True, slots=True)
class LightPushAnswer:
    """Answer to a successful light push (19/WAKU2-LIGHTPUSH v3)."""

    relay_peer_count: int
    """Number of relay peers to which the service node sent the message (0 for a known message)."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """Addresses of a node, with its node record."""

    listen_addresses: tuple[str, ...]
    enr_uri: str = ""


@dataclass(frozen=True, slots=True)
class ProtocolHealth:
    """Health of one protocol of a node."""

    protocol: str
    status: str
    """Status of the protocol, such as INITIALIZING, SYNCHRONIZING, READY, NOT_READY or
    NOT_MOUNTED."""
    desc: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """Health of a node, as nwaku reports it. The status READY does not mean that the node has
    peers."""

    node_health: str
    protocols: tuple[ProtocolHealth, ...] = ()
    connection_status: str | None = None
    """Status of the node's connections, which only newer nodes report."""

    def status_of(self, protocol: str) -> str:
        """Return the status of a protocol by nwaku's name (NOT_MOUNTED if it is not listed)."""
        return next((p.status for p in self.protocols if p.protocol == protocol), "NOT_MOUNTED")


@dataclass(frozen=True, slots=True)
class Peer:
    """Peer that a node knows."""

    peer_id: str
    multiaddrs: tuple[str, ...]
    protocols: tuple[str, ...] = ()
    connected: bool = False
    connectedness: str = ""
    """State of the connection in nwaku's words, such as Connected or CannotConnect."""
    shards: tuple[int, ...] = ()
    pubsub_topics: tuple[str, ...] = ()
    """Pubsub topics of the peer, which only go-waku reports. nwaku reports `shards` instead."""
    agent: str = ""
    origin: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ShardPeers:
    """Relay peers or mesh peers of a shard. nwaku does not distinguish the clusters of shards."""

    shard: int
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterCriterion:
    """Filter criterion, as a pubsub topic and a content topic."""

    pubsub_topic: str
    content_topic: str


@dataclass(frozen=True, slots=True)
class FilterSubscription:
    """Filter subscription of one peer at this node."""

    peer_id: str
    filter_criteria: tuple[FilterCriterion, ...] = ()
