"""The transport of a community's SDS channel: the bot's own link, so that one reader reads the
node.

Around an SDS message there are the same layers as around a plain one: `ProtocolMessage`, segments,
the signed and encrypted envelope, a Waku message.
"""

import struct
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Final

import anyio

from reliable_channel.spi import (
    Batch,
    Envelope,
    Received,
    Source,
    StoreUnavailable,
    TransportError,
)
from waku import WakuMessage, message_hash
from waku.errors import BadRequest, WakuError

from ..chats import Community
from ..pipeline import Opener, Sealer
from ..sds import SdsArrival
from ..topics import Topic
from .link import NS_PER_MS, Fetched, Link

WAITING: Final = 10_000
"""Messages that wait for the channel; the oldest go, and come again from Store."""
_LENGTH: Final = struct.Struct(">I")


class CommunityCarrier:
    """The transport of one community's channel, as `reliable_channel` wants transports.

    Args:
        link: to the node; its owner subscribes, reads, and hands over what arrives.
        shard: the pubsub topic.
        community: whose channel it is.
        topics: those of the bot's topics that are the community's.
        sealer: signs and encrypts for the bot.
        now_ms: milliseconds since 1970.
        found: is given what Store had for the channel, of which the bot may not know yet.
    """

    def __init__(
        self,
        link: Link,
        shard: str,
        community: Community,
        topics: Sequence[Topic],
        sealer: Sealer,
        now_ms: Callable[[], int],
        found: Callable[[list[Fetched]], None],
    ) -> None:
        self._link = link
        self._shard = shard
        self._community = community
        self._content_topics = tuple({topic.content_topic: None for topic in topics})
        self._sealer = sealer
        self._now_ms = now_ms
        self._found = found
        self._opened: list[SdsArrival] = []
        self._opener = Opener(topics, on_sds=self._opened.append)
        self._arrived: deque[Received] = deque(maxlen=WAITING)
        self._gap = ""
        self._news = anyio.Event()

    async def open(self) -> None:
        """Nothing is to be done: the bot's link subscribes."""

    async def aclose(self) -> None:
        """Nothing is to be done."""

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Encrypt an SDS message; of several segments the last one gives the hash."""
        topic = self._community.universal_topic
        messages = self._sealer.seal_sds(payload, topic, timestamp_ns, ephemeral=ephemeral)
        digest = message_hash(self._shard, messages[-1])
        parts = b"".join(_LENGTH.pack(len(m.payload)) + m.payload for m in messages)
        return Envelope(parts, timestamp_ns, ephemeral, digest)

    async def publish(self, envelope: Envelope) -> None:
        """Publish an envelope, segment by segment."""
        with _translated():
            for part in _parts(envelope.payload):
                message = WakuMessage(
                    part,
                    self._community.universal_topic.content_topic,
                    version=self._sealer.waku_version,
                    timestamp=envelope.timestamp_ns,
                    ephemeral=envelope.ephemeral,
                )
                await self._link.publish(self._shard, message)

    def arrived(self, sds: SdsArrival, message_hash: bytes) -> None:
        """Hand the channel what arrived at the bot."""
        if len(self._arrived) == WAITING:
            self._gap = f"more than {WAITING} messages waited"
        self._arrived.append(_received(sds, message_hash, Source.LIVE))
        self._news.set()

    async def receive(self) -> Batch:
        """Wait for what arrives."""
        while not self._arrived:
            self._news = anyio.Event()
            await self._news.wait()
        batch = Batch(list(self._arrived), self._gap)
        self._arrived.clear()
        self._gap = ""
        return batch

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch from Store by hash."""
        with _translated(StoreUnavailable):
            return self._open(await self._link.by_hash(self._shard, hashes))

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch what Store has of the community."""
        pages = self._link.stored(self._shard, self._content_topics, start_ns, end_ns)
        with _translated(StoreUnavailable):
            async with aclosing(pages):
                async for page in pages:
                    yield self._open(page)

    def _open(self, fetched: list[Fetched]) -> list[Received]:
        self._found(fetched)
        received: list[Received] = []
        for one in fetched:
            self._opener.receive(one.message, self._now_ms())
            received += [
                _received(sds, one.message_hash, Source.STORE)
                for sds in self._opened
                if sds.channel_id == self._community.id
            ]
            self._opened.clear()
        return received


def _received(sds: SdsArrival, message_hash: bytes, source: Source) -> Received:
    return Received(sds.data, message_hash, sds.timestamp_ms * NS_PER_MS, source)


def _parts(packed: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size
        yield packed[at : at + length]
        at += length


@contextmanager
def _translated(kind: type[TransportError] = TransportError) -> Iterator[None]:
    """The REST client's errors as the transport's."""
    try:
        yield
    except WakuError as error:
        raise kind(str(error), retryable=not isinstance(error, BadRequest)) from error
