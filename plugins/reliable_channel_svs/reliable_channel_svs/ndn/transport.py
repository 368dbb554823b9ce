"""Transport `ndn://` of a channel, whose messages are publications in a State Vector Sync group.

A channel on NDN has no Store. Participants, also new ones, fetch all publications that their sender
still has. Other participants broadcast messages again that the sender no longer has (SDS-R).
"""

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import anyio

from reliable_channel.spi import (
    BaseTransport,
    Batch,
    Envelope,
    Received,
    StoreUnavailable,
    TransportError,
    WakuFraming,
    WakuSettings,
)

from ..errors import SequenceExhausted
from ..events import LimitReached, OwnNameClaimed, VectorIgnored
from ..protocol import Publication
from .events import (
    ForwarderConnected,
    ForwarderLost,
    NodeEvent,
    PacketRefused,
    PublicationReceived,
    PublicationUnavailable,
)
from .node import SvsNode
from .options import NodeOptions
from .parts import Joiner, cut
from .url import GroupUrl

OPTIONS: Final = NodeOptions(tell_gone=True)
OPEN_S: Final = 10.0
"""Maximum time for which the forwarder may leave a command unanswered."""
LINGER_S: Final = 1.0
"""Maximum time for which a closing node still answers requests for its last publication."""
OTHERS_S: Final = 0.1
"""Additional time for requests of other participants after the first request."""
EPHEMERAL_S: Final = 60.0
"""Time for which an ephemeral message is kept for other members."""


class NdnTransport(BaseTransport):
    """Transport that uses a group on NDN for each content topic. Each sender is a node of the
    group.

    Raises:
        ValueError: the URL does not have the form in `url.py`.
    """

    has_store = False

    def __init__(
        self,
        url: str,
        settings: WakuSettings,
        sender_id: str,
        *,
        options: NodeOptions = OPTIONS,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.url = url
        self.mislabelled = 0
        """What others sent that is not a message, not signed by a trusted key, or pretends to be
        ours."""
        self._where = GroupUrl.parse(url)
        self._group = str(self._where.group(settings.content_topic))
        self._name = str(self._where.node(sender_id))
        self._options = self._where.options(options)
        self._now_ms = now_ms
        self._wrapping = WakuFraming(settings)
        self._node: SvsNode | None = None
        self._stack = AsyncExitStack()
        self._early: list[NodeEvent] = []
        """The events while the transport was being opened."""
        self._lost = ""
        self._joiner = Joiner()
        self._ephemeral: deque[tuple[float, list[Publication]]] = deque()

    async def open(self) -> None:
        """Join the group through the forwarder."""
        if self._node is not None:
            return
        try:
            signer, trust = await anyio.to_thread.run_sync(self._where.identity)
            node = SvsNode(
                self._where.forwarder,
                group=self._group,
                name=self._name,
                signer=signer,
                trust=trust,
                options=self._options,
                now_ms=self._now_ms,
            )
        except ValueError as error:
            raise TransportError(f"{self.url}: {error}", retryable=False) from error
        lost = f"no answer within {OPEN_S:g} s"
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(node)
            with anyio.move_on_after(OPEN_S):
                lost = await self._joined(node)
            if not lost:
                self._node, self._stack = node, stack.pop_all()
        if lost:
            raise TransportError(f"{self.url} cannot be reached: {lost}")

    async def aclose(self) -> None:
        """Leave the group, and drop all own publications."""
        self._node = None
        await self._stack.aclose()

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Return an envelope with the hash that a Waku node would give the bytes."""
        return self._wrapping.envelope(
            payload, timestamp_ns=timestamp_ns, ephemeral=ephemeral, meta=meta
        )

    async def publish(self, envelope: Envelope) -> None:
        """Publish a message, and announce it to the group."""
        node = self._opened()
        if not node.is_connected:
            raise TransportError("the forwarder is not connected")
        self._forget_ephemeral(node)
        try:
            parts = cut(self._wrapping.body(envelope), node.content_limit_bytes)
        except ValueError as error:
            raise TransportError(f"the message is too long: {error}", retryable=False) from error
        try:
            publications = await node.publish_all(parts)
        except SequenceExhausted as error:  # somebody claimed our numbers, up to the last one
            node.rebootstrap()
            raise TransportError(str(error)) from error
        if envelope.ephemeral:
            self._ephemeral.append((anyio.current_time(), publications))

    async def receive(self) -> Batch:
        """Wait for publications of other members."""
        self._check_forwarder()
        node = self._opened()
        events, self._early = self._early, []
        if not (events := events or await node.next_events()):
            raise TransportError(f"{self.url} was closed")
        given_up = self._joiner.given_up
        messages = [found for event in events if (found := self._take(event)) is not None]
        gone = sum(isinstance(event, PublicationUnavailable) for event in events)
        gone = max(gone, self._joiner.given_up - given_up)
        if not messages and not gone:
            self._check_forwarder()  # an empty batch means that it is there
        return Batch(messages, gap=f"{gone} publications cannot be had" if gone else "")

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        raise StoreUnavailable("an NDN group has no Store", retryable=False)

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        yield await self.by_hash([])

    async def handed_over(self) -> None:
        """Wait a moment, so that other members can fetch the last publication."""
        if (node := self._node) is not None and node.is_connected:
            with anyio.move_on_after(LINGER_S):
                await node.wait_asked()
                await anyio.sleep(OTHERS_S)

    async def _joined(self, node: SvsNode) -> str:
        """Wait for the forwarder; return why it cannot be used, if so."""
        self._early = []
        while True:
            events = await node.next_events()
            self._early += events  # publications too: others are quick
            for event in events:
                if isinstance(event, ForwarderLost):
                    return event.reason
                if isinstance(event, ForwarderConnected):
                    return ""

    def _check_forwarder(self) -> None:
        lost, self._lost = self._lost, ""
        if lost:
            raise TransportError(f"the forwarder is not connected: {lost}")

    def _take(self, event: NodeEvent) -> Received | None:
        match event:
            case PublicationReceived():
                body = self._joiner.take(event)
                received = None if body is None else self._wrapping.received(body)
                self.mislabelled += body is not None and received is None
                return received
            case PublicationUnavailable():
                self._joiner.skip(event)
            case ForwarderLost():
                self._lost = event.reason
            case ForwarderConnected():
                self._lost = ""
            case PacketRefused() | VectorIgnored() | OwnNameClaimed() | LimitReached():
                self.mislabelled += 1
        return None

    def _forget_ephemeral(self, node: SvsNode) -> None:
        """Newcomers need not fetch what is over."""
        since_s = anyio.current_time() - EPHEMERAL_S
        while self._ephemeral and self._ephemeral[0][0] < since_s:
            for publication in self._ephemeral.popleft()[1]:
                node.forget(publication)

    def _opened(self) -> SvsNode:
        if self._node is None:
            raise TransportError(f"{self.url} is not open")
        return self._node
