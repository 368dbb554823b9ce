"""The client against go-waku v0.10.1's answers, as they were seen on a running node."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.waku.nodes import FakeNode, answering, said
from tests.waku.recordings import Call
from waku import StoreQuery, WakuClient, WakuError, WakuMessage, message_hash
from waku._request import Flavour
from waku.errors import (
    BadRequest,
    CursorExpired,
    EndpointMissing,
    MessageTooLarge,
    NodeFailure,
    NoPeers,
    NotSubscribed,
    RateLimited,
)
from waku.models import (
    FilterAnswer,
    NodeInfo,
    Peer,
    StoreEntry,
    StorePage,
    StoreV1Cursor,
    StoreV1Page,
    StoreV1Query,
)

pytestmark = pytest.mark.anyio

TOPIC = "/waku/2/rs/1/3"
CONTENT = "/app/1/x/proto"
MESSAGE = WakuMessage(b"payload", CONTENT, timestamp=1795231095249868689)
LARGE = WakuMessage(bytes(160_000), CONTENT)
HASH = message_hash(TOPIC, MESSAGE)
PEER = "16Uiu2HAmHzBkRq62mG95vsjKMuYQBezZCtjPXYWUoyVxMxi71aB3"

SUCCESSES: list[tuple[str, Call, object, object]] = [
    ("subscribe", lambda n: n.relay_subscribe([TOPIC]), True, None),
    ("unsubscribe", lambda n: n.relay_unsubscribe([TOPIC]), True, None),
    ("publish", lambda n: n.relay_publish(TOPIC, MESSAGE), True, None),
    ("publish by content topic", lambda n: n.relay_auto_publish(MESSAGE), b"", None),
    ("nothing new is null", lambda n: n.relay_messages(TOPIC), None, []),
    ("nothing new for a filter", lambda n: n.filter_messages(CONTENT, TOPIC), [], []),
    (
        "messages have ephemeral null and no version 0",
        lambda n: n.relay_auto_messages(CONTENT),
        [{"payload": "YQ==", "contentTopic": CONTENT, "timestamp": 5, "ephemeral": None}],
        [WakuMessage(b"a", CONTENT, None, 5)],
    ),
    ("light push", lambda n: n.lightpush_v1(MESSAGE, TOPIC), True, None),
    (
        "filter",
        lambda n: n.filter_subscribe([CONTENT], TOPIC, "r1"),
        {"requestId": "r1", "statusDesc": "OK"},
        FilterAnswer("r1"),
    ),
    ("version is a JSON string", lambda n: n.version(), "-", "-"),
    (
        "info",
        lambda n: n.info(),
        {"enrUri": "enr:x", "listenAddresses": ["/ip4/127.0.0.1/tcp/1"]},
        NodeInfo(("/ip4/127.0.0.1/tcp/1",), "enr:x"),
    ),
    (
        "peers",
        lambda n: n.peers(),
        [
            {
                "id": PEER,
                "multiaddrs": None,
                "protocols": ["/vac/waku/relay/2.0.0"],
                "connected": True,
                "pubsubTopics": [TOPIC],
            }
        ],
        [Peer(PEER, (), ("/vac/waku/relay/2.0.0",), True, pubsub_topics=(TOPIC,))],
    ),
    (
        "store v3 in snake case, time as text, base64",
        lambda n: n.store(StoreQuery(pubsub_topic=TOPIC, content_topics=(CONTENT,))),
        {
            "request_id": "q",
            "status_code": 200,
            "status_desc": "OK",
            "messages": [
                {
                    "message_hash": base64.b64encode(HASH).decode(),
                    "message": {
                        "payload": "cGF5bG9hZA==",
                        "contentTopic": CONTENT,
                        "timestamp": "1795231095249868689",
                        "version": 0,
                    },
                    "pubsub_topic": TOPIC,
                }
            ],
            "pagination_cursor": base64.b64encode(HASH).decode(),
        },
        StorePage((StoreEntry(HASH, MESSAGE, TOPIC),), HASH, "q"),
    ),
    (
        "store v3 without a hit has no messages key",
        lambda n: n.store(StoreQuery(pubsub_topic=TOPIC, content_topics=(CONTENT,))),
        {"request_id": "q", "status_code": 200, "status_desc": "OK"},
        StorePage((), None, "q"),
    ),
    (
        "store v1 without a hit is null",
        lambda n: n.store_v1(StoreV1Query()),
        {"messages": None},
        StoreV1Page(()),
    ),
    (
        "store v1",
        lambda n: n.store_v1(StoreV1Query()),
        {
            "messages": [{"payload": "YQ==", "contentTopic": CONTENT, "timestamp": 5}],
            "cursor": {
                "pubsubTopic": TOPIC,
                "senderTime": "5",
                "storeTime": "6",
                "digest": base64.b64encode(HASH).decode(),
            },
        },
        StoreV1Page((WakuMessage(b"a", CONTENT, None, 5),), StoreV1Cursor(HASH, 5, 6, TOPIC)),
    ),
]


@pytest.mark.parametrize(
    ("call", "body", "expected"),
    [case[1:] for case in SUCCESSES],
    ids=[case[0] for case in SUCCESSES],
)
async def test_successes(call: Call, body: object, expected: object) -> None:
    node = answering(body)
    async with node.client() as client:
        assert await call(client) == expected
    assert node.rejected == []


def filter_says(text: str) -> dict[str, str]:
    return {"requestId": "r", "statusDesc": text}


def store_says(text: str) -> dict[str, object]:
    return {"messages": None, "error_message": text}


def with_cursor(client: WakuClient) -> Any:
    return client.store(StoreQuery(cursor=HASH))


FAILURES: list[tuple[Call, int, object, type[WakuError]]] = [
    (lambda n: n.health(), 501, "Non RLN healthcheck is not implemented", EndpointMissing),
    (lambda n: n.lightpush(MESSAGE), 404, b"404 page not found\n", EndpointMissing),
    (lambda n: n.filter_update([CONTENT]), 405, b"", EndpointMissing),
    (lambda n: n.set_log_level("INFO"), 404, b"404 page not found\n", EndpointMissing),
    (lambda n: n.relay_unsubscribe([TOPIC]), 500, b"", NotSubscribed),
    (lambda n: n.relay_publish(TOPIC, MESSAGE), 500, b"", NotSubscribed),
    (lambda n: n.relay_publish(TOPIC, LARGE), 500, b"", MessageTooLarge),
    (lambda n: n.relay_publish(TOPIC, MESSAGE), 400, b"missing Payload field", BadRequest),
    (lambda n: n.relay_subscribe([TOPIC]), 400, b"", BadRequest),
    (
        lambda n: n.relay_messages(TOPIC),
        404,
        b"no subscription found for pubsubTopic",
        NotSubscribed,
    ),
    (
        lambda n: n.relay_auto_messages(CONTENT),
        404,
        b"no subscription found for content topic",
        NotSubscribed,
    ),
    (
        lambda n: n.relay_auto_subscribe(["bad"]),
        400,
        b"invalid content topic format : bad topic",
        BadRequest,
    ),
    (lambda n: n.lightpush_v1(MESSAGE), 503, b"missing Payload field", BadRequest),
    (lambda n: n.lightpush_v1(MESSAGE), 503, b"invalid content topic format : bad", BadRequest),
    (lambda n: n.lightpush_v1(MESSAGE), 503, b"no suitable remote peers", NoPeers),
    (lambda n: n.lightpush_v1(MESSAGE), 503, b"lightpush errorexceeds the rate limit", RateLimited),
    (
        lambda n: n.lightpush_v1(MESSAGE),
        503,
        b"lightpush errorCould not publish message: message size exceeds gossipsub max size",
        MessageTooLarge,
    ),
    (
        lambda n: n.filter_subscribe([CONTENT]),
        400,
        filter_says("subscription failed"),
        NodeFailure,
    ),
    (
        lambda n: n.filter_unsubscribe([CONTENT]),
        200,
        filter_says("can't unsubscribe from 16Uiu2HAm"),
        NotSubscribed,
    ),
    (
        lambda n: n.filter_unsubscribe_all(),
        503,
        filter_says("subscription not found"),
        NotSubscribed,
    ),
    (lambda n: n.filter_ping(), 404, filter_says("peer has no subscription"), NotSubscribed),
    (lambda n: n.filter_ping(), 500, filter_says("ping request failed"), NodeFailure),
    (lambda n: n.filter_ping(), 400, filter_says("bad request id"), BadRequest),
    (
        lambda n: n.filter_messages(CONTENT, TOPIC),
        404,
        b"not subscribed to pubsubTopic:/x contentTopic: /y",
        NotSubscribed,
    ),
    (lambda n: n.filter_messages("bad"), 400, b"bad content topic", BadRequest),
    (
        lambda n: n.store(StoreQuery()),
        500,
        store_says("protocols not supported: [/vac/waku/store-query/3.0.0]"),
        NoPeers,
    ),
    (lambda n: n.store(StoreQuery()), 500, store_says("no suitable peers found"), NoPeers),
    (lambda n: n.store(StoreQuery()), 500, store_says("stream reset"), NodeFailure),
    (
        lambda n: n.store(StoreQuery()),
        400,
        {"status_code": 400, "status_desc": "pubsubTopic and contentTopics are required"},
        BadRequest,
    ),
    (with_cursor, 500, store_says("400 - BAD_REQUEST: cursor not found"), CursorExpired),
    (
        lambda n: n.store(StoreQuery()),
        500,
        store_says("400 - BAD_REQUEST: something else"),
        BadRequest,
    ),
    (lambda n: n.store_v1(StoreV1Query()), 200, store_says("boom"), NodeFailure),
    (lambda n: n.add_peers(["bad"]), 500, b"", NodeFailure),
    (lambda n: n.add_peers(["bad"]), 400, b"", BadRequest),
]


@pytest.mark.parametrize(("call", "status", "body", "expected"), FAILURES)
async def test_failures(call: Call, status: int, body: object, expected: type[WakuError]) -> None:
    node = FakeNode([said(b"", 404), said(body, status)])
    async with node.client() as client:
        assert await client.flavour() is Flavour.GO_WAKU
        with pytest.raises(expected) as caught:
            await call(client)
    assert type(caught.value) is expected


VERSION_UNKNOWN = said(b"404 page not found\n", 404)
NO_HIT = {"request_id": "q", "status_code": 200, "status_desc": "OK"}


async def test_hashes_and_cursors_go_out_in_urlsafe_base64() -> None:
    digest = bytes([0xFB, 0xFF] * 16)  # its base64 has both odd characters
    node = FakeNode([VERSION_UNKNOWN, said(NO_HIT)])
    async with node.client() as client:
        await client.store(StoreQuery(hashes=(digest, HASH), cursor=digest))
        await client.store(StoreQuery(hashes=(digest,)))
    assert [request.url.path for request in node.requests] == [
        "/version",
        "/store/v3/messages",
        "/store/v3/messages",
    ]
    params = node.requests[1].url.params
    assert params["cursor"] == base64.urlsafe_b64encode(digest).decode()
    assert params["hashes"].split(",") == [
        base64.urlsafe_b64encode(value).decode() for value in (digest, HASH)
    ]


async def test_a_store_answer_tells_the_family_without_asking() -> None:
    node = FakeNode([said({**NO_HIT, "pagination_cursor": base64.b64encode(HASH).decode()})])
    async with node.client() as client:
        page = await client.store(StoreQuery())
        await client.store(StoreQuery(cursor=page.cursor))
        await client.store(StoreQuery(content_topics=("/a+b/1/50%/proto",)))
    assert "/version" not in [request.url.path for request in node.requests]
    assert node.requests[1].url.params["cursor"] == base64.urlsafe_b64encode(HASH).decode()
    assert node.requests[2].url.params["contentTopics"] == "/a+b/1/50%/proto"


async def test_peers_are_added_one_by_one_with_what_they_serve() -> None:
    node = FakeNode([VERSION_UNKNOWN, said(None)])
    async with node.client() as client:
        await client.add_peers(["/ip4/1.2.3.4/tcp/1", "/ip4/1.2.3.4/tcp/2"], shards=[0, 3])
    assert [request.content for request in node.requests[1:]] == [
        b'{"multiaddr": "/ip4/1.2.3.4/tcp/1", "shards": [0, 3], "protocols": []}',
        b'{"multiaddr": "/ip4/1.2.3.4/tcp/2", "shards": [0, 3], "protocols": []}',
    ]
