"""Access to one node's REST API for all content topics of a hub.

Each read costs a request, and a hub may have a thousand topics. nwaku keeps unread messages by
pubsub topic as well as by content topic. One read of a shard therefore returns the messages of all
its topics. Only one program can read such a cache. If a read returns a foreign topic, another
program reads there too, and the hub reads each topic alone. go-waku keeps unread messages by
subscription, so the hub reads each topic alone.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Literal

import anyio

from waku._request import Flavour
from waku.client import WakuClient
from waku.errors import NodeUnreachable, NotSubscribed, WakuError
from waku.models import WakuMessage

from .._notifier import Notifier
from .hub_queries import StoreQueries
from .polling import AdaptivePolling
from .relay_peers import RelayPeers

__all__ = ["HubNode", "ReadBy", "TopicReader"]

_log: Final = logging.getLogger("reliable_channel")

ReadBy = Literal["relay", "shard", "filter"]
"""API of a subscription, which is a content topic or a static shard by relay, or a filter."""
_Key = tuple[ReadBy, str, str | None]
"""API, shard, and the content topic of a lane that reads a single one."""
MIN_INTERVAL_MS: Final = 10
MAX_INTERVAL_MS: Final = 100
"""Longest time between two reads of a lane that was active a moment ago (ms)."""
ACTIVE_S: Final = 10.0
"""Time after a message in which its lane counts as active (s)."""
IDLE_LOOKS_PER_S: Final = 5
"""Maximum number of requests a second for all idle lanes together."""
MAX_IDLE_S: Final = 10.0
"""Longest time between two reads of a topic that is read alone (s)."""
MAX_SHARD_IDLE_S: Final = 1.0
"""Longest time between two reads of a shard, whose topics share one small cache (s)."""
SIGN_OF_LIFE_S: Final = 15.0
"""Longest wait of a topic's reader, after which the topic checks its subscription (s)."""
QUIET_S: Final = 60.0
"""Longest wait of a topic's reader that expects no messages (s)."""
RETRY_S: Final = 1.0
CHECKED_EVERY: Final = 10
"""Number of reads of a shard after which one topic is read alone, to check that the node serves
it."""
UNREAD: Final = 8
"""Number of own messages after which the lane with most of them is read at once. After twice as
many own messages, further messages wait. With `MAX_REQUESTS` more messages being sent, all of them
still fit into a node's cache."""
MAX_TOPICS: Final = 100
"""Maximum number of content topics in one request (12/WAKU2-FILTER)."""
UNSUBSCRIBES_EVERY_S: Final = 1.0
"""Time in which topics without a reader are collected before the hub unsubscribes (s)."""
UNSUBSCRIBE_LIMIT_S: Final = 5.0
"""Longest time that a new subscription waits until earlier subscriptions have ended (s)."""


class TopicReader:
    """Reader of one content topic's messages at a node."""

    def __init__(self, content_topic: str) -> None:
        self.content_topic: Final = content_topic
        self.gap = ""
        """Why messages may be missing before the next ones."""
        self._messages: list[WakuMessage] = []
        self._error: WakuError | None = None
        self._has_news = False
        self._is_quiet = False
        self._came = Notifier()

    async def read(self, *, is_quiet: bool = False) -> list[WakuMessage]:
        """Wait for messages of the content topic. An empty list shows that the node answers.

        Args:
            is_quiet: nothing is expected, so the wait may be longer.

        Raises:
            WakuError: the node does not answer, or has forgotten the subscription.
        """
        if not self._has_news:
            self._is_quiet = is_quiet
            await self._came.wait(QUIET_S if is_quiet else SIGN_OF_LIFE_S)
            self._is_quiet = False
        self._has_news = False
        messages, self._messages = self._messages, []
        error, self._error = self._error, None
        if error is not None and not messages:
            raise error
        return messages

    def take_gap(self) -> str:
        """Return, and then delete, the reason why messages before the last read may be missing."""
        gap, self.gap = self.gap, ""
        return gap

    def expect(self) -> None:
        """End a longer wait, because messages are expected from now on."""
        if self._is_quiet:
            self._notify()

    def put(self, messages: Sequence[WakuMessage], gap: str) -> None:
        """Give messages to the reader, or show with an empty list that the node answers."""
        self._messages += messages
        self.gap = gap or self.gap
        self._error = None
        self._notify()

    def fail(self, error: WakuError, *, is_certain: bool = True) -> None:
        """Note a failure that may have lost messages, and raise it in the reader if it is
        certain."""
        self.gap = self.gap or str(error)
        if is_certain:
            self._error = error
            self._notify()

    def _notify(self) -> None:
        self._has_news = True
        self._came.notify()


