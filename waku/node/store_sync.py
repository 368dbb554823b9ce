"""Store synchronisation: now and then, one joined node and this one exchange what either lacks.

The side that begins compares the ids of a window of time (`reconciliation`), fetches what it lacks
by hash from the other's Store, and hands over what the other lacks. Messages that come this way
are archived and not delivered: to clients they are history, not news.

Source: WAKU-SYNC and nwaku's `--store-sync`. DIVERGES: messages of all pubsub topics are compared
together, and the wire is that of joined nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import anyio

from waku.models import StorePage, StoreQuery
from waku.node.envelope import Envelope, carried_size
from waku.node.mesh import Link, Mesh
from waku.node.metrics import Metrics
from waku.node.protocols import RECONCILIATION
from waku.node.reconciliation import Reconciliation, SyncId, Window
from waku.node.service_codec import refusal_of
from waku.node.services import ServiceRefused
from waku.node.store import MAX_PAGE_SIZE, ArchiveUnavailable, QueryTooLong
from waku.node.sync_codec import (
    MAX_GIFT,
    gift_json,
    gift_of,
    ranges_json,
    ranges_of,
    replies_json,
    replies_of,
)

if TYPE_CHECKING:
    from waku.node.options import NodeOptions
    from waku.node.store import Archive

__all__ = ["MAX_ROUND_BYTES", "MAX_WINDOW_IDS", "WINDOW_AGE_NS", "StoreSync", "SyncFailed"]

NS_PER_S: Final = 1_000_000_000
MAX_WINDOW_IDS: Final = 50_000
"""Ids that are compared; of a window with more, the newest."""
WINDOW_AGE_NS: Final = NS_PER_S
"""How long the ids of a window answer requests before the archive is read again."""
MAX_ROUND_BYTES: Final = 16 * 1024 * 1024
"""Messages of one round in each direction; the rest comes with a later round."""
GIFT_BYTES: Final = 256 * 1024
"""Messages that are handed over at once, beyond the first."""
CLOCK_SKEW_NS: Final = 20 * NS_PER_S
"""How far in the future a message may be stamped: nwaku's tolerance."""

_log = logging.getLogger("waku.node.sync")


class SyncFailed(Exception):
    """The other node did not answer a request, or refused it."""


class SyncHost(Protocol):
    """An `EmbeddedNode`, as its store synchronisation sees it."""

    @property
    def options(self) -> NodeOptions: ...

    @property
    def mesh(self) -> Mesh: ...

    @property
    def metrics(self) -> Metrics: ...

    def archive_only(self, envelope: Envelope, *, any_time: bool = False) -> None: ...


