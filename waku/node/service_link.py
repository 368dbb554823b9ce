"""Services between two joined nodes: requests, answers and filter pushes over their link.

Both sides of a link may ask, whichever of them dialled. A request waits in the outbox of its link
among the messages of the relay, and so does its answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio

from waku import _json
from waku.models import StorePage
from waku.node.budget import Budget
from waku.node.envelope import Envelope, carried_size
from waku.node.mesh import MAX_TEXT, PeerInfo
from waku.node.outbox import Outbox, ServiceItem
from waku.node.service_codec import (
    FilterAsked,
    PushAsked,
    Request,
    StoreAsked,
    answer_json,
    fitting,
    pushed_json,
    request_json,
    request_of,
)
from waku.node.services import ServiceRefused, Services, Subscriber
from waku.node.store import ArchiveUnavailable
from waku.node.sync_codec import SYNC_SERVICES

if TYPE_CHECKING:
    from waku.node.options import NodeOptions
    from waku.node.store_sync import StoreSync

__all__ = ["NoAnswer", "NotReached", "ServiceLink"]

MAX_PENDING: Final = 100
"""Requests of ours that one node may keep waiting."""

_log = logging.getLogger("waku.node.mesh")


class NotReached(Exception):
    """The node at the other end is away, or went away before it answered."""


class NoAnswer(Exception):
    """The node at the other end did not answer in time."""


class _Carrier(Protocol):
    """The link below."""

    outbox: Outbox

    @property
    def key(self) -> str: ...

    @property
    def info(self) -> PeerInfo | None: ...

    @property
    def connected(self) -> bool: ...

    def note_topic(self, pubsub_topic: str, *, follows: bool) -> None: ...


class ServiceLink:
    """Asks the node at the other end of a link, and answers what it asks.

    To the filter table of this node it is the subscriber at the other end.

    Args:
        carrier: the link below.
        options: of this node, for the limits.
        services: what this node does for the other one.
        sync: its store synchronisation; None where it has none.
        take_push: takes what the other one's filter pushes.
    """

    def __init__(
        self,
        carrier: _Carrier,
        options: NodeOptions,
        services: Services,
        sync: StoreSync | None,
        take_push: Callable[[Envelope], None],
    ) -> None:
        self._carrier = carrier
        self._options = options
        self._services = services
        self._sync = sync
        self._take_push = take_push
        self._pending: dict[int, _Pending] = {}
        self._asked = 0
        self._budget = Budget(options.service_requests_per_s)

    @property
    def peer_id(self) -> str:
        """The node at the other end; its address until it has introduced itself."""
        return self._carrier.key if self._carrier.info is None else self._carrier.info.peer_id

    def offers(self, protocol: str) -> bool:
        """Whether the node is connected, and names a protocol among its own."""
        info = self._carrier.info
        return self._carrier.connected and info is not None and protocol in info.protocols

    async def ask(self, request: Request | Mapping[str, object]) -> Mapping[str, Any]:
        """Return the answer to a request, unread; one of store synchronisation is written already.

        Raises:
            NotReached: the node is away.
            NoAnswer: it does not answer in time, or has too many of our requests already.
        """
        if not self._carrier.connected:
            raise NotReached
        if len(self._pending) >= MAX_PENDING:
            raise NoAnswer
        self._asked += 1
        written = request if isinstance(request, Mapping) else request_json(request)
        fields = {"kind": "ask", "id": self._asked, **written}
        pending = _Pending(ServiceItem.of(fields))
        self._pending[self._asked] = pending
        number = self._asked
        self._carrier.outbox.put(pending.item)
        try:
            with anyio.move_on_after(self._options.peer_timeout_s):
                await pending.done.wait()
        finally:
            del self._pending[number]
            pending.item.value = None  # if it still waits, nobody wants the answer any more
        if pending.answer is not None:
            return pending.answer
        raise NotReached if pending.done.is_set() else NoAnswer

    def send(self, request: Request) -> None:
        """Ask without waiting for an answer."""
        self._carrier.outbox.put(ServiceItem.of({"kind": "ask", "id": 0, **request_json(request)}))

    def lost(self) -> None:
        """Give up the requests under way."""
        for pending in self._pending.values():
            pending.done.set()

    def push(self, envelope: Envelope) -> None:
        """Keep a message that filter pushes to the node until it takes it."""
        size_bytes = carried_size(envelope.pubsub_topic, envelope.message)
        self._carrier.outbox.put(ServiceItem(pushed_json(envelope), size_bytes))

    def announce(self, pubsub_topic: str, *, follows: bool) -> None:
        """Note at the other node that this one follows a pubsub topic, or no longer."""
        fields = {"kind": "topic", "topic": pubsub_topic, "follows": follows}
        self._carrier.outbox.put(ServiceItem.of(fields))

    async def take(self, item: object) -> None:
        """Take a request, an answer, a filter push or a topic of the other node.

        Raises:
            ValueError: it is none of them.
        """
        fields = _json.object_of(item)
        match fields:
            case {"kind": "push"}:
                self._take_push(Envelope.from_json(fields))
            case {"kind": "topic", "topic": str(topic), "follows": bool(follows)}:
                if len(topic) <= MAX_TEXT:
                    self._carrier.note_topic(topic, follows=follows)
            case {"kind": "answer", "id": int(number)}:
                pending = self._pending.get(number)
                if pending is not None:  # else it comes too late
                    pending.answer = fields
                    pending.done.set()
            case {"kind": "ask", "id": int(number)}:
                answer = await self._answer(fields)
                self._carrier.outbox.put(ServiceItem.of({"kind": "answer", "id": number, **answer}))
            case _:
                raise ValueError("not a request, an answer or a filter push")

    async def _answer(self, item: Mapping[str, Any]) -> dict[str, object]:
        if not self._budget.takes(self._options.now_ns()):
            _log.info("%s asks too much; its requests are refused for now", self._carrier.key)
            return answer_json(ServiceRefused(429, "TOO_MANY_REQUESTS"))
        try:
            if self._sync is not None and item.get("service") in SYNC_SERVICES:
                return self._sync.answer(item)
            request = request_of(item)
        except ValueError as error:
            return answer_json(ServiceRefused(400, f"BAD_REQUEST: {error}"))
        except ArchiveUnavailable as error:
            return answer_json(ServiceRefused(503, str(error)))
        try:
            return answer_json(await served(request, self._services, self))
        except ServiceRefused as refusal:
            return answer_json(refusal)


async def served(
    request: Request, services: Services, subscriber: Subscriber
) -> int | StorePage | None:
    """Do what a light client asks: the number of peers, a page, or nothing for filter.

    Raises:
        ServiceRefused: as `services`.
    """
    match request:
        case PushAsked(pubsub_topic, message):
            return await services.push(pubsub_topic, message)
        case StoreAsked(query):
            return fitting(await services.query(query), ascending=query.ascending)
        case FilterAsked("ping"):
            await services.ping(subscriber)
        case FilterAsked("subscribe", criteria):
            await services.subscribe(subscriber, criteria)
        case FilterAsked("unsubscribe", criteria):
            await services.unsubscribe(subscriber, criteria)
        case FilterAsked("unsubscribe_all"):
            await services.unsubscribe_all(subscriber)
    return None


class _Pending:
    """A request of ours that has no answer yet."""

    __slots__ = ("answer", "done", "item")

    def __init__(self, item: ServiceItem) -> None:
        self.item = item
        self.done = anyio.Event()
        self.answer: Mapping[str, Any] | None = None
