"""Conversion between Waku's protobuf messages and the values of `waku.models`.

The decoders check the data of a peer. A decoder raises only `InvalidInput`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from google.protobuf.message import DecodeError, Message

from waku.libp2p.errors import InvalidInput
from waku.models import HASH_BYTES, StoreEntry, StorePage, StoreQuery, WakuMessage

from . import waku_libp2p_pb2 as pb
from .protocols import MAX_EXCHANGED_PEERS, MAX_PAGE_ENTRIES

if TYPE_CHECKING:
    FilterKind: TypeAlias = pb.FilterSubscribeRequest.FilterSubscribeType.ValueType

__all__ = [
    "FilterRequest",
    "Metadata",
    "ResponseStatus",
    "decode_answer",
    "decode_light_push_2_answer",
    "decode_message",
    "decode_metadata",
    "decode_peer_exchange_answer",
    "decode_push",
    "decode_store_answer",
    "encode_filter_request",
    "encode_light_push",
    "encode_light_push_2",
    "encode_message",
    "encode_metadata",
    "encode_peer_exchange_query",
    "encode_store_query",
    "from_proto",
    "parse",
    "to_proto",
]

FilterRequest = pb.FilterSubscribeRequest.FilterSubscribeType
"""Kind of a filter request, such as `SUBSCRIBE` or `UNSUBSCRIBE_ALL`."""

OK: Final = 200
MAX_SHARDS: Final = 65_536

_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Network that a peer belongs to (66/WAKU2-METADATA)."""

    cluster_id: int | None
    """Cluster of the peer, or None if the peer names no cluster."""
    shards: frozenset[int] = frozenset()
    """Shards of the peer, or no shards if the peer names none, as js-waku does."""


@dataclass(frozen=True, slots=True)
class ResponseStatus:
    """Status of a request, with numbers that resemble HTTP status codes."""

    request_id: str
    status: int
    text: str = ""
    relay_peer_count: int = 0
    """Number of relay peers that received the message (light push v3)."""

    def is_for(self, request_id: str) -> bool:
        """Return True if this status answers the request with the given id. nwaku sometimes refuses
        without the id of the request (T16). If nwaku could not decode the request, the id is "N/A".
        """
        refused = self.status != OK and self.request_id in ("", "N/A")
        return self.request_id == request_id or refused


def encode_metadata(metadata: Metadata) -> bytes:
    """Encode the shards in two notations, because some readers know only one of them (T12)."""
    shards = sorted(metadata.shards)
    return pb.Metadata(
        cluster_id=metadata.cluster_id, shards=shards, shards_packed=shards
    ).SerializeToString()


def decode_metadata(data: bytes) -> Metadata:
    """Decode the metadata of a peer.

    Raises:
        InvalidInput: not metadata, or more shards than there are.
    """
    message = parse(pb.Metadata, data)
    cluster_id = message.cluster_id if message.HasField("cluster_id") else None
    shards = (*message.shards, *message.shards_packed)
    if len(shards) > 2 * MAX_SHARDS:
        raise InvalidInput(f"the metadata answer has {len(shards)} shards, more than are read")
    return Metadata(cluster_id, frozenset(shards))


def encode_light_push(
    request_id: str, message: WakuMessage, pubsub_topic: str | None = None
) -> bytes:
    """Encode a light push request of version 3."""
    return pb.LightpushRequest(
        request_id=request_id, pubsub_topic=pubsub_topic, message=to_proto(message)
    ).SerializeToString()


def encode_light_push_2(request_id: str, message: WakuMessage, pubsub_topic: str) -> bytes:
    """Encode a light push request of version 2."""
    request = pb.PushRequest(pubsub_topic=pubsub_topic, message=to_proto(message))
    return pb.PushRPC(request_id=request_id, request=request).SerializeToString()


def encode_filter_request(
    request_id: str,
    kind: FilterKind,
    pubsub_topic: str | None = None,
    content_topics: Sequence[str] = (),
) -> bytes:
    """Encode a filter request of version 2. Requests of kind ping and `UNSUBSCRIBE_ALL` name no
    topics."""
    return pb.FilterSubscribeRequest(
        request_id=request_id,
        filter_subscribe_type=kind,
        pubsub_topic=pubsub_topic,
        content_topics=content_topics,
    ).SerializeToString()


def decode_answer(data: bytes) -> ResponseStatus:
    """Decode an answer of light push v3 or of filter, which have the same fields.

    Raises:
        InvalidInput: not an answer.
    """
    message = parse(pb.LightpushResponse, data)
    return ResponseStatus(
        message.request_id, message.status_code, message.status_desc, message.relay_peer_count
    )


def decode_light_push_2_answer(data: bytes) -> tuple[str, bool, str]:
    """Decode an answer of light push v2, with request id, success and text.

    Raises:
        InvalidInput: not an answer.
    """
    message = parse(pb.PushRPC, data)
    if not message.HasField("response"):
        raise InvalidInput("the answer of light push v2 has no response")
    return message.request_id, message.response.is_success, message.response.info


