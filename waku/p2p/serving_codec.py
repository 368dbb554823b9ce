"""Waku's protobuf messages as a service peer decodes requests and encodes answers.

The module `codec` has the messages as a client uses them. A decoder raises only `InvalidInput`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waku.libp2p.errors import InvalidInput
from waku.models import StorePage, StoreQuery, WakuMessage

from . import waku_libp2p_pb2 as pb
from .codec import FilterRequest, ResponseStatus, from_proto, parse, to_proto
from .protocols import MAX_CONTENT_TOPICS

if TYPE_CHECKING:
    from .codec import FilterKind

__all__ = [
    "FilterAsked",
    "PushAsked",
    "decode_filter_request",
    "decode_light_push",
    "decode_light_push_2",
    "decode_peer_exchange_query",
    "decode_store_query",
    "encode_answer",
    "encode_light_push_2_answer",
    "encode_peer_exchange_answer",
    "encode_push",
    "encode_store_answer",
]


@dataclass(frozen=True, slots=True)
class PushAsked:
    """Light push request that a peer sent. If the pubsub topic is empty, the service peer chooses
    the shard."""

    request_id: str
    pubsub_topic: str
    message: WakuMessage


@dataclass(frozen=True, slots=True)
class FilterAsked:
    """Filter request to subscribe, unsubscribe, or ask if the subscriber is known."""

    request_id: str
    kind: FilterKind
    pubsub_topic: str
    content_topics: tuple[str, ...]


def decode_light_push(data: bytes) -> PushAsked:
    """Decode a light push request of version 3.

    Raises:
        InvalidInput: no request, or none with a message.
    """
    request = parse(pb.LightpushRequest, data)
    if not request.HasField("message"):
        raise InvalidInput("a light push request has no message")
    return PushAsked(request.request_id, request.pubsub_topic, from_proto(request.message))


def decode_light_push_2(data: bytes) -> PushAsked:
    """Decode a light push request of version 2.

    Raises:
        InvalidInput: no request, or none with a message.
    """
    rpc = parse(pb.PushRPC, data)
    if not rpc.HasField("request") or not rpc.request.HasField("message"):
        raise InvalidInput("a light push request has no message")
    return PushAsked(rpc.request_id, rpc.request.pubsub_topic, from_proto(rpc.request.message))


def decode_filter_request(data: bytes) -> FilterAsked:
    """Decode a filter request of version 2.

    Raises:
        InvalidInput: no request, or of an unknown kind.
    """
    request = parse(pb.FilterSubscribeRequest, data)
    if request.filter_subscribe_type not in FilterRequest.values():
        raise InvalidInput(
            f"the filter request has the unknown kind {request.filter_subscribe_type}"
        )
    return FilterAsked(
        request.request_id,
        request.filter_subscribe_type,
        request.pubsub_topic,
        tuple(request.content_topics),
    )


def decode_store_query(data: bytes) -> tuple[str, StoreQuery]:
    """Decode a query of Store v3, and its request id.

    Raises:
        InvalidInput: no query, more than 100 content topics, a hash or cursor that is not 32 bytes.
    """
    request = parse(pb.StoreQueryRequest, data)
    topics = tuple(dict.fromkeys(request.content_topics))
    if len(topics) > MAX_CONTENT_TOPICS:  # each is one look into the archive
        raise InvalidInput(
            f"a Store query may name at most {MAX_CONTENT_TOPICS} content topics (got "
            f"{len(topics)})"
        )
    try:
        query = StoreQuery(
            content_topics=topics,
            pubsub_topic=request.pubsub_topic or None,
            hashes=tuple(dict.fromkeys(request.message_hashes)),
            # T16: absent and 0 are the same.
            start_time_ns=request.time_start or None,
            end_time_ns=request.time_end or None,
            include_data=request.include_data,
            ascending=request.pagination_forward,
            cursor=request.pagination_cursor or None,
            page_size=request.pagination_limit or None,
        )
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return request.request_id, query


def decode_peer_exchange_query(data: bytes) -> int:
    """Decode the number of node records that a peer asks for.

    Raises:
        InvalidInput: not a query.
    """
    rpc = parse(pb.PeerExchangeRpc, data)
    if not rpc.HasField("query"):
        raise InvalidInput("the request of peer exchange has no query")
    return rpc.query.num_peers


def encode_answer(answer: ResponseStatus) -> bytes:
    """Encode an answer of light push v3 or of filter, which have the same fields."""
    return pb.LightpushResponse(
        request_id=answer.request_id,
        status_code=answer.status,
        status_desc=answer.text,
        relay_peer_count=answer.relay_peer_count or None,
    ).SerializeToString()


def encode_light_push_2_answer(request_id: str, *, success: bool, text: str) -> bytes:
    """Encode a light push answer of version 2."""
    response = pb.PushResponse(is_success=success, info=text)
    return pb.PushRPC(request_id=request_id, response=response).SerializeToString()


def encode_push(pubsub_topic: str, message: WakuMessage) -> bytes:
    """Encode a message as a filter service pushes it."""
    return pb.MessagePush(
        waku_message=to_proto(message), pubsub_topic=pubsub_topic
    ).SerializeToString()


def encode_store_answer(answer: ResponseStatus, page: StorePage) -> bytes:
    """Encode a Store answer of version 3. The page is empty if the status is an error."""
    response = pb.StoreQueryResponse(
        request_id=answer.request_id,
        status_code=answer.status,
        status_desc=answer.text,
        pagination_cursor=page.cursor,
    )
    for entry in page.entries:
        response.messages.add(
            message_hash=entry.message_hash,
            message=None if entry.message is None else to_proto(entry.message),
            pubsub_topic=entry.pubsub_topic,
        )
    return response.SerializeToString()


def encode_peer_exchange_answer(answer: ResponseStatus, records: Iterable[bytes]) -> bytes:
    """Encode an answer of peer exchange, with its status and node records."""
    response = pb.PeerExchangeResponse(
        peer_infos=[pb.PeerInfo(enr=record) for record in records],
        status_code=answer.status,
        status_desc=answer.text,
    )
    return pb.PeerExchangeRpc(response=response).SerializeToString()
