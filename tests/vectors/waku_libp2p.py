"""Messages of Waku's protocols over libp2p, recorded with go-waku, nwaku and js-waku. A file is a
list of `{name, source, input, expected}`; the name ends with the message's kind."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from waku import StoreQuery, message_hash
from waku.p2p import codec
from waku.p2p import waku_libp2p_pb2 as pb

from .case import first_difference
from .libp2p import listed

_Pairs = list[tuple[str, object, object]]


def waku_message(case: Any) -> str | None:
    """A message of a Waku protocol: every field as recorded. Our codec reads what it writes; peers
    differ in whether they write what is empty."""
    kind = getattr(pb, case["name"].rpartition(": ")[2])
    data = bytes.fromhex(case["input"])
    message = kind.FromString(data)
    pairs = [(field, value, case["expected"].get(field)) for field, value in _present(message)]
    pairs.append(("fields", sorted(name for name, _, _ in pairs), sorted(case["expected"])))
    pairs.extend(_WAKU_CODECS[case["name"].rpartition(": ")[2]](message, data))
    return first_difference(pairs)


def _present(message: Any) -> list[tuple[str, object]]:
    """The fields that stand in a message, in the notation of the recordings."""
    return [(field.name, _plain(value)) for field, value in message.ListFields()]


def _plain(value: Any) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "ListFields"):
        return dict(_present(value))
    if isinstance(value, str | int | bool):
        return value
    return [_plain(item) for item in value]


def _metadata(message: Any, data: bytes) -> _Pairs:
    read = codec.decode_metadata(data)
    both = {*message.shards, *message.shards_packed}
    again = codec.decode_metadata(codec.encode_metadata(read))
    return [("shards", read.shards, both), ("read again", again, read)]


def _light_push(message: Any, data: bytes) -> _Pairs:
    model = codec.from_proto(message.message)
    written = codec.encode_light_push(message.request_id, model, message.pubsub_topic)
    again = pb.LightpushRequest.FromString(written)
    return [
        (
            "read again",
            codec.from_proto(again.message),
            replace(model, version=model.version or None),
        ),
        ("request id", again.request_id, message.request_id),
        ("topic", again.pubsub_topic, message.pubsub_topic),
    ]


def _light_push_2(message: Any, data: bytes) -> _Pairs:
    if message.HasField("response"):
        answer = (message.request_id, message.response.is_success, message.response.info)
        return [("answer", codec.decode_light_push_2_answer(data), answer)]
    request = message.request
    model = codec.from_proto(request.message)
    written = codec.encode_light_push_2(message.request_id, model, request.pubsub_topic)
    return [("written", written, data)]


def _filter_request(message: Any, data: bytes) -> _Pairs:
    topic = message.pubsub_topic if message.HasField("pubsub_topic") else None
    written = codec.encode_filter_request(
        message.request_id, message.filter_subscribe_type, topic, message.content_topics
    )
    return [("written", written, data)]


def _answer(message: Any, data: bytes) -> _Pairs:
    answer = codec.decode_answer(data)
    return [
        ("answer", (answer.request_id, answer.status), (message.request_id, message.status_code))
    ]


def _push(message: Any, data: bytes) -> _Pairs:
    topic, read = codec.decode_push(data)
    return [
        ("topic", topic, message.pubsub_topic),
        ("payload", read.payload, message.waku_message.payload),
        ("timestamp", read.timestamp, message.waku_message.timestamp),
        ("version", read.version or 0, message.waku_message.version),
    ]


def _store_query(message: Any, data: bytes) -> _Pairs:
    given = {field.name for field, _ in message.ListFields()}
    query = StoreQuery(
        content_topics=tuple(message.content_topics),
        pubsub_topic=message.pubsub_topic if "pubsub_topic" in given else None,
        hashes=tuple(message.message_hashes),
        start_time_ns=message.time_start if "time_start" in given else None,
        end_time_ns=message.time_end if "time_end" in given else None,
        include_data=message.include_data,
        ascending=message.pagination_forward,
        page_size=message.pagination_limit if "pagination_limit" in given else None,
        cursor=message.pagination_cursor if "pagination_cursor" in given else None,
    )
    return [("written", codec.encode_store_query(message.request_id, query), data)]


def _store_answer(message: Any, data: bytes) -> _Pairs:
    answer, page = codec.decode_store_answer(data)
    hashes = [
        message_hash(entry.pubsub_topic, entry.message)
        for entry in page.entries
        if entry.message is not None and entry.pubsub_topic is not None
    ]
    found = [item.message_hash for item in message.messages if item.HasField("message")]
    return [
        ("status", answer.status, message.status_code),
        ("entries", len(page.entries), len(message.messages)),
        ("hashes", hashes, found),
        ("cursor", page.cursor or b"", message.pagination_cursor),
    ]


_WAKU_CODECS: dict[str, Callable[[Any, bytes], _Pairs]] = {
    "Metadata": _metadata,
    "LightpushRequest": _light_push,
    "LightpushResponse": _answer,
    "PushRPC": _light_push_2,
    "FilterSubscribeRequest": _filter_request,
    "FilterSubscribeResponse": _answer,
    "MessagePush": _push,
    "StoreQueryRequest": _store_query,
    "StoreQueryResponse": _store_answer,
}

CHECKS = {
    f"messages_{name}": listed(waku_message)
    for name in (
        "metadata",
        "lightpush_2",
        "lightpush_3",
        "filter_subscribe",
        "filter_push",
        "store",
    )
}
