"""Reading a Store to its end, page by page, over REST or libp2p."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace

from waku.errors import BadAnswer, CursorExpired, PageLimitReached
from waku.models import StoreEntry, StorePage, StoreQuery

__all__ = ["IDLE_PAGES", "MAX_PAGES", "all_entries"]

MAX_PAGES = 1000
"""Default bound of `store_all`: 20 000 messages with the nodes' own page size."""
MAX_RESTARTS = 3
"""How often it starts again after a lost cursor."""
IDLE_PAGES = 100
"""In a row and without anything new, beyond those that a lost cursor made it read again."""


async def all_entries(
    store: Callable[[StoreQuery], Awaitable[StorePage]],
    query: StoreQuery,
    *,
    max_pages: int,
    call: str,
    status: int | None = None,
) -> AsyncGenerator[StoreEntry, None]:
    """Yield the entries of all pages, each message once.

    Raises:
        BadAnswer: the cursor came back to where it was, or the pages repeat themselves.
        PageLimitReached: `max_pages` pages and no end.
        CursorExpired: once too often.
        WakuError: as `store`.
    """
    seen: set[bytes] = set()
    cursors: set[bytes] = set()
    restarts = useful_pages = idle_pages = 0
    page_query = query
    for _ in range(max_pages):
        try:
            page = await store(page_query)
        except CursorExpired:
            if page_query == query or restarts == MAX_RESTARTS:
                raise
            restarts += 1
            cursors.clear()
            page_query = query
            continue
        known = len(seen)
        for entry in page.entries:
            if entry.message_hash not in seen:
                seen.add(entry.message_hash)
                yield entry
        if page.cursor is None:
            return
        useful_pages += len(seen) > known
        idle_pages = 0 if len(seen) > known else idle_pages + 1
        detail = ""
        if page.cursor in cursors:
            detail = f"the cursor stands still at {page.cursor.hex()}"
        elif idle_pages > useful_pages + IDLE_PAGES:
            detail = f"the pages lead nowhere: {idle_pages} in a row with nothing new"
        if detail:
            raise BadAnswer(call, status=status, detail=detail)
        cursors.add(page.cursor)
        page_query = replace(query, cursor=page.cursor)
    raise PageLimitReached(call, detail=f"no end after {max_pages} pages")
