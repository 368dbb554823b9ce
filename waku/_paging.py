"""Reading a Store to its end, page by page, over REST or libp2p."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from waku.errors import BadAnswer, CursorExpired, NodeUnreachable, PageLimitReached
from waku.models import StoreEntry, StorePage, StoreQuery

__all__ = ["IDLE_PAGES", "MAX_PAGES", "all_entries", "new_entries"]

MAX_PAGES = 1000
"""Default bound of `store_all`: 20 000 messages with the nodes' own page size."""
MAX_RESTARTS = 3
"""How often it starts again after a lost cursor."""
IDLE_PAGES = 10
"""In a row and without anything new, beyond those that a lost cursor made it read again."""
NODE_PAGE_SIZE = 20
"""Messages in a page where the query names no number."""
TIMEOUTS = 2
"""Timeouts in a row after which a page is not asked for again."""


async def all_entries(
    store: Callable[[StoreQuery], Awaitable[StorePage]],
    query: StoreQuery,
    *,
    max_pages: int,
    call: str,
    status: int | None = None,
) -> AsyncGenerator[StoreEntry, None]:
    """Yield the entries of all pages, each message once. Raises as `new_entries`."""
    pages = new_entries(store, query, max_pages=max_pages, call=call, status=status)
    async with aclosing(pages):
        async for entries in pages:
            for entry in entries:
                yield entry


async def new_entries(
    store: Callable[[StoreQuery], Awaitable[StorePage]],
    query: StoreQuery,
    *,
    max_pages: int,
    call: str,
    status: int | None = None,
) -> AsyncGenerator[list[StoreEntry], None]:
    """Yield the entries of each page that no page before had.

    A page is halved after a timeout, because a slow node needs longer for a large one.

    Raises:
        BadAnswer: the cursor came back to where it was, or the pages repeat themselves.
        PageLimitReached: `max_pages` pages and no end.
        CursorExpired: once too often.
        NodeUnreachable: no answer to a smaller page either.
        WakuError: as `store`.
    """
    seen: set[bytes] = set()
    cursors: set[bytes] = set()
    restarts = useful_pages = idle_pages = timeouts = 0
    page_query = query
    for _ in range(max_pages):
        try:
            page = await store(page_query)
        except CursorExpired:
            if page_query.cursor == query.cursor or restarts == MAX_RESTARTS:
                raise
            restarts += 1
            cursors.clear()
            page_query = replace(page_query, cursor=query.cursor)
            continue
        except NodeUnreachable as error:
            size = page_query.page_size or NODE_PAGE_SIZE
            timeouts += 1
            if not error.timed_out or size == 1 or timeouts == TIMEOUTS:
                raise
            page_query = replace(page_query, page_size=size // 2)
            continue
        timeouts = 0
        # One message may come twice in a page.
        new = {one.message_hash: one for one in page.entries if one.message_hash not in seen}
        seen.update(new)
        yield list(new.values())
        if page.cursor is None:
            return
        useful_pages += bool(new)
        idle_pages = 0 if new else idle_pages + 1
        detail = ""
        if page.cursor in cursors:
            detail = f"the cursor stands still at {page.cursor.hex()}"
        elif idle_pages > useful_pages + IDLE_PAGES:
            detail = f"the pages lead nowhere: {idle_pages} in a row with nothing new"
        if detail:
            raise BadAnswer(call, status=status, detail=detail)
        cursors.add(page.cursor)
        page_query = replace(page_query, cursor=page.cursor)
    raise PageLimitReached(call, detail=f"no end after {max_pages} pages")
