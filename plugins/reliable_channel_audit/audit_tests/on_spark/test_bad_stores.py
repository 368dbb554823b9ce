"""Stores that change while they are read, and Stores that page badly: all that is there once, or a
sentence that says which node did what; read as Spark reads, without Spark."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from time import time_ns
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from reliable_channel_audit.sources import store
from reliable_channel_audit.sources.store import (
    StoreReader,
    StoreStreamReader,
    StoreUnreadable,
    Wanted,
)
from tests.cli.processes import Node
from waku import WakuClient, WakuMessage

TOPIC = "/pipeline/1/bad/proto"
START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000
Query = dict[str, str]
Page = tuple[int, Any]
ALL = ReadAllAvailable()


def entry(number: int, **values: object) -> dict[str, object]:
    """A stored message, a second after the one before."""
    payload = b"%d" % number
    message = {
        "payload": b64encode(payload).decode(),
        "contentTopic": TOPIC,
        "timestamp": START_NS + number * SECOND_NS,
        **values,
    }
    digest = "0x" + sha256(payload).hexdigest()
    return {"messageHash": digest, "pubsubTopic": "/waku/2/rs/1/0", "message": message}


def page(*numbers: int, cursor: int | None = None) -> Page:
    return answered([entry(number) for number in numbers], cursor)


def answered(entries: list[dict[str, object]], cursor: int | None = None) -> Page:
    body: dict[str, object] = {"statusCode": 200, "statusDesc": "OK", "messages": entries}
    if cursor is not None:
        body["paginationCursor"] = "0x" + cursor.to_bytes(32, "big").hex()
    return 200, body


LOST: Page = (500, "archive error: INVALID_QUERY: cursor not found")
BROKEN: Page = (500, "disk on fire")


@contextmanager
def serving(answer: Callable[[Query], Page]) -> Iterator[str]:
    """A server of HTTP that answers queries to Store as it likes; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(asked.query).items()}
            status, body = (200, "v0") if asked.path == "/version" else answer(query)
            text = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def scripted(*pages: Page) -> Callable[[Query], Page]:
    """These pages one after the other, the last one again and again."""
    numbers = count()
    return lambda query: pages[min(next(numbers), len(pages) - 1)]


def numbers(wanted: Wanted) -> list[int]:
    """What a batch reads, in the order in which it comes."""
    reader = StoreReader(wanted)
    ranges = reader.partitions()
    return [
        int(row["payload"])
        for part in ranges
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def one_range(address: str) -> Wanted:
    return Wanted(node=address, start_ns=START_NS, end_ns=START_NS + 100 * SECOND_NS, partitions=1)


@pytest.mark.parametrize(
    "pages",
    [
        (page(0, 1, cursor=1), page(1, 2)),  # one comes again
        (page(0, 1, cursor=1), page(0, 1, cursor=2), page(2)),  # a whole page comes again
        (page(0, 1, cursor=1), page(cursor=2), page(2)),  # an empty one between
        (page(0, 1, cursor=1), BROKEN, page(2)),  # an error in the middle
        (page(0, 1, cursor=1), LOST, page(1, cursor=2), page(2)),  # retention took the cursor's
        (page(0, 0, 1, cursor=1), page(200, 2)),  # twice on a page; what was not asked for
    ],
)
def test_what_is_there_is_read_once(pages: tuple[Page, ...]) -> None:
    with serving(scripted(*pages)) as address:
        assert numbers(one_range(address)) == [0, 1, 2]


def test_what_was_not_asked_for_is_left_to_the_range_that_it_is_in() -> None:
    with serving(scripted(page(*range(50)))) as address:  # whatever range is asked for
        wanted = Wanted(node=address, start_ns=START_NS, end_ns=START_NS + 49 * SECOND_NS)
        assert len(wanted.split(START_NS, wanted.end_ns)) == 4
        assert numbers(wanted) == list(range(50))
        assert numbers(Wanted(("/another/1/topic/proto",), node=address)) == []


def test_a_message_without_a_timestamp_is_where_the_node_has_it() -> None:
    with serving(scripted(answered([entry(0), entry(1, timestamp=0), entry(200)]))) as address:
        assert numbers(one_range(address)) == [0, 1]


@pytest.mark.parametrize("first", [entry(1, payload="?"), entry(1, timestamp=1), entry(10**9)])
def test_a_stream_goes_on_behind_what_it_cannot_place(first: dict[str, object]) -> None:
    later = scripted(answered([first], cursor=1), answered([first, entry(7)]), page())
    with serving(later) as address:
        reader = StoreStreamReader(
            Wanted(node=address, start_ns=START_NS, partitions=1, batch_ms=9_000)
        )
        offset, found = streamed(reader, reader.initialOffset())
        assert START_NS < offset["next_ns"] <= time_ns()
        assert found == [7]


def test_what_cannot_be_read_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    broken: list[dict[str, object]] = [entry(1, payload="?"), {"messageHash": "0x00"}]
    with serving(scripted(answered([entry(0), *broken, entry(2)]))) as address:
        assert numbers(one_range(address)) == [0, 2]
    assert len(caplog.records) == len(broken)


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ((page(0, cursor=1), page(1, cursor=1)), "the cursor stands still"),
        ((page(0, cursor=1), page(1, cursor=2), page(2, cursor=1)), "the cursor stands still"),
        ((page(0, cursor=1), BROKEN), "answered 500: disk on fire"),
        ((*[page(0, cursor=1), LOST] * 4,), "cursor not found"),
        ((page(0, cursor=1), (200, "<html>")), r"answered 200.*<html>"),
        (((404, "no such page"),), "404"),
    ],
)
def test_a_store_that_pages_badly_is_named(pages: tuple[Page, ...], why: str) -> None:
    where = (
        rf"the Store of http://127\.0\.0\.1:\d+ cannot be read between {START_NS} and \d+ ns: .*"
    )
    with serving(scripted(*pages)) as address, pytest.raises(StoreUnreadable, match=where + why):
        numbers(one_range(address))


