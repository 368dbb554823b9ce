"""Search for service peers in lists in the DNS, and by asking connected peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from waku.discovery import NodeRecord, Resolver, read_tree
from waku.errors import WakuError, WrongNetwork
from waku.libp2p import InvalidInput

from .events import ClientEvent, SearchFailed
from .protocols import PEER_EXCHANGE
from .service_peer import ServicePeer

__all__ = ["Search"]

FRESH_MS: Final = 30 * 60_000
"""Minimum time (ms) between two readings of a DNS list, because lists change once in months."""
FIRST_RETRY_MS: Final = 5_000
LONGEST_RETRY_MS: Final = 300_000
EXCHANGE_MS: Final = 300_000
"""Minimum time (ms) between two requests to the same peer for other peers."""


@dataclass(slots=True)
class _Tree:
    url: str
    due_ms: int = 0
    failures: int = 0


class Finds(Protocol):
    """Receiver of the found peers."""

    def add_record(self, record: NodeRecord) -> bool:
        """Note the node record of a found peer. Return True if the peer is new.

        Raises:
            WrongNetwork: it is of another network.
            InvalidInput: it is of no use.
        """


class Search:
    """Search for peers, which are added to the peer book. The search asks each peer at most every
    five minutes."""

    def __init__(
        self,
        book: Finds,
        trees: Sequence[str],
        resolver: Resolver,
        on_event: Callable[[ClientEvent], None],
    ) -> None:
        self._book = book
        self._trees = [_Tree(url) for url in trees]
        self._resolver = resolver
        self._on_event = on_event
        self._asked: dict[ServicePeer, int] = {}
        self.failure: WakuError | None = None
        """Why the last list gave nothing."""

    @property
    def next_ms(self) -> int | None:
        """Time at which a DNS list may be read again (ms), or None without lists."""
        return min((tree.due_ms for tree in self._trees), default=None)

    async def look(self, peers: Iterable[ServicePeer], now_ms: int) -> bool:
        """Search for peers if it is time. Return True if the search found a new peer."""
        found = False
        for tree in self._trees:
            if tree.due_ms <= now_ms:
                found |= await self._read(tree, now_ms)
        self._asked = {p: ms for p, ms in self._asked.items() if p.link.failure is None}
        for peer in list(peers):
            is_due = now_ms - self._asked.get(peer, -EXCHANGE_MS) >= EXCHANGE_MS
            if not found and is_due and PEER_EXCHANGE in peer.info.protocols:
                self._asked[peer] = now_ms
                found |= await self._exchange(peer)
        return found

    async def _read(self, tree: _Tree, now_ms: int) -> bool:
        try:
            walk = await read_tree(tree.url, self._resolver)
            found, tree.due_ms, tree.failures = self._take(walk.records), now_ms + FRESH_MS, 0
            self.failure = None
        except WakuError as error:
            retry_ms = min(FIRST_RETRY_MS << min(tree.failures, 16), LONGEST_RETRY_MS)
            tree.due_ms, tree.failures = now_ms + retry_ms, tree.failures + 1
            self.failure = error
            self._on_event(SearchFailed(tree.url, str(error)))
            return False
        return found

    async def _exchange(self, peer: ServicePeer) -> bool:
        records = []
        try:
            for data in await peer.peers():
                with suppress(InvalidInput):  # the others may be good
                    records.append(NodeRecord.decode(data))
            return self._take(records)
        except WakuError as error:
            self._on_event(SearchFailed(f"peer {peer.link.peer_id}", str(error)))
            return False

    def _take(self, records: Iterable[NodeRecord]) -> bool:
        """Add the nodes that fit. Return whether one is new.

        Raises:
            WrongNetwork: there are nodes, and all are of another network.
        """
        new, fitting, total = False, 0, 0
        reasons: Counter[str] = Counter()
        for record in records:
            total += 1
            try:
                new |= self._book.add_record(record)
                fitting += 1
            except WrongNetwork as error:
                reasons[error.detail.partition(" ")[2].partition(" ")[2]] += 1
            except InvalidInput as error:
                reasons[str(error)] += 1
        if total and not fitting:
            first, count = reasons.most_common(1)[0]
            raise WrongNetwork("discover", detail=f"no node of {total} fits: {count} {first}")
        return new
