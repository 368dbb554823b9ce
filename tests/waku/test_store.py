"""Store queries: how they are written for nwaku, and paging through both stores."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import TypeVar

import anyio
import httpx
import pytest

from tests.asgi import app_of
from tests.waku.nodes import FakeNode, answering, said
from waku import StoreQuery, WakuClient, WakuMessage
from waku._gate import MAX_REQUESTS
from waku._paging import IDLE_PAGES
from waku.errors import BadAnswer, CursorExpired, PageLimitReached
from waku.models import StoreEntry, StoreV1Cursor, StoreV1Query

pytestmark = pytest.mark.anyio

T = TypeVar("T")

VERSION = said(b"v0.37.1-beta-7d1c6a")
LOST = said(b"archive error: INVALID_QUERY: cursor not found", 500)
QUERY = StoreQuery(include_data=False)


def digest(number: int) -> bytes:
    return bytes([number] * 32)


def page(*numbers: int, cursor: int | None = None) -> httpx.Response:
    body = {
        "statusCode": 200,
        "statusDesc": "OK",
        "messages": [{"messageHash": "0x" + digest(number).hex()} for number in numbers],
    }
    if cursor is not None:
        body["paginationCursor"] = "0x" + digest(cursor).hex()
    return said(body)


async def collect(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]


async def test_all_parameters_for_nwaku() -> None:
    node = FakeNode([VERSION, page()])
    query = StoreQuery(
        content_topics=("/a+b/1/50%/proto", "/日本/1/x/proto"),
        pubsub_topic="/waku/2/rs/1/0",
        hashes=(digest(1), digest(2)),
        start_time_ns=5,
        end_time_ns=6,
        include_data=False,
        ascending=False,
        page_size=7,
        cursor=digest(3),
        peer_addr="/ip4/1.2.3.4/tcp/1/p2p/16U",
    )
    async with node.client() as client:
        await client.store(query)
    assert dict(node.requests[1].url.params) == {
        # nwaku decodes topics, hashes and cursors once more than the rest
        "contentTopics": "/a%2Bb/1/50%25/proto,/日本/1/x/proto",
        "pubsubTopic": "/waku/2/rs/1/0",
        "hashes": "0x" + "01" * 32 + ",0x" + "02" * 32,
        "startTime": "5",
        "endTime": "6",
        "includeData": "false",
        "ascending": "false",
        "pageSize": "7",
        "cursor": "0x" + "03" * 32,
        "peerAddr": "/ip4/1.2.3.4/tcp/1/p2p/16U",
    }


async def test_pages_follow_each_other() -> None:
    node = FakeNode([page(1, 2, cursor=2), page(3, 4, cursor=4), page(5)])
    async with node.client() as client:
        entries = await collect(client.store_all(QUERY))
    assert entries == [StoreEntry(digest(number)) for number in (1, 2, 3, 4, 5)]
    cursors = [request.url.params.get("cursor") for request in node.requests]
    assert cursors == [None, "0x" + "02" * 32, "0x" + "04" * 32]


async def test_many_hashes_go_in_several_queries_with_addresses_of_sensible_length() -> None:
    hashes = [digest(number) for number in range(120)]
    node = FakeNode([VERSION, page(0, 1), page(), page(119)])
    async with node.client() as client:
        entries = await client.store_by_hash(hashes, peer_addr="/ip4/1.2.3.4")
        assert await client.store_by_hash([]) == []
    assert entries == [StoreEntry(digest(number)) for number in (0, 1, 119)]
    asked = [request.url.params for request in node.requests[1:]]
    assert ",".join(params["hashes"] for params in asked) == ",".join(
        "0x" + digest.hex() for digest in hashes
    )
    assert {params["peerAddr"] for params in asked} == {"/ip4/1.2.3.4"}
    assert max(len(str(request.url)) for request in node.requests) < 4_096


async def test_a_lost_cursor_starts_again_and_nothing_comes_twice() -> None:
    node = FakeNode([page(1, 2, cursor=2), LOST, page(0, 1, 2, cursor=2), page(3)])
    async with node.client() as client:
        entries = await collect(client.store_all(QUERY))
    assert [entry.message_hash for entry in entries] == [digest(n) for n in (1, 2, 0, 3)]


async def test_a_cursor_may_be_lost_three_times() -> None:
    node = FakeNode([*[page(1, cursor=1), LOST] * 4])
    async with node.client() as client:
        with pytest.raises(CursorExpired):
            await collect(client.store_all(QUERY))
    assert len(node.requests) == 8


async def test_a_callers_own_lost_cursor_is_the_callers() -> None:
    node = FakeNode([VERSION, LOST])
    async with node.client() as client:
        with pytest.raises(CursorExpired):
            await collect(client.store_all(StoreQuery(cursor=digest(1))))


@pytest.mark.parametrize("answers", [[page(1, cursor=1)], [page(cursor=1), page(cursor=2)] * 3])
async def test_a_cursor_that_goes_nowhere_ends_the_query(answers: list[httpx.Response]) -> None:
    async with FakeNode(list(answers)).client() as client:
        with pytest.raises(BadAnswer, match="stands still"):
            await collect(client.store_all(QUERY))


@pytest.mark.parametrize("numbers", [(1, 2), ()])
async def test_pages_that_repeat_themselves_end_the_query(numbers: tuple[int, ...]) -> None:
    node = FakeNode([page(*numbers, cursor=n) for n in range(256)])
    async with node.client() as client:
        with pytest.raises(BadAnswer, match=r"lead nowhere: \d+ in a row with nothing new"):
            await collect(client.store_all(QUERY))
    assert len(node.requests) <= IDLE_PAGES + 4


async def test_the_number_of_pages_is_bounded() -> None:
    node = FakeNode([page(n, cursor=n) for n in range(9)])
    async with node.client() as client:
        with pytest.raises(PageLimitReached, match="after 5 pages"):
            await collect(client.store_all(QUERY, max_pages=5))
    assert len(node.requests) == 5


async def test_an_entry_that_cannot_be_read_is_left_out() -> None:
    good = {"messageHash": "01" * 32}
    bad = [
        {},
        {"messageHash": "0x" + "zz" * 32},
        {"messageHash": "AAAA"},
        {"messageHash": 5},
        {"messageHash": "01" * 32, "message": {}},
    ]
    node = answering({"statusCode": 200, "messages": [*bad, good]})
    async with node.client() as client:
        assert (await client.store(QUERY)).entries == (StoreEntry(digest(1)),)
    assert [rejected.item for rejected in node.rejected] == bad


# Store v1


def v1_page(*texts: bytes, cursor: bytes | None = None) -> httpx.Response:
    body: dict[str, object] = {
        "messages": [
            {"payload": base64.b64encode(text).decode(), "contentTopic": "t"} for text in texts
        ]
    }
    if cursor is not None:
        body["cursor"] = {
            "pubsubTopic": "/waku/2/rs/1/0",
            "senderTime": "5",
            "storeTime": 6,
            "digest": base64.b64encode(cursor).decode(),
        }
    return said(body)


ODD = bytes([0xFB, 0xFF] * 16)  # its base64 has both odd characters


@pytest.mark.parametrize(
    ("version", "digest_parameter"),
    [
        (VERSION, base64.b64encode(ODD).decode().replace("+", "%2B")),
        (said(b"404 page not found\n", 404), base64.urlsafe_b64encode(ODD).decode()),
    ],
    ids=["nwaku", "go-waku"],
)
async def test_legacy_pages_follow_each_other(
    version: httpx.Response, digest_parameter: str
) -> None:
    node = FakeNode([v1_page(b"a", b"b", cursor=ODD), version, v1_page(b"c")])
    query = StoreV1Query(
        content_topics=("/a/1/x/proto", "/b/1/x/proto"),
        start_time_ns=1,
        end_time_ns=9,
        ascending=False,
        page_size=2,
        peer_addr="/ip4/1.2.3.4/tcp/1",
    )
    async with node.client() as client:
        messages = await collect(client.store_v1_all(query))
    assert messages == [WakuMessage(text, "t", version=None) for text in (b"a", b"b", b"c")]
    first, _, second = (dict(request.url.params) for request in node.requests)
    assert first == {
        "contentTopics": "/a/1/x/proto,/b/1/x/proto",
        "startTime": "1",
        "endTime": "9",
        "ascending": "false",
        "pageSize": "2",
        "peerAddr": "/ip4/1.2.3.4/tcp/1",
    }
    assert second == first | {
        "pubsubTopic": "/waku/2/rs/1/0",
        "senderTime": "5",
        "storeTime": "6",
        "digest": digest_parameter,
    }


async def test_a_legacy_cursor_that_goes_nowhere_ends_the_query() -> None:
    node = FakeNode([v1_page(b"a", cursor=ODD), VERSION, v1_page(b"a", cursor=ODD)])
    async with node.client() as client:
        with pytest.raises(BadAnswer, match="stands still"):
            await collect(client.store_v1_all(StoreV1Query()))


async def test_the_number_of_legacy_pages_is_bounded() -> None:
    node = FakeNode([v1_page(b"a", cursor=ODD), VERSION, v1_page(b"a", cursor=bytes(32))])
    async with node.client() as client:
        with pytest.raises(PageLimitReached):
            await collect(client.store_v1_all(StoreV1Query(), max_pages=2))


def test_a_legacy_cursor_can_be_remembered() -> None:
    assert len({StoreV1Cursor(ODD, 5, 6), StoreV1Cursor(ODD, 5, 6)}) == 1


async def test_queries_of_both_stores_share_one_limit() -> None:
    begun: list[str] = []

    async def hang(request: httpx.Request) -> httpx.Response:
        begun.append(request.url.path)
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        WakuClient("http://slow", app=app_of(hang)) as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(MAX_REQUESTS):
            tasks.start_soon(client.store, QUERY)
            tasks.start_soon(client.store_v1, StoreV1Query())
        await anyio.wait_all_tasks_blocked()
        assert len(begun) == MAX_REQUESTS
        tasks.cancel_scope.cancel()