def test_pages_without_end_end() -> None:
    cursors = count(1)
    with serving(lambda query: page(0, 1, cursor=next(cursors))) as address:
        with pytest.raises(StoreUnreadable, match="the pages lead nowhere"):
            numbers(one_range(address))
    assert next(cursors) < 200


def test_a_node_that_is_not_there_is_named() -> None:
    with serving(scripted(page())) as address:
        pass
    with pytest.raises(StoreUnreadable, match=f"the Store of {address} cannot be read"):
        StoreReader(Wanted(node=address)).partitions()


@pytest.fixture
def node() -> Iterator[str]:
    with Node() as node:
        yield node.address


async def say(address: str, *stamps_ns: int) -> None:
    async with WakuClient(address) as client:
        for at_ns in stamps_ns:
            await client.relay_auto_publish(WakuMessage(b"%d" % at_ns, TOPIC, timestamp=at_ns))


def streamed(reader: StoreStreamReader, offset: dict[str, int]) -> tuple[dict[str, int], list[int]]:
    """The next batch of a stream: its end, and what was in it."""
    end = reader.latestOffset(offset, ALL)
    if end == offset:
        return end, []
    ranges = reader.partitions(offset, end)
    batches = [batch for part in ranges for batch in reader.read(part)]
    return end, sorted(int(row["payload"]) for batch in batches for row in batch.to_pylist())


def test_what_is_stored_late_is_waited_for(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = time_ns() - 60 * SECOND_NS
    monkeypatch.setattr(store, "time_ns", lambda: now_ns)
    first_ns, late_ns, last_ns = (now_ns + number * SECOND_NS for number in (-15, -12, -8))
    reader = StoreStreamReader(Wanted(node=node, lag_ms=10_000))
    offset = reader.initialOffset()

    assert streamed(reader, offset) == (offset, [])  # nothing is there: no batch
    anyio.run(say, node, last_ns, first_ns)
    offset, found = streamed(reader, offset)
    assert found == [first_ns]
    assert offset == {"next_ns": now_ns - 10 * SECOND_NS}

    now_ns += 4 * SECOND_NS  # `last_ns` is 12 s ago, and something from before it comes now
    early_ns = last_ns - SECOND_NS
    anyio.run(say, node, early_ns, late_ns)
    assert streamed(reader, offset)[1] == [early_ns, last_ns]  # and `late_ns` came too late


def test_batches_are_as_long_as_asked_for_and_pass_over_gaps(node: str) -> None:
    first_ns = time_ns() - 3_600 * SECOND_NS
    stamps_ns = [first_ns + second * SECOND_NS for second in (0, 1, 2, 3_000, 3_001)]
    anyio.run(say, node, *stamps_ns)
    reader = StoreStreamReader(Wanted(node=node, batch_ms=2_000))
    reader.prepareForTriggerAvailableNow()
    anyio.run(say, node, time_ns() + SECOND_NS)  # is not there now
    offset, found = reader.initialOffset(), []
    while (step := streamed(reader, offset))[1]:
        offset = step[0]
        found.append(step[1])
    assert found == [stamps_ns[:2], stamps_ns[2:3], stamps_ns[3:]]
