"""Store resume (nwaku's name): after an absence, a node fetches missed messages from a peer's
Store."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final, Protocol

import anyio

from waku.models import StoreQuery
from waku.node.envelope import Envelope
from waku.node.options import NodeOptions
from waku.node.services import ServiceRefused, Services
from waku.node.store import MAX_PAGE_SIZE, Archive

__all__ = ["StoreResume"]

NS_PER_S: Final = 1_000_000_000
LOOK_BACK_NS: Final = 6 * 3600 * NS_PER_S
"""Longest time span of a query."""
FIRST_LOOK_BACK_NS: Final = 3600 * NS_PER_S
"""Longest time span of a query if the own Store is empty."""
OVERLAP_NS: Final = 30 * NS_PER_S
"""Margin for messages on their way when a connection breaks, and for clock differences."""
MAX_PAGES: Final = 100
SECOND_LOOK_S: Final = 10.0
"""Margin for a peer that was away as well and queried its own peers meanwhile."""

_log = logging.getLogger("waku.node.store")


class _Keeper(Protocol):
    @property
    def options(self) -> NodeOptions: ...

    def keep_missed(self, envelope: Envelope, *, deliver: bool) -> None: ...


class StoreResume:
    """Fetches once the messages that passed while the node had no peer.

    At the first contact messages go only to the node's Store, because for clients they are history.
    Later, clients receive the messages that are new to the Store.

    Args:
        node: keeps the messages.
        archive: its Store, whose newest message says how long the node was away.
    """

    def __init__(self, node: _Keeper, archive: Archive) -> None:
        now_ns = node.options.now_ns()
        newest_ns = archive.newest_ns(now_ns)  # any peer can send a message from the future
        self._node = node
        self._since_ns: int | None = now_ns - FIRST_LOOK_BACK_NS if newest_ns is None else newest_ns
        """Time from which messages may be missing; None if a Store was asked since then."""
        self._had_peers = False
        self._turn = anyio.Lock()

    def begin_gap(self) -> None:
        """Note that the last peer is gone."""
        if self._since_ns is None:
            self._since_ns = self._node.options.now_ns()

    async def fetch(self, services: Services) -> None:
        """Query a peer's Store, unless another one has answered. After a failure the next peer is
        queried."""
        async with self._turn:
            since_ns, self._since_ns = self._since_ns, None  # a new gap may begin meanwhile
            if since_ns is None:
                return
            earliest_ns = self._node.options.now_ns() - LOOK_BACK_NS
            start_ns, deliver = max(1, earliest_ns, since_ns - OVERLAP_NS), self._had_peers
            if not await self._take(services, start_ns, deliver=deliver):
                self._since_ns = since_ns
                return
            self._had_peers = True
        await anyio.sleep(SECOND_LOOK_S)
        await self._take(services, start_ns, deliver=deliver)

    async def _take(self, services: Services, start_ns: int, *, deliver: bool) -> bool:
        """Keep what a Store has from a time on; return False if it refuses."""
        query = StoreQuery(start_time_ns=start_ns, page_size=MAX_PAGE_SIZE)
        for _ in range(MAX_PAGES):
            try:
                page = await services.query(query)
            except ServiceRefused as refusal:
                _log.info("a Store does not give what was missed: %s", refusal)
                return False
            for entry in page.entries:
                if entry.message is not None and entry.pubsub_topic is not None:
                    # The hash is made anew, because the peer may name any.
                    envelope = Envelope.of(entry.pubsub_topic, entry.message)
                    self._node.keep_missed(envelope, deliver=deliver)
            if page.cursor is None:
                return True
            query = replace(query, cursor=page.cursor)
        _log.warning("a Store has more of what was missed than %d pages", MAX_PAGES)
        return True
