"""Messages, hashes and Store answers of one content topic on Waku, over REST or libp2p."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

from waku._paging import new_entries
from waku.errors import (
    EndpointMissing,
    LocalError,
    NotFound,
    NotSubscribed,
    PageLimitReached,
    WakuError,
)
from waku.hashing import message_hash
from waku.models import StoreEntry, StorePage, StoreQuery, WakuMessage

from .base import BaseTransport, Envelope, Received, Source, StoreUnavailable, TransportError
from .settings import WakuSettings

FORGOTTEN: Final = (NotSubscribed, NotFound, EndpointMissing)
"""Errors that show a lost subscription, or a node that restarted with other options."""
PAGE_SIZE: Final = 100
MAX_PAGES: Final = 20_000
"""Maximum number of pages of one query, for two million messages or twice the default log."""
_DENIED: Final = (401, 403, 407)
"""The answer of a proxy in front of the node; its operator will correct the token."""


class NotServed(TransportError):
    """The node answers, but does not serve the APIs that a transport needs. A node that is starting
    serves the APIs later."""


class WakuTopic:
    """Content topic and shard of a channel."""

    def __init__(self, settings: WakuSettings) -> None:
        self.shard: Final = settings.shard
        self.mislabelled = 0
        """Messages that Store gave under a hash that is not theirs, twice, or unasked."""
        self._content_topic = settings.content_topic
        self._store_peer = settings.store_peer
        self._page_size = PAGE_SIZE
        """Messages of the first page of the next query: fewer where Store is slow."""

    def envelope(self, payload: bytes, timestamp_ns: int, ephemeral: bool, meta: bytes) -> Envelope:
        """Make an envelope for a Waku message of this content topic."""
        message = self._message(payload, timestamp_ns, ephemeral, meta)
        digest = message_hash(self.shard, message)
        return Envelope(payload, timestamp_ns, ephemeral, digest, meta)

    def message(self, envelope: Envelope) -> WakuMessage:
        """Return the Waku message of an envelope."""
        return self._message(
            envelope.payload, envelope.timestamp_ns, envelope.ephemeral, envelope.meta
        )

    def received(self, message: WakuMessage, digest: bytes, source: Source) -> Received:
        """Return a Waku message in the form that the channel receives."""
        return Received(message.payload, digest, message.timestamp, source, message.meta)

    def is_ours(self, message: WakuMessage) -> bool:
        """Return True if a message belongs to this content topic."""
        return message.content_topic == self._content_topic

    def stored(self, entries: Sequence[StoreEntry], wanted: set[bytes] | None) -> list[Received]:
        """Return the requested messages of a Store's answer that have the right hash.

        The method computes each hash again. If a Store returned a message under a wrong hash, the
        true message would later look like a copy.
        """
        found: dict[bytes, Received] = {}
        limit = PAGE_SIZE + len(wanted or ())  # room for the truth beside some lies
        self.mislabelled += max(0, len(entries) - limit)
        for entry in entries[:limit]:
            if entry.message is None:
                continue
            digest = message_hash(self.shard, entry.message)
            asked = digest in wanted if wanted is not None else self.is_ours(entry.message)
            if asked and digest == entry.message_hash and digest not in found:
                found[digest] = self.received(entry.message, digest, Source.STORE)
            else:
                self.mislabelled += 1
        return list(found.values())

    async def by_time(
        self, store: Callable[[StoreQuery], Awaitable[StorePage]], start_ns: int, end_ns: int
    ) -> AsyncGenerator[list[Received], None]:
        """Fetch stored messages by content topic and time, page by page.

        Raises:
            StoreUnavailable: no Store answers, or its pages have no end.
        """
        found: dict[bytes, Received] = {}

        async def checked(query: StoreQuery) -> StorePage:
            self._page_size = query.page_size or PAGE_SIZE
            page = await store(query)
            found.clear()
            found.update((one.message_hash, one) for one in self.stored(page.entries, None))
            true = tuple(entry for entry in page.entries if entry.message_hash in found)
            return StorePage(true, page.cursor if page.entries else None)

        query = StoreQuery(
            content_topics=(self._content_topic,),
            pubsub_topic=self.shard,
            start_time_ns=start_ns,
            end_time_ns=end_ns,
            page_size=self._page_size,
            peer_addr=self._store_peer,
        )
        with translated(StoreUnavailable):
            pages = new_entries(checked, query, max_pages=MAX_PAGES, call="store")
            async with aclosing(pages):
                async for entries in pages:
                    yield [found[entry.message_hash] for entry in entries]
        self._page_size = min(2 * self._page_size, PAGE_SIZE)

    def _message(
        self, payload: bytes, timestamp_ns: int, ephemeral: bool, meta: bytes
    ) -> WakuMessage:
        return WakuMessage(
            payload,
            self._content_topic,
            timestamp=timestamp_ns,
            meta=meta,
            ephemeral=ephemeral,
        )


class OnTopic(BaseTransport, ABC):
    """Common part of the transports of a content topic, for envelopes and Store."""

    def __init__(self, settings: WakuSettings) -> None:
        self._topic = WakuTopic(settings)

    @property
    def mislabelled(self) -> int:
        """Number of messages from Store that had a wrong hash, came twice, or were not
        requested."""
        return self._topic.mislabelled

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Make an envelope for a Waku message of this content topic."""
        return self._topic.envelope(payload, timestamp_ns, ephemeral, meta)

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch stored messages by their Waku message hashes.

        Raises:
            StoreUnavailable: no Store answers.
        """
        with translated(StoreUnavailable):
            entries = await self._store_by_hash(hashes)
        return self._topic.stored(entries, set(hashes))

    def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch stored messages by content topic and time, page by page.

        Raises:
            StoreUnavailable: no Store answers, or its pages have no end.
        """
        return self._topic.by_time(self._store, start_ns, end_ns)

    @abstractmethod
    async def _store(self, query: StoreQuery) -> StorePage: ...

    @abstractmethod
    async def _store_by_hash(self, hashes: Sequence[bytes]) -> Sequence[StoreEntry]: ...


class translated:
    """Convert the errors of a Waku client into errors of the transport."""

    def __init__(self, error: type[TransportError] = TransportError) -> None:
        self._error = error

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, raised: BaseException | None, traceback: object) -> None:
        if isinstance(raised, WakuError):
            # Subscriptions come back by themselves, and another Store may come to an end; a bad
            # request stays one.
            passing = isinstance(raised, (*FORGOTTEN, PageLimitReached))
            passing |= raised.status in _DENIED
            lasting = isinstance(raised, LocalError) and not passing
            # A Store that does not know a kind of query is no better at the next one.
            lasting |= isinstance(raised, EndpointMissing) and self._error is StoreUnavailable
            retryable = raised.retryable or not lasting
            raise self._error(str(raised), retryable=retryable) from raised
