"""Filter subscriptions of a light client, each registered with several peers. Each pushed message
is emitted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from waku._subscription_watchdog import SubscriptionWatchdog
from waku.errors import LocalError, WakuError
from waku.hashing import message_hash
from waku.libp2p.driver.link import now_ms
from waku.models import WakuMessage

from .codec import FilterRequest
from .events import (
    ClientEvent,
    MessageDropped,
    SubscriptionInterrupted,
    SubscriptionRenewed,
)
from .peer_book import Entry
from .protocols import MAX_CONTENT_TOPICS
from .service_peer import ServicePeer

__all__ = ["Pushed", "Subscription", "Subscriptions"]

RECENT: Final = 4_096
"""Number of recent messages that a subscription recognises when another peer pushes them again."""


class Pushed(NamedTuple):
    """Message that a filter peer pushed."""

    pubsub_topic: str
    message: WakuMessage
    message_hash: bytes


@dataclass(eq=False, slots=True)
class Subscription:
    """Subscription to content topics of one pubsub topic, and the peers that push their
    messages."""

    pubsub_topic: str
    content_topics: frozenset[str]
    inbox: MemoryObjectSendStream[Pushed]
    peers: set[Entry] = field(default_factory=set)
    is_kept: bool = False
    """True if a peer accepted the subscription, so that it is renewed from now on."""
    is_interrupted: bool = False
    recent: dict[bytes, None] = field(default_factory=dict)

    def is_new(self, digest: bytes) -> bool:
        """Note a pushed message. Return True if no peer has pushed the message recently."""
        if digest in self.recent:
            return False
        self.recent[digest] = None
        if len(self.recent) > RECENT:
            del self.recent[next(iter(self.recent))]
        return True


@dataclass(eq=False, slots=True)
class _Registration:
    """Subscriptions that go to a peer together, as it serves few filter requests."""

    wanted: dict[Subscription, None] = field(default_factory=dict)
    is_over: bool = False
    failure: WakuError | None = None


class Subscriptions:
    """Filter subscriptions of a light client."""

    def __init__(self, on_event: Callable[[ClientEvent], None]) -> None:
        self._on_event = on_event
        self._all: set[Subscription] = set()
        self._by_topic: dict[str, list[Subscription]] = {}
        self._known: dict[tuple[Entry, str], Counter[str]] = {}
        """Content topics that a peer knows on a shard, with the number of their subscriptions."""
        self._gathering: WeakKeyDictionary[ServicePeer, _Registration] = WeakKeyDictionary()
        """What waits for a peer that another registration is on its way to."""
        self._watchdog: dict[tuple[Entry, str], SubscriptionWatchdog] = {}
        """Own messages that a peer should push, by shard."""

    def __len__(self) -> int:
        return len(self._all)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription, which receives pushed messages from now on."""
        self._all.add(subscription)
        for topic in subscription.content_topics:
            self._by_topic.setdefault(topic, []).append(subscription)

    def discard(self, subscription: Subscription) -> None:
        """Remove a subscription, which gets no more messages."""
        self._all.discard(subscription)
        for entry in subscription.peers:
            self._watchdog.pop((entry, subscription.pubsub_topic), None)  # what it waited for
            self._uncount(entry, subscription)
        for topic in subscription.content_topics:
            self._by_topic[topic].remove(subscription)
            if not self._by_topic[topic]:
                del self._by_topic[topic]

    def take(
        self, pubsub_topic: str | None, message: WakuMessage, entry: Entry | None = None
    ) -> None:
        """Pass a pushed message to the subscriptions of its topics, if it is new to them."""
        hashed = digest = None
        for subscription in self._by_topic.get(message.content_topic, ()):
            topic = subscription.pubsub_topic
            if pubsub_topic not in (None, topic):
                continue
            if digest is None or hashed != topic:
                hashed, digest = topic, message_hash(topic, message)
                if entry is not None:
                    self._heard(entry, topic, digest)
            if not subscription.is_new(digest):
                continue
            try:
                subscription.inbox.send_nowait(Pushed(topic, message, digest))
            except anyio.WouldBlock:
                self._on_event(MessageDropped(topic, message.content_topic))

    def lacking(self, count: int) -> list[Subscription]:
        """Return the subscriptions that are registered with fewer than `count` peers."""
        return [one for one in self._all if one.is_kept and len(_pushing(one)) < count]

    def known_to(self, entry: Entry) -> list[Subscription]:
        """Return the subscriptions that are registered with a peer."""
        return [one for one in self._all if entry in one.peers]

    def forget(self, entry: Entry, reason: str) -> None:
        """Note that a peer is disconnected, or lost its subscriptions."""
        entry.deaf.clear()
        for key in [key for key in self._watchdog if key[0] is entry]:
            del self._watchdog[key]
        for subscription in self.known_to(entry):
            subscription.peers.discard(entry)
            self._uncount(entry, subscription)
            self._judge(subscription, reason)

    def forget_peers(self) -> None:
        """Note that all subscriptions must be registered with every peer again."""
        for subscription in self._all:
            subscription.peers.clear()
        self._known.clear()

    async def register(
        self, entry: Entry, peer: ServicePeer, wanted: Iterable[Subscription]
    ) -> None:
        """Ask a peer to push the messages of these subscriptions, in as few requests as possible.

        Topics that the peer already pushes for another subscription need no request. Registrations
        that come during a request to the peer are combined into the next request.

        Raises:
            WakuError: the peer refuses, or does not answer.
        """
        own = dict.fromkeys(wanted)
        together = self._gathering.setdefault(peer, _Registration())
        together.wanted.update(own)
        async with peer.subscribing:
            if self._gathering.get(peer) is together:
                del self._gathering[peer]
            if not together.is_over:
                try:
                    await self._ask(entry, peer, together.wanted)
                except WakuError as error:
                    together.failure = error
                together.is_over = True
            if together.failure is None:
                return
            if isinstance(together.failure, LocalError) and len(together.wanted) > len(own):
                await self._ask(entry, peer, own)  # the topic that is wrong may be another's
                return
            raise together.failure

    async def _ask(self, entry: Entry, peer: ServicePeer, wanted: Iterable[Subscription]) -> None:
        by_shard: dict[str, list[Subscription]] = {}
        for subscription in wanted:
            if subscription in self._all:
                by_shard.setdefault(subscription.pubsub_topic, []).append(subscription)
        for shard, subscriptions in by_shard.items():
            known = self._known.get((entry, shard), Counter())
            wished = {topic for one in subscriptions for topic in one.content_topics}
            topics = sorted(topic for topic in wished if topic not in known)
            for at in range(0, len(topics), MAX_CONTENT_TOPICS):
                part = topics[at : at + MAX_CONTENT_TOPICS]
                await peer.filter(FilterRequest.SUBSCRIBE, shard, part)
            for subscription in subscriptions:
                if entry not in subscription.peers and subscription in self._all:
                    subscription.peers.add(entry)
                    counts = self._known.setdefault((entry, shard), Counter())
                    counts.update(subscription.content_topics)
                subscription.is_kept = True
                self._judge(subscription, entry.deaf.get(shard, ""))

    def _judge(self, subscription: Subscription, reason: str) -> None:
        """Say when the last peer that pushes is gone or deaf, and when there is one again."""
        if bool(_pushing(subscription)) is not subscription.is_interrupted:
            return
        subscription.is_interrupted = not subscription.is_interrupted
        shard, topics = subscription.pubsub_topic, subscription.content_topics
        if subscription.is_interrupted:
            self._on_event(SubscriptionInterrupted(shard, topics, reason))
        else:
            reason = "no peer pushed messages for a while"
            self._on_event(SubscriptionRenewed(shard, topics, reason))

    # Deafness

    @contextmanager
    def publishing(self, pubsub_topic: str, message: WakuMessage) -> Iterator[None]:
        """Note that a message is being published, which subscribed peers should then push."""
        watchdogs = [
            self._watchdog.setdefault((entry, pubsub_topic), SubscriptionWatchdog())
            for one in self._by_topic.get(message.content_topic, ())
            if one.pubsub_topic == pubsub_topic
            for entry in one.peers
        ]
        if not watchdogs:
            yield
            return
        digest = message_hash(pubsub_topic, message)
        for watchdog in watchdogs:
            watchdog.publishing(digest)
        try:
            yield
        except BaseException:
            for watchdog in watchdogs:
                watchdog.not_published(digest)
            raise
        for watchdog in watchdogs:
            watchdog.published(digest, now_ms() / 1000)

    def _heard(self, entry: Entry, shard: str, digest: bytes) -> None:
        if (watchdog := self._watchdog.get((entry, shard))) is not None:
            watchdog.heard((digest,), now_ms() / 1000)
        if entry.deaf.pop(shard, None) is not None:
            for subscription in self.known_to(entry):
                self._judge(subscription, "")

    def deaf(self, now_s: float) -> list[tuple[Entry, str, str]]:
        """Find peers that push no messages on a shard although they should. Return the peers that
        were not found before, with the evidence.

        A deaf peer keeps its subscriptions, and is used again as soon as it pushes a message.
        """
        found = []
        for (entry, shard), watchdog in self._watchdog.items():
            if (silent_s := watchdog.deaf_for_s(now_s)) is None:
                continue
            reason = (
                f"peer {entry.peer_id} is deaf: nothing came for {silent_s:.0f} s, not even "
                f"{len(watchdog.not_echoed)} messages that were published here"
            )
            watchdog.restored()
            if shard not in entry.deaf:
                found.append((entry, shard, reason))
            entry.deaf[shard] = reason
            for subscription in self.known_to(entry):
                self._judge(subscription, reason)
        return found

    def _uncount(self, entry: Entry, subscription: Subscription) -> None:
        key = entry, subscription.pubsub_topic
        if (counts := self._known.get(key)) is not None:
            counts.subtract(subscription.content_topics)
            for topic in subscription.content_topics:
                if counts[topic] <= 0:
                    del counts[topic]
            if not counts:
                del self._known[key]

    async def unregister(
        self, subscription: Subscription, peers: Collection[tuple[Entry, ServicePeer]]
    ) -> None:
        """Unsubscribe from topics that no other subscription needs. The method sends no request to
        a disconnected peer."""
        for entry, peer in peers:
            async with peer.subscribing:
                known = self._known.get((entry, subscription.pubsub_topic), Counter())
                topics = subscription.content_topics - known.keys()
                if topics and peer.link.failure is None:
                    with suppress(WakuError):
                        await peer.filter(
                            FilterRequest.UNSUBSCRIBE, subscription.pubsub_topic, sorted(topics)
                        )


def _pushing(subscription: Subscription) -> list[Entry]:
    """The peers of a subscription that are not deaf."""
    shard = subscription.pubsub_topic
    return [entry for entry in subscription.peers if shard not in entry.deaf]
