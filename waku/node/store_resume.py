"""Store resume (nwaku's name), by which a node fetches messages missed in an absence from a peer's
Store."""

from __future__ import annotations

import logging
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final, Protocol

import anyio

from waku._paging import new_entries
from waku.errors import WakuError
from waku.models import StoreEntry, StoreQuery
from waku.node.envelope import Envelope
from waku.node.options import NodeOptions
from waku.node.services import ServiceRefused, Services
from waku.node.store import MAX_PAGE_SIZE, Archive

__all__ = ["StoreResume"]

NS_PER_S: Final = 1_000_000_000
LOOK_BACK_NS: Final = 6 * 3600 * NS_PER_S
"""Longest time span of a query (ns)."""
FIRST_LOOK_BACK_NS: Final = 3600 * NS_PER_S
"""Longest time span of a query (ns) if the node's own Store is empty."""
OVERLAP_NS: Final = 30 * NS_PER_S
"""Extra time span (ns) for messages on their way at the disconnection, and for clock
differences."""
MAX_PAGES: Final = 100
MAX_ASKED: Final = 16
"""Maximum number of peers that are queried about one absence."""
SECOND_LOOK_S: Final = 10.0
"""Extra time (s) for a peer that was away as well and queries its own peers."""

_log = logging.getLogger("waku.node.store")


class _Keeper(Protocol):
    @property
    def options(self) -> NodeOptions: ...

    def keep_missed(self, envelope: Envelope, *, deliver: bool) -> None: ...


class StoreResume:
    """Fetcher of messages that passed while the node had no peer.

    A Store without messages from before the absence may have been away as well. The node keeps the
    messages of such a Store, and also queries the next peer.

    Messages from before the node's first contact are not given to clients, only to the node's
    Store. Clients receive later messages that are new to the node's Store.

    Args:
        node: keeps the messages.
        archive: its Store, whose newest message says how long the node was away.
    """

    def __init__(self, node: _Keeper, archive: Archive) -> None:
        now_ns = node.options.now_ns()
        newest_ns = archive.newest_ns(now_ns)  # any peer can send a message from the future
        self._node = node
        self._since_ns: int | None = now_ns - FIRST_LOOK_BACK_NS if newest_ns is None else newest_ns
        """Time from which messages may be missing; None if a Store had them."""
        self._is_told = newest_ns is None
        """True if the log has the gap; a node that never was there misses nothing."""
        self._joined_ns: int | None = None
        """Time of the first contact with a Store."""
        self._asked: set[str] = set()
        """Peers that were asked about this gap."""
        self._asking = 0
        self._turn = anyio.Lock()

    def begin_gap(self) -> None:
        """Note that the last peer disconnected."""
        self._asked.clear()
        self._is_told = False
        if self._since_ns is None:
            self._since_ns = self._node.options.now_ns()

    async def fetch(self, peer_id: str, services: Services) -> None:
        """Query a peer's Store, unless the Store of another peer has already filled the absence."""
        self._asking += 1
        try:
            if (since_ns := await self._look(peer_id, services)) is not None:
                await anyio.sleep(SECOND_LOOK_S)
                await self._take(services, since_ns)
                if self._since_ns == since_ns and await self._reaches_back(services, since_ns):
                    self._since_ns = None
        finally:
            self._asking -= 1
        if self._since_ns is not None and not self._asking and not self._is_told:
            self._is_told = True
            since = datetime.fromtimestamp(self._since_ns // NS_PER_S, UTC)
            _log.warning(
                "messages since %s may be missing: no Store that was asked reaches back so far",
                since.isoformat().replace("+00:00", "Z"),
            )

    async def _look(self, peer_id: str, services: Services) -> int | None:
        """Keep the messages of a Store. Return the start of the gap, None if it was not queried."""
        async with self._turn:
            since_ns = self._since_ns
            if since_ns is None or peer_id in self._asked or len(self._asked) >= MAX_ASKED:
                return None
            self._asked.add(peer_id)
            if self._joined_ns is None:
                self._joined_ns = self._node.options.now_ns()
            self._since_ns = None  # a new gap may begin meanwhile
            if not await self._take(services, since_ns):
                self._asked.discard(peer_id)
                self._since_ns = since_ns
                return None
            if not await self._reaches_back(services, since_ns):
                self._since_ns = since_ns
            return since_ns

    def _start_ns(self, since_ns: int) -> int:
        return max(1, self._node.options.now_ns() - LOOK_BACK_NS, since_ns - OVERLAP_NS)

    async def _reaches_back(self, services: Services, since_ns: int) -> bool:
        """Return True if a Store has a message from before the gap, so that it was there."""
        end_ns = self._start_ns(since_ns)
        query = StoreQuery(end_time_ns=end_ns, page_size=1, ascending=False, include_data=False)
        try:
            return bool((await services.query(query)).entries)
        except ServiceRefused:
            return False

    async def _take(self, services: Services, since_ns: int) -> bool:
        """Keep what a Store has from a time on; return False if it refuses."""
        query = StoreQuery(start_time_ns=self._start_ns(since_ns), page_size=MAX_PAGE_SIZE)
        pages = new_entries(services.query, query, max_pages=MAX_PAGES, call="store")
        try:
            async with aclosing(pages):
                async for entries in pages:
                    for entry in entries:
                        self._keep(entry)
        except ServiceRefused as refusal:
            _log.info("a Store does not give what was missed: %s", refusal)
            return False
        except WakuError as error:
            _log.warning("a Store does not give all that was missed: %s", error)
        return True

    def _keep(self, entry: StoreEntry) -> None:
        if entry.message is not None and entry.pubsub_topic is not None:
            # The hash is made anew, because the peer may name any.
            envelope = Envelope.of(entry.pubsub_topic, entry.message)
            joined_ns = self._joined_ns
            is_news = joined_ns is not None and entry.message.timestamp >= joined_ns
            self._node.keep_missed(envelope, deliver=is_news)
