"""Waku through one node, by its relay or filter API, otherwise by its messaging layer.

Relay and filter are preferred to the messaging layer. With relay and filter, the hash of a message
is known before it is sent. A repetition is then the same message, and unread messages are kept by
topic. The messaging layer sets timestamps, and has one queue for all programs that read.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

import anyio

from waku._asgi import App

from .addresses import masked_address
from .base import BaseTransport, Batch, Envelope, Received
from .hub_node import HubNode
from .messaging import MessagingTransport
from .settings import WakuSettings
from .waku import WakuTransport
from .waku_topic import NotServed

__all__ = ["NodeTransport"]

_log: Final = logging.getLogger("reliable_channel")


class NodeTransport(BaseTransport):
    """Transport of one content topic through one Waku node. The first requests show which API the
    node serves.

    The messaging layer is used only if the node serves it but not relay and filter (404, 501). No
    API is chosen while the node is away, fails or starts.
    """

    def __init__(
        self,
        url: str,
        settings: WakuSettings,
        *,
        app: App | None = None,
        monotonic: Callable[[], float] = anyio.current_time,
        shared: HubNode | None = None,
    ) -> None:
        self.url = masked_address(url)
        self._address = url
        self._settings = settings
        self._app = app
        self._monotonic = monotonic
        self._rest = WakuTransport(url, settings, app=app, monotonic=monotonic, shared=shared)
        self._messaging: MessagingTransport | None = None

    @property
    def api(self) -> str:
        """API in use (`relay`, `filter` or `messaging`), or an empty text without a
        subscription."""
        return self._rest.api if self._messaging is None else self._messaging.api

    @property
    def mislabelled(self) -> int:
        """Number of messages from Store that had a wrong hash, came twice, or were not
        requested."""
        return self._way.mislabelled

    async def open(self) -> None:
        """Subscribe by the API that the node serves.

        Raises:
            TransportError: the node is away or fails; `NotServed`: it serves none of them, or not
                yet.
        """
        try:
            await self._rest.open()
        except NotServed as error:
            await self._open_messaging(error)

    async def aclose(self) -> None:
        """Unsubscribe, and close the connections."""
        await self._close_messaging()
        await self._rest.aclose()

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Make an envelope for a Waku message of this content topic."""
        return self._way.envelope(
            payload, timestamp_ns=timestamp_ns, ephemeral=ephemeral, meta=meta
        )

    async def publish(self, envelope: Envelope) -> Envelope | None:
        """Publish an envelope by the API in use. With the messaging layer, return the envelope that
        the node made."""
        return await self._way.publish(envelope)

    async def receive(self) -> Batch:
        """Wait for messages of the topic. If the node now serves another API, subscribe by that
        API.

        Raises:
            TransportError: the node does not answer, or the subscription is deaf.
        """
        try:
            return await self._way.receive()
        except NotServed as error:
            if self._messaging is not None:
                await self._close_messaging()
                self._rest.renew()
                raise
            await self._open_messaging(error)
            return Batch([], f"the node serves another API: {error}")

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch stored messages by their Waku message hashes."""
        return await self._way.by_hash(hashes)

    def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch stored messages by content topic and time, page by page."""
        return self._way.by_time(start_ns, end_ns)

    def renew(self) -> None:
        """Renew the subscription at the next read."""
        self._way.renew()

    @property
    def _way(self) -> WakuTransport | MessagingTransport:
        return self._rest if self._messaging is None else self._messaging

    async def _open_messaging(self, missing: NotServed) -> None:
        """Use the messaging layer, if there is one and nothing else even then.

        A node that starts serves it last: where it answers, relay and filter would, too.
        """
        if self._settings.pubsub_topic is not None:
            raise NotServed(
                f"{missing}; a messaging layer cannot replace them, because it shards by content "
                "topic and `pubsub_topic`, or a `network` of static shards, is given"
            ) from missing
        messaging = MessagingTransport(
            self._address,
            self._settings,
            app=self._app,
            monotonic=self._monotonic,
        )
        try:
            await messaging.open()
        except NotServed as error:
            raise NotServed(
                f"{missing}, nor a messaging layer; start the node with relay, or wait until the "
                "node has started"
            ) from error
        try:
            await self._rest.open()
        except NotServed:
            self._messaging = messaging
            _log.warning(
                "%s serves neither relay nor filter: its messaging layer is used, which has one "
                "reader, so use this node from one program alone",
                self.url,
            )
        except BaseException:
            await messaging.aclose()
            raise
        else:
            await messaging.aclose()

    async def _close_messaging(self) -> None:
        messaging, self._messaging = self._messaging, None
        if messaging is not None:
            await messaging.aclose()
