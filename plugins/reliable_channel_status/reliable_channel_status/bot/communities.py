"""The SDS channels of a bot, one a community: the bot publishes through them, and they find what is
missing on either side.

As by status-go, nothing waits for what is missing: the bot hears a message when it comes, and what
was missing when that comes. So the channels stand beside the way in, and only report what to fetch.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
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
from reliable_channel.events import StateDegraded, TransportDegraded
from reliable_channel.spi import StateStore, StateUnavailable

from ..chats import Community
from ..keys import PrivateKey, PublicKey
from ..outcomes import Received
from ..pipeline import Sealer, read_again
from ..recent import Recent
from ..sds import STATUS_SDS, SdsArrival
from .carrier import CommunityCarrier
from .link import NS_PER_MS, Fetched, Link
from .memory import Said
from .options import BotOptions
from .session import Session

MAX_SDS_BYTES: Final = 1024 * 1024
"""What nim-sds takes; a longer message goes without SDS, as by status-go."""
LOG_ENTRIES: Final = 10_000
"""Of each community, that are read again at the start."""
HEARD: Final = 50_000
"""Ids of SDS messages that the bot heard in this run."""


class Communities:
    """The channels of one run."""

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
        """Open the channels for the time of a block; at its end hand the node what was accepted
        last.

        Raises:
            StateError: a state cannot be used.
        """
        async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
            for community in self._session.rooms.communities:
                if (channel := self._channels.get(community.id)) is not None:
                    await stack.enter_async_context(channel)
                    tasks.start_soon(self._watch, community, channel)
            yield

    def arrived(self, sds: SdsArrival, message_hash: bytes) -> None:
        """Hand a channel what the bot heard."""
        self._heard.renew(sds.message_id, None)
        if (carrier := self._carriers.get(sds.channel_id)) is not None:
            carrier.arrived(sds, message_hash)

    def takes(self, said: Said) -> bool:
        """Whether something goes through a channel."""
        return said.route in self._channels

    async def send(self, said: Said) -> None:
        """Hand something to its channel, which keeps it until others have it.

        Raises:
            ContentTooLong: it is too long for SDS.
            OutgoingBufferFull: too much is not acknowledged yet.
        """
        (carried,) = said.messages
        channel = self._channels[said.route]
        sent = await channel.send(carried.payload, idempotency_key=said.message_id)
        self._session.sent(sent.message_id, said.message_id)

    def found(self) -> list[Fetched]:
        """What Store gave to a channel since the last call, as far as the bot has not heard it."""
        found, self._found = self._found, []
        return found

    def kept(self) -> list[Received]:
        """What a channel kept from before a restart, and emitted since the last call."""
        kept, self._kept = self._kept, []
        return kept

    def recall(self, since_ms: int) -> None:
        """Have `kept` return all messages since a time, as far as the channels have them."""
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

    async def _watch(self, community: Community, channel: ReliableChannel) -> None:
        watch = self._session.watch
        async for event in channel.events():
            match event:
                case MessageReceived() if event.message_id not in self._heard:
                    self._keep(community, event.content)  # it waited for others over a restart
                case MessageAcknowledged():
                    watch.count("acknowledged")
                    self._session.acknowledged(event.message_id)
                case DeliveryFailed() | SendFailed():
                    watch.count("unacknowledged")
                    watch.log("unacknowledged", logging.WARNING, why=event.reason)
                case MessageLost():
                    watch.count("lost")
                    watch.log("lost", logging.WARNING, why=event.reason)
                case TransportDegraded(component="send"):
                    watch.log("publish_failed", logging.WARNING, why=event.reason)
                case StateDegraded():  # as of the bot's memory: it would repeat itself, or forget
                    raise StateUnavailable(event.reason)


def _journal(options: BotOptions, community: Community, bot: PublicKey) -> Path | None:
    """A file that no other bot writes; its folder is there when this returns."""
    if options.journals is None:
        return None
    folder = Path(options.journals)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{community.id}-{bot.multibase[-12:]}.journal"