@dataclass(eq=False, slots=True)
class _Lane:
    """Topics that one look reads: those of a shard, or a single one."""

    read_by: ReadBy
    shard: str
    single: str | None
    """The content topic to read; None for the shard."""
    active_s: float
    """When messages came last, or a reader."""
    looked_s: float
    looks_at_s: float = 0.0
    """When to look next."""
    readers: dict[TopicReader, None] = field(default_factory=dict)
    polling: AdaptivePolling = field(
        default_factory=lambda: AdaptivePolling(
            min_interval_ms=MIN_INTERVAL_MS, max_interval_ms=MAX_INTERVAL_MS
        )
    )
    looks: int = 0
    requests: int = 1
    """Requests of the last look."""
    unread: int = 0
    """Own messages since the last look."""
    unechoed: int = 0
    """Own messages that did not come back so far."""
    failures: int = 0
    """Looks that failed in a row."""


class HubNode:
    """Node whose REST API the topics of a hub share. The method `run` reads messages until it is
    cancelled.

    Args:
        url: its address, without a token.
        client: its REST API; `aclose` closes it.
    """

    def __init__(self, url: str, client: WakuClient) -> None:
        self.client: Final = client
        self.queries: Final = StoreQueries(client.store)
        self._url = url
        self._lanes: dict[_Key, _Lane] = {}
        self._places: dict[TopicReader, _Key] = {}
        self._readers: dict[str, list[TopicReader]] = {}
        self._subscribed: set[str] = set()
        """Content topics of all readers so far; the node may still bring those that are closed."""
        self._reads_singly = False
        self._unneeded: dict[str, tuple[ReadBy, str]] = {}
        """Content topics to unsubscribe from, unless they have readers by then."""
        self._is_unneeded = Notifier()
        self._unsubscribing = anyio.Lock()
        self._subscribing = 0
        """Subscriptions that are being made."""
        self.revived_s: dict[str, float] = {}
        """When the subscription to a shard was made anew, since it was deaf."""
        self._peers: dict[str, RelayPeers] = {}
        self._changed = Notifier()
        self._unread = 0
        """Own messages that were published since the last look at their lanes."""
        self._looked = Notifier()
        self._unanswered = 0
        """Looks in a row that the node did not answer."""
        self.away = ""
        """Why no connection to the node can be made, until a look succeeds. A thousand channels
        that all try to connect would keep the program busy."""

    async def run(self) -> None:
        """Read each lane when a read is due, and end unused subscriptions, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_subscriptions, name="reliable_channel.hub_unsubscriber")
            await self._look_in_turns()

    async def _look_in_turns(self) -> None:
        while True:
            lane = min(self._lanes.values(), key=lambda lane: lane.looks_at_s, default=None)
            wait_s = None if lane is None else lane.looks_at_s - anyio.current_time()
            if lane is None or (wait_s is not None and wait_s > 0):
                await self._changed.wait(wait_s)
            else:
                await self._look(lane)

    async def aclose(self) -> None:
        """Unsubscribe from topics without a reader, and close the connections."""
        with anyio.move_on_after(1, shield=True):
            await self._unsubscribe()
        with anyio.move_on_after(1, shield=True):
            await self.client.aclose()

    def relay_peers(self, shard: str) -> RelayPeers:
        """Return the monitor of the node's mesh peers on a shard."""
        if shard not in self._peers:
            self._peers[shard] = RelayPeers(self.client, shard)
        return self._peers[shard]

    @asynccontextmanager
    async def subscribing(self) -> AsyncIterator[None]:
        """Hold off requests that end a subscription, so that none overtakes a new subscription."""
        self._subscribing += 1
        try:
            async with self._unsubscribing:  # until the earlier ones have ended
                pass
            yield
        finally:
            self._subscribing -= 1
            self._is_unneeded.notify()

    async def join(self, content_topic: str, shard: str, read_by: ReadBy) -> TopicReader:
        """Start to read a content topic that is subscribed.

        Raises:
            WakuError: the node does not answer.
        """
        flavour = await self.client.flavour()
        if flavour is Flavour.GO_WAKU:
            self._reads_singly = True
        reader = TopicReader(content_topic)
        self._subscribed.add(content_topic)
        self._readers.setdefault(content_topic, []).append(reader)
        self._place(reader, shard, read_by)
        return reader

    def leave(self, reader: TopicReader, *, unsubscribe: bool) -> None:
        """End a reader, and the subscription of its topic if no other reader uses that."""
        others = self._readers[reader.content_topic]
        others.remove(reader)
        if not others:
            del self._readers[reader.content_topic]
        key = self._places.pop(reader)
        lane = self._lanes[key]
        del lane.readers[reader]
        if not lane.readers:
            self._unread -= lane.unread
            del self._lanes[key]
        if unsubscribe and not (lane.readers if lane.read_by == "shard" else others):
            self._unneeded[reader.content_topic] = lane.read_by, lane.shard
            self._is_unneeded.notify()
        self._changed.notify()

    async def published(self, reader: TopicReader) -> None:
        """Note that an own message of a topic was published, which the node will return.

        A node's cache is small, so many own messages in a row wait for reads.
        """
        reader.expect()
        lane = self._lanes[self._places[reader]]
        lane.unread += 1
        lane.unechoed += 1
        self._unread += 1
        if self._unread >= UNREAD:
            fullest = max(self._lanes.values(), key=lambda lane: lane.unread)
            fullest.looks_at_s = 0.0
            self._changed.notify()
        if self._unread >= 2 * UNREAD:
            await self._looked.wait(RETRY_S)

    def revived(self, shard: str, why: str, now_s: float) -> None:
        """Note that a subscription was made again, for all topics of its shard."""
        self.revived_s[shard] = now_s
        for lane in self._lanes.values():
            if lane.shard == shard:
                for reader in lane.readers:
                    reader.put((), why)

    def _place(self, reader: TopicReader, shard: str, read_by: ReadBy) -> None:
        """Put a reader into its lane."""
        is_single = read_by == "filter" or (read_by == "relay" and self._reads_singly)
        single = reader.content_topic if is_single else None
        key = self._places[reader] = read_by, shard, single
        lane = self._lanes.get(key)
        if lane is None:
            now_s = anyio.current_time()
            lane = self._lanes[key] = _Lane(read_by, shard, single, now_s, now_s, now_s)
        lane.readers[reader] = None
        self._changed.notify()

    async def _look(self, lane: _Lane) -> None:
        lane.looks += 1
        self._unread -= lane.unread
        lane.unread = 0
        try:
            messages = await self._read(lane)
        except WakuError as error:
            self._failed(lane, error)
            return
        finally:
            self._looked.notify()
        self._unanswered, self.away = 0, ""
        if lane.failures:
            lane.failures = 0
            for reader in lane.readers:
                reader.put((), "")
        self._share_out(messages, lane)
        lane.looks_at_s = self._next_look_s(lane, len(messages))

    def _failed(self, lane: _Lane, error: WakuError) -> None:
        """Tell the readers; but only at the second time where the node may just be busy."""
        is_away = False
        if isinstance(error, NodeUnreachable):
            self._unanswered += 1
            is_away = self._unanswered > 1 or not error.timed_out
            self.away = "" if error.sent else str(error)
        # A node that is away fails all lanes at once, because their looks come in turns.
        for each in self._lanes.values() if is_away else (lane,):
            each.failures += 1
            each.looks_at_s = anyio.current_time() + RETRY_S
            is_certain = is_away or each.failures > 1 or not error.retryable
            for reader in each.readers:
                reader.fail(error, is_certain=is_certain)

    async def _read(self, lane: _Lane) -> list[WakuMessage]:
        """Take what waits for a lane."""
        if lane.single is not None:
            if lane.read_by == "filter":
                return await self.client.filter_messages(lane.single)
            return await self.client.relay_auto_messages(lane.single)
        if lane.read_by == "shard":
            return await self.client.relay_messages(lane.shard)
        messages, has_shard = [], True
        try:
            messages = await self.client.relay_messages(lane.shard)
        except NotSubscribed:  # nwaku says so as well before the first message
            has_shard = False
        lane.requests = 1
        if (not has_shard or lane.looks % CHECKED_EVERY == 0) and lane.readers:
            lane.requests = 2
            checked = next(iter(lane.readers))
            lane.readers[checked] = lane.readers.pop(checked)  # the next look checks another one
            try:
                messages += await self.client.relay_auto_messages(checked.content_topic)
            except WakuError as error:
                if not has_shard:
                    raise
                checked.fail(error)  # and keep what the first request took out of the cache
        return messages

    def _share_out(self, messages: Sequence[WakuMessage], lane: _Lane) -> None:
        """Give messages to the readers of their topics."""
        by_topic: dict[str, list[WakuMessage]] = {}
        for message in messages:
            by_topic.setdefault(message.content_topic, []).append(message)
        for topic, of_topic in by_topic.items():
            for reader in self._readers.get(topic, ()):
                reader.put(of_topic, "")
        if lane.polling.overflow_suspected(len(messages)):
            for reader in lane.readers:
                reader.put((), f"the cache held {len(messages)} messages")
        if lane.read_by == "relay" and lane.single is None and by_topic.keys() - self._subscribed:
            self._read_singly()

    def _read_singly(self) -> None:
        """Read each topic by itself from now on."""
        _log.warning(
            "the shards of %s carry other programs' messages: each topic of the hub is read by "
            "itself from now on, which costs a request for each; a libp2p address costs none",
            self._url,
        )
        self._reads_singly = True
        self._unread, lanes, self._lanes = 0, self._lanes, {}
        for key, lane in lanes.items():
            if lane.read_by != "relay":
                self._lanes[key], lane.unread = lane, 0
                continue
            for reader in lane.readers:
                self._place(reader, lane.shard, lane.read_by)

    def _next_look_s(self, lane: _Lane, count: int) -> float:
        now_s = anyio.current_time()
        wait_s = lane.polling.next_interval_ms(count, 1000 * (now_s - lane.looked_s)) / 1000
        lane.looked_s = now_s
        # Own messages come back, and are no sign that others will follow.
        echoes = min(count, lane.unechoed)
        lane.unechoed = lane.unechoed - echoes if count else 0
        if count > echoes:
            lane.active_s = now_s
        elif now_s - lane.active_s > ACTIVE_S:
            longest_s = MAX_SHARD_IDLE_S if lane.single is None else MAX_IDLE_S
            share_s = len(self._lanes) * lane.requests / IDLE_LOOKS_PER_S
            wait_s = max(wait_s, min(share_s, longest_s))
        return now_s + wait_s

    async def _end_subscriptions(self) -> None:
        """End those that no reader needs, from time to time, for ever."""
        while True:
            if not self._unneeded or self._subscribing:
                await self._is_unneeded.wait()
            else:
                await anyio.sleep(UNSUBSCRIBES_EVERY_S)
                if not self._subscribing:
                    with anyio.move_on_after(UNSUBSCRIBE_LIMIT_S):
                        await self._unsubscribe()

    async def _unsubscribe(self) -> None:
        """End subscriptions that no reader needs, many in one request."""
        async with self._unsubscribing:
            unneeded, self._unneeded = self._unneeded, {}
            together: dict[tuple[ReadBy, str], list[str]] = {}
            for topic, (read_by, shard) in unneeded.items():
                key = read_by, shard, None
                if not (key in self._lanes if read_by == "shard" else topic in self._readers):
                    together.setdefault((read_by, shard), []).append(topic)
            for (read_by, shard), topics in together.items():
                for at in range(0, len(topics), MAX_TOPICS):
                    part = topics[at : at + MAX_TOPICS]
                    with suppress(WakuError):
                        if read_by == "filter":
                            await self.client.filter_unsubscribe(part, shard)
                        elif read_by == "relay":
                            await self.client.relay_auto_unsubscribe(part)
                        else:
                            await self.client.relay_unsubscribe([shard])
