"""Waku through a node's messaging layer, `/messaging/v1` (`waku+messaging://host:port`).

The node chooses the shard, sets the timestamp of each message and retries. The module follows the
source of logos-delivery 69fbffa3, and was not tested with a live node.
"""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import anyio

from waku._asgi import App
from waku.errors import EndpointMissing, NotFound, WakuError
from waku.hashing import message_hash
from waku.messaging import MessagingMessage
from waku.models import StoreEntry, StorePage, StoreQuery

from .addresses import masked_address
from .base import Batch, Envelope, Source, StoreUnavailable, TransportError
from .messaging_inbox import MessagingInbox, Tray, shared_inbox
from .polling import AdaptivePolling
from .settings import WakuSettings
from .waku import rest_client
from .waku_topic import NotServed, OnTopic, translated

__all__ = ["MessagingTransport"]

RENEWAL_S: Final = 30.0
"""Interval between two subscriptions to the same topic (s). A restarted node has no subscriptions,
and answers each read with an empty list."""
DISPATCH_S: Final = 45.0
"""Time limit for a node to send a message (s). The node tries for a minute and then gives up."""
SENT_HERE: Final = "here"
"""Source of a message that another channel of this process has sent."""
MIN_WAIT_S: Final = 0.005
MAX_WAIT_S: Final = 0.25
"""Longest pause between two reads of a message's events (s). The pause doubles after each read."""