def decode_push(data: bytes) -> tuple[str | None, WakuMessage]:
    """Decode a message that a filter service pushes, and its pubsub topic.

    Raises:
        InvalidInput: no message.
    """
    push = parse(pb.MessagePush, data)
    if not push.HasField("waku_message"):
        raise InvalidInput("the filter push has no message")
    topic = push.pubsub_topic if push.HasField("pubsub_topic") else None
    return topic, from_proto(push.waku_message)


def encode_store_query(request_id: str, query: StoreQuery) -> bytes:
    """Encode a Store query of version 3. Every peer treats a time that is absent or 0 alike
    (T16)."""
    return pb.StoreQueryRequest(
        request_id=request_id,
        include_data=query.include_data,
        pubsub_topic=query.pubsub_topic,
        content_topics=query.content_topics,
        time_start=query.start_time_ns,
        time_end=query.end_time_ns,
        message_hashes=query.hashes,
        pagination_cursor=query.cursor,
        pagination_forward=query.ascending,
        pagination_limit=query.page_size,
    ).SerializeToString()


def decode_store_answer(data: bytes) -> tuple[ResponseStatus, StorePage]:
    """Decode an answer of Store v3, with its status and the page. The page is empty if the status
    is an error.

    Raises:
        InvalidInput: no answer, a hash or cursor that is not 32 bytes, or too many messages.
    """
    message = parse(pb.StoreQueryResponse, data)
    answer = ResponseStatus(message.request_id, message.status_code, message.status_desc)
    if answer.status != OK:
        return answer, StorePage(())
    if len(message.messages) > MAX_PAGE_ENTRIES:
        raise InvalidInput(
            f"the Store answer has a page of {len(message.messages)} messages; at most "
            f"{MAX_PAGE_ENTRIES} are allowed"
        )
    entries = tuple(map(_entry, message.messages))
    # go-waku and js-waku leave an absent cursor out, others write it empty.
    cursor = _hash(message.pagination_cursor) if message.pagination_cursor else None
    return answer, StorePage(entries, cursor, answer.request_id)


def encode_peer_exchange_query(count: int) -> bytes:
    """Encode a request for the given number of node records."""
    return pb.PeerExchangeRpc(query=pb.PeerExchangeQuery(num_peers=count)).SerializeToString()


def decode_peer_exchange_answer(data: bytes) -> tuple[ResponseStatus, list[bytes]]:
    """Decode an answer of peer exchange, with its status and the unchecked node records.

    Nodes of versions before 2025 send no status. Answers without a status get the status 200.

    Raises:
        InvalidInput: no answer, or more records than a peer sends.
    """
    message = parse(pb.PeerExchangeRpc, data)
    if not message.HasField("response"):
        raise InvalidInput("the answer of peer exchange has no response")
    response = message.response
    status = response.status_code if response.HasField("status_code") else OK
    if len(response.peer_infos) > MAX_EXCHANGED_PEERS:
        raise InvalidInput(
            f"the peer exchange answer has {len(response.peer_infos)} peers, more than are read"
        )
    return ResponseStatus("", status, response.status_desc), [
        info.enr for info in response.peer_infos
    ]


def _entry(item: pb.WakuMessageKeyValue) -> StoreEntry:
    return StoreEntry(
        _hash(item.message_hash),
        from_proto(item.message) if item.HasField("message") else None,
        item.pubsub_topic if item.HasField("pubsub_topic") else None,
    )


def _hash(data: bytes) -> bytes:
    if len(data) != HASH_BYTES:
        raise InvalidInput(
            f"a hash or cursor in the Store message must have {HASH_BYTES} bytes (got {len(data)})"
        )
    return data


def encode_message(message: WakuMessage) -> bytes:
    """Encode a Waku message without other fields, as relay carries it."""
    return to_proto(message).SerializeToString()


def decode_message(data: bytes) -> WakuMessage:
    """Read an encoded Waku message.

    Raises:
        InvalidInput: the bytes are something else.
    """
    return from_proto(parse(pb.WakuMessage, data))


def to_proto(message: WakuMessage) -> pb.WakuMessage:
    """Convert a message to protobuf without empty optional fields, as js-waku and go-waku do."""
    return pb.WakuMessage(
        payload=message.payload,
        content_topic=message.content_topic,
        version=message.version or None,
        timestamp=message.timestamp or None,
        meta=message.meta or None,
        rate_limit_proof=message.proof or None,
        ephemeral=message.ephemeral or None,
    )


def from_proto(message: pb.WakuMessage) -> WakuMessage:
    """Convert a protobuf message to a Waku message. Every value that protobuf can carry is
    valid."""
    return WakuMessage(
        payload=message.payload,
        content_topic=message.content_topic,
        version=message.version if message.HasField("version") else None,
        timestamp=message.timestamp,
        meta=message.meta,
        ephemeral=message.ephemeral,
        proof=message.rate_limit_proof,
    )


def parse(kind: type[_M], data: bytes) -> _M:
    """Parse a protobuf message of the given type.

    Raises:
        InvalidInput: the bytes are no such message.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise InvalidInput(f"the bytes are not a {kind.DESCRIPTOR.name}: {error}") from error
