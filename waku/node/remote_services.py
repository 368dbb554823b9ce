"""The services of a joined node, asked for this node's clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from waku.models import HASH_BYTES, StorePage, StoreQuery, WakuMessage
from waku.node.filter import FilterTable, in_requests
from waku.node.protocols import FILTER, LIGHTPUSH, STORE
from waku.node.service_codec import (
    FilterAction,
    FilterAsked,
    PushAsked,
    StoreAsked,
    page_of,
    refusal_of,
    taken_of,
)
from waku.node.service_link import NoAnswer, NotReached, ServiceLink
from waku.node.services import Criterion, ServiceRefused, Subscriber

__all__ = ["RemoteServices"]

T = TypeVar("T")

_UNREADABLE: Final = "decode_rpc_failure"
_EMPTY_CURSOR: Final = bytes(HASH_BYTES)


class RemoteServices:
    """`Services` of the node at the other end of a link.

    That node knows one subscriber, this node; which of our clients wants what stands in `table`.
    The refusals of this side have nwaku's words, too.
    """

    def __init__(self, link: ServiceLink, table: FilterTable) -> None:
        self._link = link
        self._table = table

    async def push(self, pubsub_topic: str, message: WakuMessage) -> int:
        """Publish through the node; return how many relay peers it reached.

        Raises:
            ServiceRefused: by the node, or it cannot be reached.
        """
        try:
            self._check_offered(LIGHTPUSH)
            answer = await self._link.ask(PushAsked(pubsub_topic, message))
        except NotReached:
            text = f"dial_failure: {self._link.peer_id} is not accessible"
            raise ServiceRefused(505, text, legacy="dial_failure") from None
        except NoAnswer:
            raise ServiceRefused(503, "Push request timed out") from None
        return _read(answer, taken_of, ServiceRefused(500, _UNREADABLE))

    async def query(self, query: StoreQuery) -> StorePage:
        """Return one page of the node's Store.

        Raises:
            ServiceRefused: by the node, or it cannot be reached, or its page is not to be used.
        """
        if query.cursor == _EMPTY_CURSOR:
            raise ServiceRefused(400, "BAD_REQUEST: invalid cursor")
        try:
            self._check_offered(STORE)
            answer = await self._link.ask(StoreAsked(query))
        except NotReached:
            raise ServiceRefused(504, f"PEER_DIAL_FAILURE: {self._link.peer_id}") from None
        except NoAnswer:
            raise ServiceRefused(500, "No history response received (timeout)") from None
        unreadable = ServiceRefused(300, f"BAD_RESPONSE: {_UNREADABLE}")
        return _read(answer, lambda fields: page_of(fields, query), unreadable, 300)

    async def ping(self, subscriber: Subscriber) -> None:
        """Return if a client is subscribed, and the node still knows this one.

        Raises:
            ServiceRefused: not, or it cannot be reached.
        """
        self._table.ping(subscriber)
        await self._ask("ping")

    async def subscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Have the node push what matches.

        Raises:
            ServiceRefused: too many criteria, or it cannot be reached.
        """
        added = self._table.subscribe(subscriber, criteria)  # first: a push may come at once
        try:
            await self._ask("subscribe", criteria)
        except ServiceRefused:
            if added:
                self._table.unsubscribe(subscriber, added)
            raise

    async def unsubscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """End the subscription; the node goes on to push what other clients want.

        Raises:
            ServiceRefused: none was subscribed to, or it cannot be reached.
        """
        await self._end(subscriber, self._table.unsubscribe(subscriber, criteria))

    async def unsubscribe_all(self, subscriber: Subscriber) -> None:
        """End all subscriptions of a client.

        Raises:
            ServiceRefused: it has none, or the node cannot be reached.
        """
        await self._end(subscriber, self._table.unsubscribe_all(subscriber))

    async def renew(self, criteria: Sequence[Criterion]) -> None:
        """Subscribe again to what clients want.

        Raises:
            ServiceRefused: as `subscribe`.
        """
        await self._ask("subscribe", criteria)

    def forget(self, criteria: Sequence[Criterion]) -> None:
        """End subscriptions of a client that is gone, without waiting."""
        for part in in_requests(self._unwanted(criteria)):
            self._link.send(FilterAsked("unsubscribe", tuple(part)))

    async def _end(self, subscriber: Subscriber, removed: Sequence[Criterion]) -> None:
        """Have the node push no longer what a client gave up; where that fails, it keeps it."""
        for part in in_requests(self._unwanted(removed)):
            try:
                await self._ask("unsubscribe", part)
            except ServiceRefused as refusal:
                if refusal.status != 404:  # the node has forgotten us, which is as good
                    for kept in in_requests(removed):
                        self._table.subscribe(subscriber, kept)
                    raise

    def _unwanted(self, criteria: Sequence[Criterion]) -> list[Criterion]:
        return [one for one in criteria if one not in self._table.criteria]

    async def _ask(self, action: FilterAction, criteria: Sequence[Criterion] = ()) -> None:
        try:
            self._check_offered(FILTER)
            answer = await self._link.ask(FilterAsked(action, tuple(criteria)))
        except NotReached:
            raise ServiceRefused(504, f"PEER_DIAL_FAILURE: {self._link.peer_id}") from None
        except NoAnswer:
            text = "SERVICE_UNAVAILABLE: Subscription request timed out"
            raise ServiceRefused(503, text) from None
        _read(answer, lambda _: None, ServiceRefused(500, f"BAD_RESPONSE: {_UNREADABLE}"))

    def _check_offered(self, protocol: str) -> None:
        if not self._link.offers(protocol):
            raise NotReached


def _read(
    answer: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], T],
    unreadable: ServiceRefused,
    *statuses: int,
) -> T:
    """Raises ServiceRefused: by the node, or `unreadable`."""
    try:
        if (refusal := refusal_of(answer, *statuses)) is not None:
            raise refusal
        return read(answer)
    except ValueError as error:
        raise unreadable from error
