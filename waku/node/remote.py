"""Links to nodes elsewhere, over HTTP.

The node that dials does both directions, so that only one of the two needs an address:

    POST /mesh/v1/hello       both tell who they are; the other keeps an outbox for us from now on
    POST /mesh/v1/messages    what we have for the other
    GET  /mesh/v1/messages    what the other has for us; waits for something, names what arrived
    GET  /store/v3/messages   what we missed, once after each hello
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NoReturn

import anyio
import httpx

from waku.client import WakuClient
from waku.errors import EndpointMissing, NoPeers, PageLimitReached, WakuError
from waku.models import StoreQuery
from waku.node.envelope import Envelope
from waku.node.identity import NodeAddress
from waku.node.mesh import PeerInfo
from waku.node.outbox import Outbox
from waku.node.protocols import RELAY

if TYPE_CHECKING:
    from waku.node.node import EmbeddedNode

__all__ = ["AcceptedPeer", "DialFailed", "DialledPeer"]

NS_PER_S: Final = 1_000_000_000
TIMEOUT_S: Final = 5.0
POLL_S: Final = 20.0
"""How long the other node may hold our question for messages before it answers that it has none."""
SILENCE_NS: Final = 60 * NS_PER_S
"""After three polls that did not come, a node that dialled us is gone."""
CATCH_UP_OVERLAP_NS: Final = 30 * NS_PER_S
CATCH_UP_PAGES: Final = 100
CLOSE_GRACE_S: Final = 1.0
REFUSALS: Final = (400, 413)
"""Statuses of what the other node will not take, however often it is sent."""

_log = logging.getLogger("waku.node.mesh")


class DialFailed(ConnectionError):
    """There is no node of our kind and cluster at an address, or it does not answer."""


class LinkLost(Exception):
    """The other node stopped answering, or has forgotten us."""


class AcceptedPeer:
    """A node that dialled us and comes to fetch its messages."""

    def __init__(self, node: EmbeddedNode, info: PeerInfo) -> None:
        self.info = info
        self.key = f"accepted {info.peer_id}"
        self.outbox = Outbox(node.options.peer_queue_capacity)
        self._now_ns = node.options.now_ns
        self.heard()

    def heard(self) -> None:
        """Note that the node is there."""
        self._heard_at_ns = self._now_ns()

    @property
    def connected(self) -> bool:
        """Whether it was heard of lately."""
        return self._now_ns() - self._heard_at_ns < SILENCE_NS

    def follows(self, pubsub_topic: str) -> bool:
        """Tell whether it relays: a remote node's topics are not known."""
        return RELAY in self.info.protocols

    def send(self, envelope: Envelope) -> None:
        """Keep a message until the node fetches it."""
        if RELAY in self.info.protocols and self.connected:
            self.outbox.put(envelope)


