"""Waku through a node's REST API, by relay if the node offers it, otherwise by light push and
filter."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from typing import Final, Literal

import anyio

from waku._asgi import App
from waku._recent_pushes import RecentPushes
from waku._request import Flavour
from waku._subscription_watchdog import SubscriptionWatchdog
from waku.client import WakuClient
from waku.errors import (
    EndpointMissing,
    NodeFailure,
    NoPeers,
    NotFound,
    NotSubscribed,
    RateLimited,
    WakuError,
)
from waku.hashing import message_hash
from waku.models import StoreEntry, StorePage, StoreQuery, WakuMessage

from .addresses import masked_address
from .base import Batch, Envelope, Source, TransportError
from .hub_node import HubNode, ReadBy, TopicReader
from .polling import AdaptivePolling
from .relay_peers import RelayPeers
from .settings import WakuSettings, trusting
from .waku_topic import FORGOTTEN, NotServed, OnTopic, translated

PING_INTERVAL_S: Final = 60.0
"""Interval of pings (s), because a filter subscription ends silently (P2P reliability, Filter)."""
FILTER_REST_S: Final = 1.5
"""Pause between a ping and the subscription that follows it (s). Stock nodes serve one filter
request a second. go-waku does not answer a further request, so that the REST gateway waits in vain.
"""

OPEN_ATTEMPTS: Final = 3
ABSENT: Final = (EndpointMissing, NotFound)
"""Errors of a node that does not serve the protocol of a subscription."""


def rest_client(url: str, settings: WakuSettings, app: App | None = None) -> WakuClient:
    """Return a client of a node's REST API."""
    return WakuClient(
        url,
        app=app,
        ssl_context=trusting(settings.ca_file),
        max_message_bytes=settings.max_message_bytes,
    )


