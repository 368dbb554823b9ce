"""Filter service with the criteria of each subscriber, and the pushes to it (12/WAKU2-FILTER)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from waku.node.clients import TopicMap
from waku.node.envelope import Envelope
from waku.node.mesh import SeenSet
from waku.node.services import Criterion, ServiceRefused, Subscriber

__all__ = ["MAX_TOPICS_PER_REQUEST", "FilterTable", "in_requests"]

MAX_TOPICS_PER_REQUEST: Final = 100
MAX_CRITERIA_PER_SUBSCRIBER: Final = 1000


class FilterTable:
    """Filter criteria of the subscribers, and the pushes of matching messages.

    As in nwaku, a message is not pushed again within two minutes, except to `repeats_to`.

    DIVERGES: nwaku removes a subscriber that has not pinged for five minutes. In this node a
    subscription lasts as long as its client, or as the connection to its node.

    Args:
        now_ns: the node's clock.
        repeats_to: a node whose clients get a message as often as it is published.
    """

    def __init__(self, now_ns: Callable[[], int], *, repeats_to: str | None = None) -> None:
        self._subscriptions: TopicMap[Criterion, Subscriber] = TopicMap()
        self._pushed = SeenSet(now_ns)
        self._repeats_to = repeats_to

    @property
    def criteria(self) -> Collection[Criterion]:
        """Criteria that have at least one subscriber."""
        return self._subscriptions.topics

    def ping(self, subscriber: Subscriber) -> None:
        """Raise an error unless the node is a subscriber.

        Raises:
            ServiceRefused: it has no subscription.
        """
        if not self._subscriptions.topics_of(subscriber):
            raise ServiceRefused(404, "NOT_FOUND: peer has no subscriptions")

    def subscribe(self, subscriber: Subscriber, criteria: Iterable[Criterion]) -> list[Criterion]:
        """Add criteria of a subscriber. Return the criteria that are new to the subscriber.

        Raises:
            ServiceRefused: too many of them.
        """
        wanted = _checked(criteria)
        if len(wanted | self._criteria_of(subscriber)) > MAX_CRITERIA_PER_SUBSCRIBER:
            text = "SERVICE_UNAVAILABLE: peer has reached maximum number of filter criteria"
            raise ServiceRefused(503, text)
        return [one for one in wanted if self._subscriptions.add(one, subscriber)]

    def unsubscribe(self, subscriber: Subscriber, criteria: Iterable[Criterion]) -> list[Criterion]:
        """Remove criteria of a subscriber. Return the criteria that the subscriber had.

        Raises:
            ServiceRefused: too many of them, or none was subscribed to.
        """
        unwanted = _checked(criteria)
        removed = [one for one in unwanted if self._subscriptions.remove(one, subscriber)]
        if not removed:
            raise ServiceRefused(404, "NOT_FOUND: peer has no subscriptions")
        return removed

    def unsubscribe_all(self, subscriber: Subscriber) -> list[Criterion]:
        """Remove all criteria of a subscriber, and return them.

        Raises:
            ServiceRefused: it has none.
        """
        self.ping(subscriber)
        return self.drop(subscriber)

    def drop(self, subscriber: Subscriber) -> list[Criterion]:
        """Remove a subscriber, and return its criteria (empty if it is unknown)."""
        criteria = list(self._subscriptions.topics_of(subscriber))
        for criterion in criteria:
            self._subscriptions.remove(criterion, subscriber)
        return criteria

    def deliver(self, envelope: Envelope) -> None:
        """Push a message to the subscribers whose criteria match. The time grows with the number of
        these subscribers."""
        criterion = (envelope.pubsub_topic, envelope.message.content_topic)
        subscribers = self._subscriptions.clients_of(criterion)
        if not subscribers:
            return
        is_new = self._pushed.add(envelope.hash)
        for subscriber in subscribers:
            if is_new or subscriber.peer_id == self._repeats_to:
                subscriber.push(envelope)

    def criteria_by_peer(self) -> Mapping[str, list[Criterion]]:
        """Return the filter criteria of each node that is a subscriber."""
        found: dict[str, dict[Criterion, None]] = {}
        for subscriber in self._subscriptions.clients:
            found.setdefault(subscriber.peer_id, {}).update(self._criteria_of(subscriber))
        return {peer_id: list(criteria) for peer_id, criteria in found.items()}

    def _criteria_of(self, subscriber: Subscriber) -> dict[Criterion, None]:
        return dict.fromkeys(self._subscriptions.topics_of(subscriber))


def in_requests(criteria: Iterable[Criterion]) -> Iterator[list[Criterion]]:
    """Split a list of criteria into lists that fit into one request each."""
    left = iter(criteria)
    while part := list(islice(left, MAX_TOPICS_PER_REQUEST)):
        yield part


def _checked(criteria: Iterable[Criterion]) -> dict[Criterion, None]:
    """What a request names, each once; as in nwaku, it is counted before.

    Raises:
        ServiceRefused: too many.
    """
    named = list(criteria)
    if len(named) > MAX_TOPICS_PER_REQUEST:
        text = f"BAD_REQUEST: exceeds maximum content topics: {MAX_TOPICS_PER_REQUEST}"
        raise ServiceRefused(400, text)
    return dict.fromkeys(named)
