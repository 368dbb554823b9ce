"""SDS channels of a bot, one for each community. The bot publishes through the SDS channels, which
find missing messages on both sides.

As in status-go, the bot receives each message on arrival, without waiting for missing earlier
messages. The SDS channels do not deliver messages to the bot, and only report messages to fetch.
"""

import logging
import struct
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import anyio

from reliable_channel import (
    ChannelOptions,
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    ReliableChannel,
    SendFailed,
)
from reliable_channel.diagnostics import TransportDegraded
from reliable_channel.events import StateDegraded
from reliable_channel.spi import (
    BaseTransport,
    Batch,
    Envelope,
    Source,
    StateStore,
    StateUnavailable,
    StoreUnavailable,
    TransportError,
)
from reliable_channel.spi import (
    Received as ReceivedContent,
)
from waku import WakuMessage, message_hash
from waku.errors import BadRequest, WakuError

from ..wire.chats import Community
from ..wire.keys import PrivateKey, PublicKey
from ..wire.opening import Opener, read_again
from ..wire.outcomes import Received
from ..wire.recent import Recent
from ..wire.sds import STATUS_SDS, SdsArrival
from ..wire.sealing import Sealer
from ..wire.topics import Topic
from .link import NS_PER_MS, Fetched, Link
from .memory import OutboxEntry
from .options import BotOptions
from .session import Session

MAX_SDS_BYTES: Final = 1024 * 1024
"""Maximum message size of nim-sds. The bot sends a longer message without SDS, as status-go does.
"""
LOG_ENTRIES: Final = 10_000
"""Number of messages of each community that are read again at the start."""
HEARD: Final = 50_000
"""Maximum number of SDS message ids that the bot remembers in a run."""


