"""The filter service: who gets which messages pushed (12/WAKU2-FILTER)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from waku.node.clients import Client, TopicMap
from waku.node.envelope import Envelope

__all__ = ["Criterion", "FilterRefused", "FilterService"]

Criterion: TypeAlias = tuple[str, str]
"""Pubsub topic and content topic."""

MAX_TOPICS_PER_REQUEST: Final = 100
MAX_CRITERIA_PER_SUBSCRIBER: Final = 1000


class FilterRefused(Exception):
    """The service refuses; `status` is that of the protocol, and of HTTP."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.description = description


class FilterService:
    """Pushes messages to the clients of this node and, in-process, of nodes joined to it.

    DIVERGES: nwaku forgets a subscriber that has not pinged for five minutes; here a subscription
    lasts as long as its client.
    """

    def __init__(self) -> None:
        self._subscriptions: TopicMap[Criterion] = TopicMap()

    def ping(self, subscriber: Client) -> None:
        """Do nothing for a subscriber.

        Raises:
            FilterRefused: it has no subscription.
        """
        if not self._subscriptions.topics_of(subscriber):
            raise FilterRefused(404, "NOT_FOUND: peer has no subscriptions")

    def subscribe(self, subscriber: Client, criteria: Iterable[Criterion]) -> None:
        """Add criteria.

        Raises:
            FilterRefused: too many of them.
        """
        wanted = _checked(criteria)
        if len(wanted | self._criteria_of(subscriber)) > MAX_CRITERIA_PER_SUBSCRIBER:
            text = "SERVICE_UNAVAILABLE: peer has reached maximum number of filter criteria"
            raise FilterRefused(503, text)
        for criterion in wanted:
            self._subscriptions.add(criterion, subscriber)

    def unsubscribe(self, subscriber: Client, criteria: Iterable[Criterion]) -> None:
        """Remove criteria.

        Raises:
            FilterRefused: too many of them, or none was subscribed to.
        """
        unwanted = _checked(criteria)
        removed = [self._subscriptions.remove(criterion, subscriber) for criterion in unwanted]
        if not any(removed):
            raise FilterRefused(404, "NOT_FOUND: peer has no subscriptions")

    def unsubscribe_all(self, subscriber: Client) -> None:
        """Remove every criterion of a subscriber.

        Raises:
            FilterRefused: it has none.
        """
        self.ping(subscriber)
        self.drop(subscriber)

    def drop(self, subscriber: Client) -> None:
        """Forget a subscriber, if it is one."""
        for criterion in self._subscriptions.topics_of(subscriber):
            self._subscriptions.remove(criterion, subscriber)

    def deliver(self, envelope: Envelope) -> None:
        """Push a message to its subscribers; the cost is their number."""
        criterion = (envelope.pubsub_topic, envelope.message.content_topic)
        for subscriber in self._subscriptions.clients_of(criterion):
            subscriber.filter_cache.add(envelope.hash, envelope.pubsub_topic, envelope.message)

    def criteria_by_peer(self) -> Mapping[str, list[Criterion]]:
        """Return the criteria of each node that has subscribers here."""
        found: dict[str, dict[Criterion, None]] = {}
        for subscriber in self._subscriptions.clients:
            found.setdefault(subscriber.peer_id, {}).update(self._criteria_of(subscriber))
        return {peer_id: list(criteria) for peer_id, criteria in found.items()}

    def _criteria_of(self, subscriber: Client) -> dict[Criterion, None]:
        return dict.fromkeys(self._subscriptions.topics_of(subscriber))


def _checked(criteria: Iterable[Criterion]) -> dict[Criterion, None]:
    """What a request names, each once; as in nwaku, it is counted before.

    Raises:
        FilterRefused: too many.
    """
    named = list(criteria)
    if len(named) > MAX_TOPICS_PER_REQUEST:
        text = f"BAD_REQUEST: exceeds maximum content topics: {MAX_TOPICS_PER_REQUEST}"
        raise FilterRefused(400, text)
    return dict.fromkeys(named)