class MessagingTransport(OnTopic):
    """Transport of one content topic through the messaging layer of one node."""

    def __init__(
        self,
        url: str,
        settings: WakuSettings,
        *,
        app: App | None = None,
        monotonic: Callable[[], float] = anyio.current_time,
    ) -> None:
        """Raises:
        ValueError: the node shards by content topic, and the channel was given a static shard.
        """
        if settings.pubsub_topic is not None:
            raise ValueError(
                "waku+messaging:// cannot serve a static shard, because the node derives shards "
                "from content topics (`pubsub_topic` or `network` gives "
                f"{settings.pubsub_topic}); use the node's REST API (http://…)"
            )
        self.url = masked_address(url)
        self._address = url
        self._settings = settings
        super().__init__(settings)
        self._app = app
        self._monotonic = monotonic
        self._polling = AdaptivePolling(
            min_interval_ms=settings.poll_min_interval_ms,
            max_interval_ms=settings.poll_max_interval_ms,
        )
        self._tray = Tray(settings.content_topic)
        self._inbox: MessagingInbox | None = None
        self._stack: AsyncExitStack | None = None
        self._interval_ms = 0
        self._last_look_s = 0.0
        self._renew_at_s = 0.0
        self._lost = ""
        """Why messages may be missing before the next ones."""
        self._other_shard = ""
        """Why Store will not be of help, once the node's hashes have shown it."""

    @property
    def api(self) -> str:
        """API in use (`messaging`), or an empty text while the transport is closed."""
        return "messaging" if self._inbox is not None else ""

    async def open(self) -> None:
        """Subscribe to the content topic at the node.

        Raises:
            TransportError: the node cannot be reached, or has no messaging layer.
        """
        client = partial(rest_client, self._address, self._settings, self._app)
        async with AsyncExitStack() as stack:
            inbox = await stack.enter_async_context(shared_inbox(self._address, client))
            self._tray.take()
            inbox.add(self._tray)
            stack.push_async_callback(self._leave, inbox)
            with translated():
                await self._subscribe(inbox)
            self._last_look_s = self._monotonic()
            self._inbox, self._stack = inbox, stack.pop_all()

    async def aclose(self) -> None:
        """Unsubscribe from the content topic at the node. The last channel of a node closes the
        connections."""
        stack, self._stack, self._inbox = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def publish(self, envelope: Envelope) -> Envelope:
        """Let the node send a message, and wait until the node has sent it.

        Returns:
            The envelope with the hash under which the network knows the message.

        Raises:
            TransportError: the node refused it, gave up, or has not dispatched it after 45 s.
        """
        inbox = self._open_inbox()
        with translated():
            request_id = await inbox.client.messaging_send(
                envelope.payload,
                self._settings.content_topic,
                ephemeral=envelope.ephemeral,
                meta=envelope.meta,
                urgent=envelope.urgent,
            )
        wait_s = MIN_WAIT_S
        with anyio.move_on_after(DISPATCH_S):
            while (digest := await self._dispatched(request_id)) is None:
                await anyio.sleep(wait_s)
                wait_s = min(2 * wait_s, MAX_WAIT_S)
            message = self._topic.message(envelope)
            inbox.echo(self._tray, MessagingMessage(digest, message, SENT_HERE))
            return replace(envelope, message_hash=digest)
        raise TransportError(f"the node has not dispatched a message after {DISPATCH_S:g} s")

    async def receive(self) -> Batch:
        """Read messages from the node when a read is due. Subscribe again at intervals, and after
        the node was away.

        Raises:
            TransportError: the node does not answer; or its hashes show that it is on another
                shard, until something comes.
        """
        inbox = self._open_inbox()
        await anyio.sleep(self._interval_ms / 1000)
        self._interval_ms = self._settings.poll_max_interval_ms
        try:
            with translated():
                if self._lost or self._monotonic() >= self._renew_at_s:
                    await self._subscribe(inbox)
                await inbox.look()
        except TransportError as error:
            self._lost = f"the node was away: {error}"
            raise
        messages, gap = self._tray.take()
        gap, self._lost = self._lost or gap, ""
        now_s = self._monotonic()
        elapsed_ms, self._last_look_s = 1000 * (now_s - self._last_look_s), now_s
        self._interval_ms = self._polling.next_interval_ms(len(messages), elapsed_ms)
        for one in messages:
            self._compare(one)
        if self._other_shard and not messages:
            raise TransportError(self._other_shard)
        received = [
            self._topic.received(one.message, one.message_hash, Source.LIVE) for one in messages
        ]
        return Batch(received, gap)

    def renew(self) -> None:
        """Subscribe again at the next read."""
        self._renew_at_s = 0.0

    async def _store(self, query: StoreQuery) -> StorePage:
        return await self._open_inbox(StoreUnavailable).client.store(query)

    async def _store_by_hash(self, hashes: Sequence[bytes]) -> Sequence[StoreEntry]:
        client, peer = self._open_inbox(StoreUnavailable).client, self._settings.store_peer
        return await client.store_by_hash(hashes, peer_addr=peer)

    async def _subscribe(self, inbox: MessagingInbox) -> None:
        try:
            await inbox.client.messaging_subscribe([self._settings.content_topic])
        except (EndpointMissing, NotFound) as error:
            raise NotServed(
                f"{self.url} has no messaging layer; start logos-delivery with --entry-layer "
                "messaging (the embedded node with --messaging), or use the node's REST API, "
                "http://…"
            ) from error
        self._renew_at_s = self._monotonic() + RENEWAL_S

    async def _leave(self, inbox: MessagingInbox) -> None:
        if inbox.remove(self._tray):
            with anyio.move_on_after(1, shield=True), suppress(WakuError):
                await inbox.client.messaging_unsubscribe([self._settings.content_topic])

    async def _dispatched(self, request_id: str) -> bytes | None:
        """The hash of a message that went out; None while it has not.

        Raises:
            TransportError: the node gave up, or does not answer.
        """
        try:
            with translated():
                found = await self._open_inbox().client.messaging_events_of(request_id)
        except TransportError as error:
            if isinstance(error.__cause__, NotFound):
                return None
            raise
        for event in found.events:
            if event.kind == "error":
                raise TransportError(f"the node could not send a message: {event.error}")
            if event.message_hash is not None and event.kind in ("propagated", "sent"):
                return event.message_hash
        return None

    def _compare(self, one: MessagingMessage) -> None:
        """Notice a node that shards in another way: its Store has none of these hashes."""
        if one.source == SENT_HERE:
            return  # the node's time stamp in it is not known
        self._other_shard = ""
        if one.message_hash != message_hash(self._topic.shard, one.message):
            self._other_shard = (
                f"the node's message hashes are not those of {self._topic.shard}: `cluster_id` "
                "and `num_shards` must be the node's, or Store is asked for another shard"
            )

    def _open_inbox(self, kind: type[TransportError] = TransportError) -> MessagingInbox:
        if self._inbox is None:
            raise kind(f"{self.url} is closed; open it first")
        return self._inbox
