"""What was missed is asked of Stores until one has it: not all of them were there."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests import virtual_time
from tests.waku.node.wires import OPTIONS, Inbox, message, publish
from waku import StoreQuery
from waku.models import StorePage
from waku.node import EmbeddedNode
from waku.node.local_services import LocalServices
from waku.node.store_resume import StoreResume

pytestmark = pytest.mark.anyio

MINUTE_NS = 60 * 10**9
LOGGER = "waku.node.store"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> virtual_time.Backend:
    return virtual_time.backend(request.param)


class Site:
    """A node that was away for ten minutes, and Stores with messages of some minutes."""

    def __init__(self, node: EmbeddedNode, now: list[int]) -> None:
        assert node.store_resume is not None
        self.node = node
        self.resume: StoreResume = node.store_resume
        self._now = now

    @property
    def stored(self) -> list[bytes]:
        assert self.node.archive is not None
        page = self.node.archive.query(StoreQuery(page_size=100))
        return [entry.message.payload for entry in page.entries if entry.message is not None]

    def pass_minutes(self, minutes: int) -> None:
        self._now[0] += minutes * MINUTE_NS

    def ago(self, minutes: int) -> int:
        return self._now[0] - minutes * MINUTE_NS

    @asynccontextmanager
    async def store(self, *minutes: int) -> AsyncIterator["Counting"]:
        """A Store with messages of so many minutes ago."""
        async with EmbeddedNode(self.node.options) as peer:
            publish(peer, *(message(n, timestamp=self.ago(n)) for n in minutes))
            yield Counting(peer)


class Counting(LocalServices):
    """The services of a node, which count the queries."""

    def __init__(self, peer: EmbeddedNode) -> None:
        super().__init__(peer)
        self.peer = peer
        self.queries = 0

    async def query(self, query: StoreQuery) -> StorePage:
        self.queries += 1
        return await super().query(query)


@asynccontextmanager
async def back(minutes: int = 10) -> AsyncIterator[Site]:
    now = [1_000 * MINUTE_NS]
    async with EmbeddedNode(replace(OPTIONS, now_ns=lambda: now[0])) as node:
        site = Site(node, now)
        async with site.store(90) as old:  # reaches back beyond the hour of a first start
            await site.resume.fetch("old", old)
        site.resume.begin_gap()
        site.pass_minutes(minutes)
        yield site


@pytest.mark.parametrize("held", [(), (5,)], ids=["empty", "begins in the gap"])
async def test_a_store_that_was_not_there_ends_no_gap(held: tuple[int, ...]) -> None:
    async with back() as site, site.store(*held) as young, site.store(60, 8, 5) as old:
        await site.resume.fetch("young", young)
        assert site.stored == [b"message %d" % number for number in held]
        await site.resume.fetch("old", old)
        assert site.stored == [b"message 8", b"message 5"]


async def test_a_store_that_was_there_ends_the_gap() -> None:
    async with back() as site, site.store(60, 8) as first, site.store(60, 8, 5) as second:
        await site.resume.fetch("first", first)
        await site.resume.fetch("second", second)
        assert (site.stored, second.queries) == ([b"message 8"], 0)


async def test_a_peer_that_comes_again_and_again_is_asked_once_a_gap() -> None:
    async with back() as site, site.store(5) as young:
        await site.resume.fetch("young", young)
        asked = young.queries
        await site.resume.fetch("young", young)
        assert young.queries == asked
        site.resume.begin_gap()
        await site.resume.fetch("young", young)
        assert young.queries == 2 * asked, "a new gap; the old one is still open"


async def test_peers_without_end_are_not_asked_without_end() -> None:
    async with back() as site, site.store() as young:
        for number in range(100):
            await site.resume.fetch(str(number), young)
        asked = young.queries
        await site.resume.fetch("one more", young)
        assert young.queries == asked


async def test_a_store_that_fills_up_meanwhile_ends_the_gap() -> None:
    """It was away as well, and asks its own peers: a second look finds what it got."""
    async with back() as site, site.store(5) as late, site.store(60, 8) as other:

        async def query(query: StoreQuery) -> StorePage:
            page = await LocalServices.query(late, query)
            if query.end_time_ns is not None and late.queries == 0:
                late.queries = 1
                publish(late.peer, message(60, timestamp=site.ago(60)))
            return page

        late.query = query  # type: ignore[method-assign]
        await site.resume.fetch("late", late)
        await site.resume.fetch("other", other)
        assert other.queries == 0


async def test_a_store_whose_cursors_lead_in_circles_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with back() as site, site.store(5) as circling:

        async def query(query: StoreQuery) -> StorePage:
            circling.queries += 1
            page = await LocalServices.query(circling, replace(query, cursor=None))
            return replace(page, cursor=bytes([circling.queries % 2]) * 32)

        circling.query = query  # type: ignore[method-assign]
        await site.resume.fetch("circling", circling)
        assert circling.queries <= 10
        assert "stands still" in caplog.text
        assert site.stored == [b"message 5"]


async def test_what_no_store_has_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, LOGGER)
    async with back() as site, site.store() as young, site.store(60) as old:
        await site.resume.fetch("young", young)
        (line,) = caplog.messages
        assert line == (
            "messages since 1970-01-01T16:40:00Z may be missing: "
            "no Store that was asked reaches back so far"
        )
        await site.resume.fetch("old", old)
        assert len(caplog.messages) == 1


async def test_a_first_start_among_young_nodes_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, LOGGER)
    async with EmbeddedNode(OPTIONS) as node, EmbeddedNode(OPTIONS) as peer:
        assert node.store_resume is not None
        await node.store_resume.fetch("peer", peer.services)
    assert caplog.messages == []


async def test_what_was_published_before_the_first_contact_is_history_from_any_store() -> None:
    now = [1_000 * MINUTE_NS]
    async with EmbeddedNode(replace(OPTIONS, now_ns=lambda: now[0])) as node:
        site, inbox = Site(node, now), Inbox(node)
        async with site.store() as young:
            await site.resume.fetch("young", young)
        site.pass_minutes(10)
        async with site.store(60 + 15, 20, 5) as old:
            await site.resume.fetch("old", old)
        assert site.stored == [b"message 20", b"message 5"]
        assert inbox.payloads == [b"message 5"], "the node was there, and did not hear it"
