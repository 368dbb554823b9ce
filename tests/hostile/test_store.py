"""Attack: a Store that gives other messages than asked for, or a million, or pages for ever.

Messages under another's hash: `tests/transport/test_lying_store.py`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from itertools import count
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel import ChannelOptions, MessageReceived
from reliable_channel.diagnostics import TransportDegraded
from reliable_channel.engine.store_queries import MAX_AT_ONCE
from reliable_channel.sds.message import HistoryEntry
from reliable_channel.transport import MemoryNetwork, Received, StoreUnavailable
from reliable_channel.transport.waku_topic import MAX_PAGES, PAGE_SIZE
from tests.channel.world import EPOCH_NS, listening, make_channel
from tests.runtime.test_store_client import NO_HINT, Author, Library, ids, reader
from tests.transport.nodes import CONTENT_TOPIC, Line, line, over
from waku._paging import IDLE_PAGES
from waku.hashing import message_hash
from waku.models import WakuMessage

pytestmark = pytest.mark.anyio

Entry = dict[str, Any]


def entry(shard: str, number: int, *, topic: str = CONTENT_TOPIC, stamp: int = EPOCH_NS) -> Entry:
    """A stored message as Store gives it, under its true hash."""
    message = WakuMessage(b"%d" % number, topic, timestamp=stamp)
    fields = {**message.to_json(), "payload": b64encode(message.payload).decode()}
    return {"messageHash": "0x" + message_hash(shard, message).hex(), "message": fields}


def answer(entries: list[Entry], cursor: int | None) -> httpx.Response:
    body: Entry = {"statusCode": 200, "messages": entries}
    if cursor is not None:
        body["paginationCursor"] = "0x" + cursor.to_bytes(32).hex()
    return httpx.Response(200, json=body)


def same(shard: str, number: int) -> list[Entry]:
    return [entry(shard, 0)]


def others(shard: str, number: int) -> list[Entry]:
    return [entry(shard, number, topic="/another/1/topic/proto", stamp=EPOCH_NS + number)]


def false(shard: str, number: int) -> list[Entry]:
    return [{**entry(shard, number), "messageHash": "0x" + "11" * 32}]


@pytest.mark.parametrize("page", [same, others, false])
async def test_pages_for_ever_that_lead_nowhere_end(
    page: Callable[[str, int], list[Entry]],
) -> None:
    it, numbers = Line(), count(1)
    transport = over(it)
    shard = transport.settings.shard
    it.disturbance = lambda request: answer(page(shard, n := next(numbers)), n)
    with pytest.raises(StoreUnavailable, match="lead nowhere"):
        assert [page async for page in transport.by_time(1, 2 * EPOCH_NS)]
    assert len(it.requests) <= IDLE_PAGES + 3
    await transport.aclose()


@pytest.mark.parametrize("step_ns", [1, 0, -1])
async def test_pages_for_ever_that_lead_on_end_too(
    monkeypatch: pytest.MonkeyPatch, step_ns: int
) -> None:
    monkeypatch.setattr("reliable_channel.transport.waku_topic.MAX_PAGES", 50)
    it, numbers = Line(), count(1)
    transport = over(it)
    shard = transport.settings.shard
    it.disturbance = lambda request: answer(
        [entry(shard, n := next(numbers), stamp=EPOCH_NS + step_ns * n)], n
    )
    with pytest.raises(StoreUnavailable, match="no end after 50 pages"):
        assert [page async for page in transport.by_time(1, 2 * EPOCH_NS)]
    assert MAX_PAGES * PAGE_SIZE >= 2 * ChannelOptions().limits.log_entries
    await transport.aclose()


async def test_more_messages_than_asked_for_are_left_out_and_counted() -> None:
    it = Line()
    transport = over(it)
    shard = transport.settings.shard
    entries = [entry(shard, n, stamp=EPOCH_NS + n) for n in range(1_000)]
    it.disturbance = lambda request: answer(entries, None)
    (page,) = [page async for page in transport.by_time(1, 2 * EPOCH_NS)]
    assert len(page) == PAGE_SIZE
    assert transport.mislabelled == 1_000 - PAGE_SIZE
    wanted = bytes.fromhex(entries[3]["messageHash"][2:])
    entries[:] = [entries[3]] * 90
    assert len(await transport.by_hash([wanted])) == 1
    await transport.aclose()


async def test_a_million_messages_at_once_are_refused_unread() -> None:
    it = Line()
    transport = over(it)
    body = b'{"statusCode":200,"messages":[' + b"{}," * 1_000_000 + b"{}]}"
    it.disturbance = lambda request: httpx.Response(200, content=body)
    with pytest.raises(StoreUnavailable, match="JSON values"):
        await transport.by_hash([bytes(32)])
    await transport.aclose()


async def test_a_store_that_pages_for_ever_is_named_and_still_asked_by_hash() -> None:
    """What was said before bob came is found by its hint, as that much this Store does."""
    async with line() as it:
        numbers = count(1)
        shard = over(it).settings.shard

        def lie(request: httpx.Request) -> httpx.Response | None:
            if "/store/" not in request.url.path or "hashes" in request.url.params:
                return None
            return answer(same(shard, 0), next(numbers))

        async with make_channel(over(it), "alice") as alice:
            await alice.send(b"before")
            await anyio.sleep(0.5)
            liar = Line()
            liar.connect(it.node)
            liar.disturbance = lie
            async with listening(make_channel(over(liar), "bob")) as told:
                degraded = await told.first(TransportDegraded)
                assert (degraded.component, "lead nowhere" in degraded.reason) == ("store", True)
                await alice.send(b"honest")
                await told.until(lambda: len(told.contents) == 2)
                assert told.contents == [b"before", b"honest"]


async def test_references_to_nothing_do_not_hold_up_the_search_for_an_honest_message(
    virtual_time: None,
) -> None:
    """Mallory refers to thousands of messages that never were, with hints for each."""
    network = MemoryNetwork()
    alice, mallory = Author(network), Author(network, "mallory")
    library = Library(network)
    async with listening(reader(library, options=ChannelOptions())) as told:
        for n in range(10):
            nothing = [HistoryEntry(f"u{n}-{i}", NO_HINT, "x") for i in range(300)]
            mallory.publish(mallory.write(f"f{n}", *nothing))
        missed = alice.write("h0")
        alice.store(missed)
        hint = HistoryEntry("h0", missed.message_hash, "alice")
        alice.publish(alice.write("h1", hint))
        await told.until(lambda: len(ids(told.events)) == 2, within_s=30)
        assert ids(told.events) == ["h0", "h1"]
        assert library.hashes_asked.index(missed.message_hash) < MAX_AT_ONCE


class Slow(Library):
    """A Store whose searches by time take ten seconds."""

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        await anyio.sleep(10)
        async for page in super().by_time(start_ns, end_ns):
            yield page


async def test_references_to_nothing_do_not_have_store_read_all_the_time(
    virtual_time: None,
) -> None:
    """One a second for ten minutes; each would have a month of Store read."""
    network = MemoryNetwork()
    alice, mallory = Author(network), Author(network, "mallory")
    library = Slow(network)
    options = ChannelOptions(confirm_interval_ms=0)
    async with listening(reader(library, options=options)) as told:
        for n in range(600):
            mallory.publish(mallory.write(f"f{n}", HistoryEntry(f"u{n}", None, "x")))
            await anyio.sleep(1)
        assert len(library.times_asked) <= 600 / 50 + 1
        alice.store(alice.write("h0"))
        alice.publish(alice.write("h1", HistoryEntry("h0", None, "alice")))
        await told.until(lambda: {"h0", "h1"} <= set(ids(told.events)), within_s=120)
        received = {e.message_id: e.missing for e in told.of(MessageReceived)}
        assert received["h1"] == ()