class WakuTransport(OnTopic):
    """Transport of one content topic through one Waku node."""

    def __init__(
        self,
        url: str,
        settings: WakuSettings,
        *,
        app: App | None = None,
        monotonic: Callable[[], float] = anyio.current_time,
        shared: HubNode | None = None,
    ) -> None:
        if "," in settings.content_topic:
            raise ValueError(
                f"`content_topic` must have no comma (got {settings.content_topic!r}), because "
                "the REST API of a node separates topics by commas; give another topic, or a "
                "libp2p address"
            )
        self.url = masked_address(url)
        self.settings = settings
        super().__init__(settings)
        self._shard = self._topic.shard
        self._shared = shared
        self._reader: TopicReader | None = None
        self._read_by: ReadBy | None = None
        self._client = rest_client(url, settings, app) if shared is None else shared.client
        self._polling = AdaptivePolling(
            min_interval_ms=settings.poll_min_interval_ms,
            max_interval_ms=settings.poll_max_interval_ms,
        )
        self._monotonic = monotonic
        self._service: Literal["relay", "light"] = "relay"
        self._subscribed = False
        self._interval_ms = 0
        self._last_look_s: float | None = None
        self._last_ping_s = 0.0
        self._legacy_light_push = False
        self._pushes = RecentPushes()
        self._lost: str | None = None
        """Why there has to be a new subscription: until there is one, nodes that know nothing of it
        any more answer each look with nothing."""
        self._is_suspect = False
        """Something should have come through the subscription, and did not."""
        self._watchdog = SubscriptionWatchdog()
        if shared is None:
            self._relay_peers = RelayPeers(self._client, self._shard)
        else:
            self._relay_peers = shared.relay_peers(self._shard)
        self._deaf: str | None = None
        """Why nothing arrives, until something does."""

    @property
    def api(self) -> str:
        """API in use (`relay` or `filter`), or an empty text without a subscription."""
        if not self._subscribed or self._lost is not None:
            return ""
        return "relay" if self._service == "relay" else "filter"

    async def open(self) -> None:
        """Subscribe by relay or by filter, whichever the node offers. A temporary refusal of the
        service node is retried a few times. The service node serves one filter request a second, so
        another client may have been first."""
        with translated():
            for _ in range(OPEN_ATTEMPTS - 1):
                try:
                    return await self._subscribe()
                except NodeFailure:
                    await anyio.sleep(FILTER_REST_S)
            await self._subscribe()

    async def aclose(self) -> None:
        """Unsubscribe, unless other clients need the subscription, and close the connections."""
        ends = False
        with anyio.move_on_after(1, shield=True), suppress(WakuError):
            if self._subscribed:
                self._subscribed = False
                ends = await self._is_ours_to_end()
                if ends and self._shared is None:
                    await self._unsubscribe()
        if self._shared is None:
            with anyio.move_on_after(1, shield=True):
                await self._client.aclose()
        else:
            self._leave(self._shared, unsubscribe=ends)

    async def publish(self, envelope: Envelope) -> None:
        """Publish an envelope by relay or by light push."""
        if self._shared is not None and self._shared.away:
            raise TransportError(self._shared.away)
        message = self._topic.message(envelope)
        self._watchdog.publishing(envelope.message_hash)
        self._relay_peers.publishing(envelope.message_hash, self._monotonic())
        try:
            with translated():
                await self._dispatch(message, envelope.urgent)
        except BaseException:
            self._watchdog.not_published(envelope.message_hash)
            raise
        self._watchdog.published(envelope.message_hash, self._monotonic())
        if self._shared is not None and self._reader is not None:
            await self._shared.published(self._reader)

    async def _dispatch(self, message: WakuMessage, urgent: bool) -> None:
        if self._service == "light":
            await self._light_push(message, urgent)
        elif self.settings.pubsub_topic is None:
            await self._client.relay_auto_publish(message, urgent=urgent)
        else:
            await self._publish_on_shard(message, urgent)

    async def _publish_on_shard(self, message: WakuMessage, urgent: bool) -> None:
        try:
            await self._client.relay_publish(self._shard, message, urgent=urgent)
        except NotSubscribed as error:  # the node left the shard: nothing arrives, either
            self._lost = f"the node had left the shard: {error}"
            raise TransportError(f"{error}; the channel subscribes to the shard again") from error

    async def receive(self) -> Batch:
        """Read the cache of the node when a read is due. If the node lost the subscription, or no
        messages arrive by it, subscribe again.

        Raises:
            TransportError: the node does not answer; or the subscription is deaf, until something
                comes.
        """
        if self._reader is None:
            await anyio.sleep(self._interval_ms / 1000)
        self._interval_ms = self.settings.poll_max_interval_ms
        messages: list[WakuMessage] = []
        with translated():
            if self._lost is None:
                try:
                    messages = await self._look()
                except FORGOTTEN as error:
                    self._lost = f"the node had forgotten the subscription: {error}"
                else:
                    if self._is_suspect and not messages:
                        self._lost = "the subscription seemed dead and was renewed"
            if self._lost is not None:
                await self._subscribe_again()
                gap, self._lost, self._deaf = self._lost, None, None
                return Batch([], gap)
        return await self._heard(messages)

    async def _heard(self, messages: Sequence[WakuMessage]) -> Batch:
        """Make a batch of what a look brought."""
        now_s = self._monotonic()
        elapsed_ms = 1000 * (now_s - self._last_look_s) if self._last_look_s is not None else 0
        self._last_look_s = now_s
        self._interval_ms = self._polling.next_interval_ms(len(messages), elapsed_ms)
        full = self._polling.overflow_suspected(len(messages))
        gap = f"the cache held {len(messages)} messages" if full else ""
        if self._reader is not None:
            gap = self._reader.take_gap()
        arrived = [(message, message_hash(self._shard, message)) for message in messages]
        received = [
            self._topic.received(message, digest, Source.LIVE)
            for message, digest in arrived
            if self._topic.is_ours(message)
        ]
        if messages:
            self._watchdog.heard((message.message_hash for message in received), now_s)
            gap, self._deaf, self._is_suspect = self._deaf or gap, None, False
        elif (silent_s := self._watchdog.deaf_for_s(now_s)) is not None:
            if self._is_revived_since(now_s - silent_s):
                self._watchdog.restored()
            elif await self._is_stored_here(self._watchdog.not_echoed):
                self._watchdog.taken_by_others()
            else:
                await self._revive(silent_s)
        if self._service == "relay":
            await self._relay_peers.check((digest for _, digest in arrived), now_s)
        if reason := self._deaf or self._relay_peers.reason:
            raise TransportError(reason)
        return Batch(received, gap)

    async def _is_stored_here(self, hashes: Sequence[bytes]) -> bool:
        """Return True if the node's own Store has one of these messages, so that the relay hears.

        Renewing a subscription makes nwaku leave the shard for all its clients, so a cache that
        another program emptied must not look like a deaf node. The Store of another node would
        prove nothing.
        """
        if self._service != "relay":
            return False
        with suppress(WakuError):
            protocols = (await self._client.health()).protocols
            if any(one.protocol == "Store" and one.status == "READY" for one in protocols):
                query = StoreQuery(hashes=tuple(hashes), include_data=False)
                return bool((await self._client.store(query)).entries)
        return False

    def _is_revived_since(self, since_s: float) -> bool:
        """Return True if another topic of a hub has revived the shard, for all on it."""
        return self._shared is not None and self._shared.revived_s.get(self._shard, -inf) > since_s

    async def _revive(self, silent_s: float) -> None:
        """Make the subscription anew, as nothing comes through it."""
        not_echoed = len(self._watchdog.not_echoed)
        self._watchdog.restored()
        self._deaf = (
            f"the subscription is deaf: nothing came for {silent_s:.0f} s, not even {not_echoed} "
            "messages that were published here; subscribed anew, attempt "
            f"{self._watchdog.restorations}"
        )
        self._is_suspect = True
        if self._shared is not None:
            self._shared.revived(self._shard, self._deaf, self._monotonic())
        with translated():
            await self._subscribe_again()

    def renew(self) -> None:
        """Renew the subscription at the next read, unless the read returns messages."""
        self._is_suspect = True
        if self._reader is not None:
            self._reader.expect()

    async def _store(self, query: StoreQuery) -> StorePage:
        if self._shared is not None:
            return await self._shared.queries.page(query)
        return await self._client.store(query)

    async def _store_by_hash(self, hashes: Sequence[bytes]) -> Sequence[StoreEntry]:
        client, peer = self._client, self.settings.store_peer
        return await client.store_by_hash(hashes, peer_addr=peer)

    async def _subscribe_again(self) -> None:
        """Subscribe; end a suspect subscription first, as nwaku ignores a subscription to a content
        topic that it knows, though it has left the shard."""
        if self._is_suspect and self._service == "relay":
            with suppress(WakuError):
                await self._unsubscribe()
        await self._subscribe()
        self._is_suspect = False

    async def _subscribe(self) -> None:
        """Subscribe, and read through the hub's node if there is one.

        Raises:
            NotServed: it has neither relay nor filter.
        """
        if self._shared is None:
            await self._subscribe_here()
            return
        async with self._shared.subscribing():
            await self._subscribe_here()
            read_by: ReadBy = "relay" if self.settings.pubsub_topic is None else "shard"
            if self._service == "light":
                read_by = "filter"
            if read_by != self._read_by:
                self._leave(self._shared, unsubscribe=False)
                topic = self.settings.content_topic
                self._reader = await self._shared.join(topic, self._shard, read_by)
                self._read_by = read_by

    def _leave(self, shared: HubNode, *, unsubscribe: bool) -> None:
        if self._reader is not None:
            shared.leave(self._reader, unsubscribe=unsubscribe)
            self._reader = self._read_by = None

    async def _subscribe_here(self) -> None:
        """Subscribe through relay, or filter where the node has no relay.

        Raises:
            NotServed: it has neither.
        """
        has_relay = False
        if self.settings.service in ("auto", "relay"):
            try:
                await self._subscribe_relay()
            except (*ABSENT, NoPeers) as error:
                if self.settings.service == "relay":
                    raise
                has_relay = isinstance(error, NoPeers)
            else:
                self._service, self._subscribed = "relay", True
                return
        try:
            await self._client.filter_subscribe([self.settings.content_topic], self._shard)
        except ABSENT as error:
            if has_relay or self.settings.service == "light":
                raise
            raise NotServed(f"{self.url} serves neither relay nor filter") from error
        self._service, self._subscribed = "light", True
        self._last_ping_s = self._monotonic()

    async def _subscribe_relay(self) -> None:
        if self.settings.pubsub_topic is None:
            await self._client.relay_auto_subscribe([self.settings.content_topic])
        else:
            await self._client.relay_subscribe([self._shard])

    async def _unsubscribe(self) -> None:
        if self._service == "light":
            await self._client.filter_unsubscribe([self.settings.content_topic], self._shard)
        elif self.settings.pubsub_topic is None:
            await self._client.relay_auto_unsubscribe([self.settings.content_topic])
        else:
            await self._client.relay_unsubscribe([self._shard])

    async def _is_ours_to_end(self) -> bool:
        """Return True if ending the subscription at close takes nothing from others on the node.

        nwaku leaves the whole shard for a content topic, and go-waku for a static shard: relay,
        filter and Store stop for all clients. But a content topic without readers stops
        go-waku at 1,000 messages.
        """
        if self._service == "light":
            return True
        flavour = await self._client.flavour()
        if flavour is Flavour.GO_WAKU:
            return self.settings.pubsub_topic is None
        return flavour is Flavour.EMBEDDED

    async def _look(self) -> list[WakuMessage]:
        if self._service == "light":
            if self._monotonic() - self._last_ping_s > PING_INTERVAL_S:
                await self._ping()
        if self._reader is not None:
            in_doubt = self._deaf or self._is_suspect or self._relay_peers.reason
            expects = in_doubt or self._watchdog.not_echoed or self._service == "light"
            return await self._reader.read(is_quiet=not expects)
        if self._service == "light":
            return await self._client.filter_messages(self.settings.content_topic)
        if self.settings.pubsub_topic is None:
            return await self._client.relay_auto_messages(self.settings.content_topic)
        return await self._client.relay_messages(self._shard)

    async def _ping(self) -> None:
        try:
            await self._client.filter_ping()
        except FORGOTTEN:
            await anyio.sleep(FILTER_REST_S)
            raise
        self._last_ping_s = self._monotonic()  # one that fails is made again soon

    async def _light_push(self, message: WakuMessage, urgent: bool) -> None:
        try:
            with self._pushes.pushing(message_hash(self._shard, message)):
                await self._push(message, urgent)
        except WakuError as error:
            if error.retryable and not isinstance(error, RateLimited):
                self._last_ping_s = -inf  # who was away may have forgotten the subscription, too
            raise

    async def _push(self, message: WakuMessage, urgent: bool) -> None:
        if not self._legacy_light_push:
            try:
                await self._client.lightpush(message, self._shard, urgent=urgent)
            except EndpointMissing:
                self._legacy_light_push = True  # go-waku serves version 1 alone
            else:
                return
        await self._client.lightpush_v1(message, self._shard, urgent=urgent)