class DialledPeer:
    """A node that we dial, and dial again, with growing pauses, whenever it is away."""

    def __init__(
        self,
        node: EmbeddedNode,
        address: NodeAddress,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.key = address.url
        self.info: PeerInfo | None = None
        self.connected = False
        self.outbox = Outbox(node.options.peer_queue_capacity)
        self._node = node
        self._address = address
        self._store = WakuClient(address.url, retries=None, transport=transport)
        self._http = httpx.AsyncClient(
            base_url=address.url, timeout=TIMEOUT_S, transport=transport, trust_env=False
        )
        self._last_contact_ns: int | None = None

    def follows(self, pubsub_topic: str) -> bool:
        """Tell whether it relays: a remote node's topics are not known."""
        return self.info is not None and RELAY in self.info.protocols

    def send(self, envelope: Envelope) -> None:
        """Keep a message until the node is there."""
        if self.info is None or RELAY in self.info.protocols:
            self.outbox.put(envelope)

    async def hello(self) -> None:
        """Introduce us.

        Raises:
            DialFailed: nobody, or not who is expected.
        """
        url = self._address.url
        try:
            answer = await self._http.post("/mesh/v1/hello", json=self._node.hello_json())
            info = PeerInfo.from_json(_json(answer)) if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError) as error:
            raise DialFailed(f"no embedded node answers at {url}: {error}") from error
        if info is None:
            raise DialFailed(f"{url} refuses with status {answer.status_code}: {answer.text[:200]}")
        if self._address.peer_id not in (None, info.peer_id):
            raise DialFailed(f"{url} is {info.peer_id}, not {self._address.peer_id}")
        self.info = info
        self.connected = True

    async def run(self) -> None:
        """Exchange messages for as long as the node lives; ends by cancellation alone."""
        shortest_s, longest_s = self._node.options.redial_min_s, self._node.options.redial_max_s
        pause_s = shortest_s
        try:
            while True:
                try:
                    if not self.connected:
                        await self.hello()
                    await self._catch_up()
                    pause_s = shortest_s
                    await self._exchange()
                except (DialFailed, LinkLost) as error:
                    _log.info("joined node is away, next try in %.1f s: %s", pause_s, error)
                self.connected = False
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, longest_s)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        self.connected = False
        with anyio.move_on_after(CLOSE_GRACE_S, shield=True):
            await self._http.aclose()
            await self._store.aclose()

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
                messages = [envelope.to_json() for envelope in batch]
                body = {"peerId": self._node.peer_id, "messages": messages}
                answer = await self._call("POST", json=body)
                if answer.status_code != 200:
                    _log.warning("%s refuses %d messages: %s", self.key, len(batch), answer.text)
                self.outbox.acknowledge(last)

    async def _receive_all(self) -> NoReturn:
        last = 0
        while True:
            params: dict[str, str | int] = {
                "peerId": self._node.peer_id,
                "after": last,
                "waitMs": int(POLL_S * 1000),
            }
            answer = await self._call("GET", params=params)
            try:
                envelopes, last = _batch(_json(answer))
            except ValueError as error:
                raise LinkLost(f"{self.key} answers what cannot be read: {error}") from error
            for envelope in envelopes:
                self._node.receive(envelope, self.key)

    async def _call(
        self,
        method: str,
        *,
        json: object = None,
        params: dict[str, str | int] | None = None,
    ) -> httpx.Response:
        try:
            answer = await self._http.request(
                method,
                "/mesh/v1/messages",
                json=json,
                params=params,
                timeout=httpx.Timeout(TIMEOUT_S, read=TIMEOUT_S + POLL_S),
            )
        except httpx.HTTPError as error:
            raise LinkLost(f"{self.key}: {error!r}") from error
        if answer.status_code not in (200, *REFUSALS):
            raise LinkLost(f"{self.key} answers with status {answer.status_code}")
        self._last_contact_ns = self._node.options.now_ns()
        return answer

    async def _catch_up(self) -> None:
        """Fetch what was missed from the other node's store, if it has one.

        On the first contact it goes to our store alone: to our clients it is history, not news.
        """
        options = self._node.options
        if not options.relay:
            return
        first = self._last_contact_ns is None
        now_ns = options.now_ns()
        since_ns = (
            now_ns - int(options.catch_up_s * NS_PER_S)
            if self._last_contact_ns is None
            else self._last_contact_ns - CATCH_UP_OVERLAP_NS
        )
        query = StoreQuery(start_time_ns=max(1, since_ns), page_size=100)
        take = self._node.archive_only if first else self._receive_missed
        try:
            async for entry in self._store.store_all(query, max_pages=CATCH_UP_PAGES):
                if entry.message is not None and entry.pubsub_topic is not None:
                    take(Envelope(entry.pubsub_topic, entry.message, entry.message_hash))
        except PageLimitReached:
            _log.warning("%s has more than was fetched of what we missed", self.key)
        except (EndpointMissing, NoPeers):
            pass  # the other node keeps nothing
        except WakuError as error:
            raise LinkLost(f"{self.key}: {error}") from error
        self._last_contact_ns = now_ns

    def _receive_missed(self, envelope: Envelope) -> None:
        self._node.receive(envelope, self.key)


def _json(answer: httpx.Response) -> object:
    """The JSON value of an answer.

    Raises:
        ValueError: it has none.
    """
    try:
        value: object = answer.json()
    except RecursionError:  # brackets only
        raise ValueError("JSON nested too deeply") from None
    return value


def _batch(value: object) -> tuple[list[Envelope], int]:
    """The messages of an answer, and the number of the last one.

    Raises:
        ValueError: it is no such answer.
    """
    match value:
        case {"messages": [*messages], "last": int(last)}:
            return [Envelope.from_json(message) for message in messages], last
    raise ValueError("expected messages and the number of the last one")