@runtime_checkable
class SyncLink(Protocol):
    """A link whose other end can be asked to compare and to keep messages."""

    async def ask_sync(self, fields: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the answer to a request, unread, or raise `SyncFailed`."""


class StoreSync:
    """Keeps an archive the same as those of joined nodes, for the time of a window.

    Args:
        node: the node around it.
        archive: its Store.
    """

    def __init__(self, node: SyncHost, archive: Archive) -> None:
        self._node = node
        self._archive = archive
        self._window: Window | None = None
        self._read_at_ns = 0
        self._turns: dict[str, int] = {}
        """The round in which each link had its turn."""
        self._rounds = 0
        self._wake = anyio.Event()

    # -- as the side that begins ------------------------------------------------------------------

    async def run(self) -> None:
        """Synchronise in the interval of the options; ends by cancellation alone."""
        while True:
            with anyio.move_on_after(self._node.options.store_sync_interval_s):
                await self._wake.wait()
            self._wake = anyio.Event()
            await self.next_round()

    def link_up(self, key: str) -> None:
        """Synchronise soon with a node that we dialled and that answers now."""
        self._turns.pop(key, None)
        self._wake.set()

    async def next_round(self) -> None:
        """Synchronise with the node whose last turn is longest ago; failures are logged."""
        links = {key: link for key, link in self._node.mesh.links.items() if _synchronises(link)}
        self._turns = {key: turn for key, turn in self._turns.items() if key in links}
        if not links:
            return
        key = min(links, key=lambda key: self._turns.get(key, 0))
        self._rounds += 1
        self._turns[key] = self._rounds
        try:
            await self.round_with(links[key])
        except (SyncFailed, ServiceRefused, ArchiveUnavailable, QueryTooLong, ValueError) as error:
            _log.info("cannot synchronise the store with %s: %s", key, error)

    async def round_with(self, link: Link) -> None:
        """Synchronise with the node at the other end of a link.

        Raises:
            SyncFailed: it did not answer a request, or refused it.
            ServiceRefused: its Store did.
            ArchiveUnavailable: our archive cannot be read.
            QueryTooLong: it takes too long to read.
            ValueError: an answer cannot be read.
        """
        if not isinstance(link, SyncLink):
            raise SyncFailed(f"{link.key} has no store synchronisation")
        options = self._node.options
        window = self._current_window()
        end_ns = options.now_ns() - _ns(options.store_sync_relay_jitter_s)
        start_ns = max(end_ns - _ns(options.store_sync_range_s), window.since_ns)
        comparison = Reconciliation(window, (start_ns, b""), (end_ns, b""))
        their_since_ns = start_ns
        while asked := comparison.next_request():
            answer = await _asked(link, ranges_json(asked))
            replies, their_since_ns = replies_of(answer)
            comparison.take(asked, replies)
        await self._fetch(link, comparison.missing)
        await self._give(link, [one for one in comparison.surplus if one[0] >= their_since_ns])

    async def _fetch(self, link: Link, missing: Sequence[SyncId]) -> None:
        """Archive what the other node's Store has of these messages."""
        room = MAX_ROUND_BYTES
        for part in _pages(missing):
            wanted = set(part)
            while wanted and room > 0:
                # Asked by what still lacks: a Store that sends none of it is asked no more.
                page = await link.services.query(_by_hash(sorted(wanted)))
                came = {(one.message.timestamp, one.hash): one for one in _envelopes(page)}
                if not (new := wanted & came.keys()):
                    break
                wanted -= new
                for sync_id in sorted(new):
                    room -= _size(came[sync_id])
                    self._keep(came[sync_id])

    async def _give(self, link: SyncLink, surplus: Sequence[SyncId]) -> None:
        """Hand over messages."""
        room = MAX_ROUND_BYTES
        for part in _pages(surplus):
            for gift in _gifts(_envelopes(self._archive.query(_by_hash(part)))):
                size_bytes = sum(map(_size, gift))
                if room < size_bytes:
                    return
                room -= size_bytes
                await _asked(link, gift_json(gift))
                self._node.metrics.synchronised["sent"] += len(gift)

    # -- as the side that answers -----------------------------------------------------------------

    def answer(self, fields: Mapping[str, Any]) -> dict[str, object]:
        """Return the answer to a request of another node.

        Raises:
            ValueError: not a request of ours.
            ArchiveUnavailable: our archive cannot be read.
        """
        match fields:
            case {"service": "reconcile"}:
                asked, window = ranges_of(fields), self._current_window()
                return replies_json((window.reply(one) for one in asked), window.since_ns)
            case {"service": "transfer"}:
                for envelope in gift_of(fields):
                    self._keep(envelope)
                return {"status": 200}
        raise ValueError("not a request of store synchronisation")

    # -- the archive ------------------------------------------------------------------------------

    def _current_window(self) -> Window:
        """The ids of our archive, read a second ago at most."""
        now_ns = self._node.options.now_ns()
        age_ns = now_ns - self._read_at_ns
        if self._window is None or not 0 <= age_ns < WINDOW_AGE_NS:
            since_ns = self._since_ns()
            ids = self._archive.newest_ids(since_ns, MAX_WINDOW_IDS)
            if len(ids) == MAX_WINDOW_IDS:
                # There may be more of the time of the oldest.
                since_ns = ids[0][0] + 1
            self._window = Window(ids, since_ns)
            self._read_at_ns = now_ns
        return self._window

    def _keep(self, envelope: Envelope) -> None:
        """Archive a message of another node's archive, if it is of our window."""
        latest_ns = self._node.options.now_ns() + CLOCK_SKEW_NS
        if self._since_ns() <= envelope.message.timestamp <= latest_ns:
            self._node.archive_only(envelope, any_time=True)
            self._node.metrics.synchronised["receive"] += 1

    def _since_ns(self) -> int:
        options = self._node.options
        back_s = options.store_sync_range_s + options.store_sync_relay_jitter_s
        if options.store_retention_s is not None:
            back_s = min(back_s, options.store_retention_s)  # else what is forgotten comes again
        return max(0, options.now_ns() - _ns(back_s))


async def _asked(link: SyncLink, fields: Mapping[str, object]) -> Mapping[str, Any]:
    """Raises SyncFailed: no answer, or the other node refused; ValueError: it is none."""
    answer = await link.ask_sync(fields)
    if (refusal := refusal_of(answer)) is not None:
        raise SyncFailed(f"refused with {refusal.status}: {refusal.description}")
    return answer


def _synchronises(link: Link) -> bool:
    info = link.info
    named = info is not None and RECONCILIATION in info.protocols
    return link.connected and named and isinstance(link, SyncLink)


def _pages(ids: Sequence[SyncId]) -> Iterator[Sequence[SyncId]]:
    return (ids[at : at + MAX_PAGE_SIZE] for at in range(0, len(ids), MAX_PAGE_SIZE))


def _by_hash(ids: Sequence[SyncId]) -> StoreQuery:
    return StoreQuery(hashes=tuple(digest for _, digest in ids), page_size=MAX_PAGE_SIZE)


def _envelopes(page: StorePage) -> Iterator[Envelope]:
    for entry in page.entries:
        if entry.message is not None and entry.pubsub_topic is not None:
            # The hash is made anew: another node may have written any.
            yield Envelope.of(entry.pubsub_topic, entry.message)


def _gifts(envelopes: Iterator[Envelope]) -> Iterator[list[Envelope]]:
    """Messages in parts of `GIFT_BYTES`, at least one each."""
    gift: list[Envelope] = []
    size_bytes = 0
    for envelope in envelopes:
        size_bytes += _size(envelope)
        if gift and (size_bytes > GIFT_BYTES or len(gift) == MAX_GIFT):
            yield gift
            gift, size_bytes = [], _size(envelope)
        gift.append(envelope)
    if gift:
        yield gift


def _size(envelope: Envelope) -> int:
    return carried_size(envelope.pubsub_topic, envelope.message)


def _ns(seconds: float) -> int:
    return int(seconds * NS_PER_S)