class Communities:
    """SDS channels of one run."""

    def __init__(
        self,
        session: Session,
        link: Link,
        options: BotOptions,
        key: PrivateKey,
        open_store: Callable[[Community], StateStore],
    ) -> None:
        self._session = session
        self._link = link
        self._found: list[Fetched] = []
        self._kept: list[Received] = []
        self._heard: Recent[str, None] = Recent(HEARD)
        self._channels: dict[str, ReliableChannel] = {}
        self._carriers: dict[str, CommunityCarrier] = {}
        if options.reliability != "sds":
            return
        for community in session.rooms.communities:
            carrier = CommunityCarrier(
                link,
                str(options.shard),
                community,
                [topic for topic in session.rooms.topics if topic.id.startswith(community.id)],
                Sealer(key, waku_version=options.waku_version),
                session.now_ms,
                self._note,
            )
            self._carriers[community.id] = carrier
            self._channels[community.id] = ReliableChannel(
                channel_id=community.id,
                sender_id=key.public_key.hex,
                transport=carrier,
                state=open_store(community),
                journal=_journal(options, community, key.public_key),
                now_ns=lambda: session.now_ms() * NS_PER_MS,
                options=ChannelOptions(wire_profile=STATUS_SDS),
                max_message_bytes=MAX_SDS_BYTES,
                history="since",
                history_since_ms=max(0, session.now_ms() - options.history_ms),
                query_on_connect=False,  # the bot's own look into Store brings it all
                confirm_interval_ms=options.confirm_ms,
            )

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open the SDS channels for the duration of the context. When the context ends, the last
        accepted messages are passed to the node.

        Raises:
            StateError: a state cannot be used.
        """
        async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
            for community in self._session.rooms.communities:
                if (channel := self._channels.get(community.id)) is not None:
                    await stack.enter_async_context(channel)
                    tasks.start_soon(self._follow, community, channel)
            yield

    def arrived(self, sds: SdsArrival, message_hash: bytes) -> None:
        """Pass a received message to its channel."""
        self._heard.renew(sds.message_id, None)
        if (carrier := self._carriers.get(sds.channel_id)) is not None:
            carrier.arrived(sds, message_hash)

    def takes(self, entry: OutboxEntry) -> bool:
        """Return True if a message belongs to one of the SDS channels."""
        return entry.route in self._channels

    async def send(self, entry: OutboxEntry) -> None:
        """Pass a message to its SDS channel, which keeps it until other participants have it.

        Raises:
            ContentTooLong: it is too long for SDS.
            OutgoingBufferFull: too much is not acknowledged yet.
        """
        (carried,) = entry.messages
        channel = self._channels[entry.route]
        sent = await channel.send(carried.payload, idempotency_key=entry.message_id)
        self._session.sent(sent.message_id, entry.message_id)

    def found(self) -> list[Fetched]:
        """Return messages that Store gave to a channel since the last call and that are new to the
        bot."""
        found, self._found = self._found, []
        return found

    def kept(self) -> list[Received]:
        """Return messages from before a restart that a channel kept and emitted since the last
        call."""
        kept, self._kept = self._kept, []
        return kept

    def recall(self, since_ms: int) -> None:
        """Let `kept` return all messages since a time, if the channels still have them."""
        for community in self._session.rooms.communities:
            if (channel := self._channels.get(community.id)) is not None:
                for entry in channel.log(last=LOG_ENTRIES):
                    if entry.lamport_timestamp >= since_ms:
                        self._keep(community, entry.content)

    def _keep(self, community: Community, content: bytes) -> None:
        received = read_again(content, community.universal_topic)
        if isinstance(received, Received):
            self._kept.append(received)

    def _note(self, fetched: list[Fetched]) -> None:
        self._found += self._link.new(fetched)

    async def _follow(self, community: Community, channel: ReliableChannel) -> None:
        reporter = self._session.reporter
        async for event in channel.events():
            match event:
                case MessageReceived() if event.message_id not in self._heard:
                    self._keep(community, event.content)  # it waited for others over a restart
                case MessageAcknowledged():
                    reporter.count("acknowledged")
                    self._session.acknowledged(event.message_id)
                case DeliveryFailed() | SendFailed():
                    reporter.count("unacknowledged")
                    reporter.log("unacknowledged", logging.WARNING, why=event.reason)
                case MessageLost():
                    reporter.count("lost")
                    reporter.log("lost", logging.WARNING, why=event.reason)
                case TransportDegraded(component="send"):
                    reporter.log("publish_failed", logging.WARNING, why=event.reason)
                case StateDegraded():  # as of the bot's memory: it would repeat itself, or forget
                    raise StateUnavailable(event.reason)


def _journal(options: BotOptions, community: Community, bot: PublicKey) -> Path | None:
    """A file that no other bot writes; its folder is there when this returns."""
    if options.journals is None:
        return None
    folder = Path(options.journals)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{community.id}-{bot.multibase[-12:]}.journal"


WAITING: Final = 10_000
"""Maximum number of messages that wait for the channel. Beyond the maximum, the oldest message is
dropped, and fetched again from Store."""
_LENGTH: Final = struct.Struct(">I")


class CommunityCarrier(BaseTransport):
    """Transport of one community's SDS channel.

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
        self._arrived: deque[ReceivedContent] = deque(maxlen=WAITING)
        self._gap = ""
        self._news = anyio.Event()

    async def open(self) -> None:
        """Do nothing, because the bot's link subscribes."""

    async def aclose(self) -> None:
        """Do nothing, because the bot's link unsubscribes."""

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Encrypt an SDS message. If the message has several segments, the hash is that of the last
        segment."""
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
        """Pass a message of the bot to the channel."""
        if len(self._arrived) == WAITING:
            self._gap = f"more than {WAITING} messages waited"
        self._arrived.append(_received(sds, message_hash, Source.LIVE))
        self._news.set()

    async def receive(self) -> Batch:
        while not self._arrived:
            self._news = anyio.Event()
            await self._news.wait()
        batch = Batch(list(self._arrived), self._gap)
        self._arrived.clear()
        self._gap = ""
        return batch

    async def by_hash(self, hashes: Sequence[bytes]) -> list[ReceivedContent]:
        """Fetch from Store by hash."""
        with _translated(StoreUnavailable):
            return self._open(await self._link.by_hash(self._shard, hashes))

    async def by_time(
        self, start_ns: int, end_ns: int
    ) -> AsyncGenerator[list[ReceivedContent], None]:
        """Fetch the community's messages from Store."""
        pages = self._link.stored(self._shard, self._content_topics, start_ns, end_ns)
        with _translated(StoreUnavailable):
            async with aclosing(pages):
                async for page in pages:
                    yield self._open(page)

    def _open(self, fetched: list[Fetched]) -> list[ReceivedContent]:
        self._found(fetched)
        received: list[ReceivedContent] = []
        for one in fetched:
            self._opener.receive(one.message, self._now_ms())
            received += [
                _received(sds, one.message_hash, Source.STORE)
                for sds in self._opened
                if sds.channel_id == self._community.id
            ]
            self._opened.clear()
        return received


def _received(sds: SdsArrival, message_hash: bytes, source: Source) -> ReceivedContent:
    return ReceivedContent(sds.data, message_hash, sds.timestamp_ms * NS_PER_MS, source)


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
