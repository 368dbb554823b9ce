"""Links to nodes elsewhere, over HTTP.

The node that dials does both directions (`MeshClient`), so that only one of the two needs an
address.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn

import anyio
import httpx

from waku.errors import WakuError
from waku.node.envelope import Envelope
from waku.node.identity import NodeAddress
from waku.node.mesh import PeerInfo
from waku.node.mesh_client import LinkLost, MeshClient, MoreThanFetched, Refused
from waku.node.outbox import Outbox
from waku.node.peer_host import PeerHost
from waku.node.protocols import RELAY, STORE
from waku.node.remote_services import RemoteServices
from waku.node.service_link import NoAnswer, NotReached, ServiceLink
from waku.node.store_sync import SyncFailed

__all__ = ["AcceptedPeer", "DialFailed", "DialledPeer", "RemotePeer", "WrongCluster"]

NS_PER_S: Final = 1_000_000_000
SILENCE_NS: Final = 60 * NS_PER_S
"""After three polls that did not come, a node that dialled us is gone."""
CATCH_UP_OVERLAP_NS: Final = 30 * NS_PER_S
WRONG_CLUSTER_STATUS: Final = 409

_log = logging.getLogger("waku.node.mesh")


class DialFailed(ConnectionError):
    """There is no node of our kind and cluster at an address, or it does not answer."""


class WrongCluster(DialFailed):
    """The node there belongs to another cluster."""


class RemotePeer(ABC):
    """A node elsewhere: what waits for it, what it offers, and what it asks."""

    key: str

    def __init__(self, node: PeerHost, info: PeerInfo | None) -> None:
        nodes = node.service_nodes
        self.info = info
        self.outbox = Outbox.of(node.options)
        self.service_link = ServiceLink(
            self, node.options, node.services, node.store_sync, nodes.take_push
        )
        self.services = RemoteServices(self.service_link, nodes.subscriptions)

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether it answered lately."""

    def follows(self, pubsub_topic: str) -> bool:
        """Whether it takes messages of a pubsub topic, as far as it has reported."""
        return self.info is not None and self.info.follows(pubsub_topic)

    async def ask_sync(self, fields: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the answer to a request of store synchronisation, unread.

        Raises:
            SyncFailed: it does not answer.
        """
        try:
            return await self.service_link.ask(fields)
        except (NotReached, NoAnswer) as error:
            raise SyncFailed("the node does not answer") from error

    def note_topic(self, pubsub_topic: str, *, follows: bool) -> None:
        """Note that it follows a pubsub topic from now on, or no longer."""
        if self.info is not None:
            self.info = self.info.with_topic(pubsub_topic, follows=follows)


class AcceptedPeer(RemotePeer):
    """A node that dialled us and comes to fetch its messages."""

    info: PeerInfo

    def __init__(self, node: PeerHost, info: PeerInfo) -> None:
        super().__init__(node, info)
        self.key = f"accepted {info.peer_id}"
        self._now_ns = node.options.now_ns
        self.heard()

    def heard(self) -> None:
        """Note that the node is there."""
        self._heard_at_ns = self._now_ns()

    @property
    def connected(self) -> bool:
        """Whether it was heard of lately."""
        return self._now_ns() - self._heard_at_ns < SILENCE_NS

    def send(self, envelope: Envelope) -> None:
        """Keep a message until the node fetches it."""
        if RELAY in self.info.protocols and self.connected:
            self.outbox.put(envelope)


class DialledPeer(RemotePeer):
    """A node that we dial, and dial again, with growing pauses, whenever it is away."""

    def __init__(
        self,
        node: PeerHost,
        address: NodeAddress,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        super().__init__(node, None)
        self.key = address.url
        self._connected = False
        self._node = node
        self._address = address
        self._client = MeshClient(address, node.options, transport)
        self._last_contact_ns: int | None = None

    def send(self, envelope: Envelope) -> None:
        """Keep a message until the node is there."""
        if self.info is None or RELAY in self.info.protocols:
            self.outbox.put(envelope)

    @property
    def connected(self) -> bool:
        """Whether it answers."""
        return self._connected

    async def hello(self) -> None:
        """Introduce us.

        Raises:
            DialFailed: no node, or another one than expected.
            WrongCluster: a node of another cluster.
        """
        dials = self._node.metrics.dials
        try:
            info = await self._client.hello(self._node.hello_json())
        except WakuError as error:
            dials[False] += 1
            failure = WrongCluster if error.status == WRONG_CLUSTER_STATUS else DialFailed
            raise failure(f"cannot join {self._address.url}: {error}") from error
        dials[expected := self._address.peer_id in (None, info.peer_id)] += 1
        if not expected:
            raise DialFailed(f"{self._address.url} is {info.peer_id}, not {self._address.peer_id}")
        self.info = info
        self._connected = True

    async def run(self) -> None:
        """Exchange messages for as long as the node lives; ends by cancellation alone."""
        shortest_s, longest_s = self._node.options.redial_min_s, self._node.options.redial_max_s
        pause_s = shortest_s
        try:
            while True:
                try:
                    if not self.connected:
                        await self.hello()
                    self._node.service_nodes.link_up(self)
                    await self._catch_up()
                    if self._node.store_sync is not None:
                        self._node.store_sync.link_up(self.key)
                    pause_s = shortest_s
                    await self._exchange()
                except (DialFailed, LinkLost) as error:
                    _log.info("joined node is away, next try in %.1f s: %s", pause_s, error)
                self._connected = False
                self.service_link.lost()
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, longest_s)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        self._connected = False
        await self._client.aclose()

    async def _exchange(self) -> None:
        """Send and receive until either fails."""
        lost: list[LinkLost] = []

        async def until_lost(loop: Callable[[], Awaitable[NoReturn]]) -> None:
            try:
                await loop()
            except LinkLost as error:
                lost.append(error)
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_lost, self._send_all)
            tasks.start_soon(until_lost, self._receive_all)
        raise lost[0]

    async def _send_all(self) -> NoReturn:
        while True:
            await self.outbox.wait()
            batch, last = self.outbox.batch()
            if batch:
                try:
                    await self._client.give(self._node.peer_id, batch)
                except Refused as error:
                    _log.warning("%s refuses %d items: %s", self.key, len(batch), error)
                self._in_contact()
                self.outbox.acknowledge(last)

    async def _receive_all(self) -> NoReturn:
        last = 0
        while True:
            delivery, last = await self._client.take(self._node.peer_id, last)
            self._in_contact()
            for envelope in delivery.envelopes:
                self._node.receive(envelope, self.key)
            try:
                for item in delivery.services:
                    await self.service_link.take(item)
            except ValueError as error:
                raise LinkLost(str(error)) from error

    def _in_contact(self) -> None:
        self._last_contact_ns = self._node.options.now_ns()

    async def _catch_up(self) -> None:
        """Fetch what was missed from the other node's store, if it has one.

        On the first contact it goes to our store alone: to our clients it is history, not news.
        """
        options = self._node.options
        if not options.relay or self.info is None or STORE not in self.info.protocols:
            return  # without a Store of its own the other node would ask another one, maybe us
        now_ns = options.now_ns()
        first = self._last_contact_ns is None
        since_ns = (
            now_ns - int(options.catch_up_s * NS_PER_S)
            if self._last_contact_ns is None
            else self._last_contact_ns - CATCH_UP_OVERLAP_NS
        )
        try:
            async for envelope in self._client.stored(since_ns):
                if first:
                    self._node.archive_only(envelope)
                else:
                    self._node.receive(envelope, self.key)
        except MoreThanFetched:
            _log.warning("%s has more than was fetched of what we missed", self.key)
        self._last_contact_ns = now_ns
