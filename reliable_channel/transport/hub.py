"""Hub that serves many channels by few subscriptions.

Reading a node's cache empties the cache, and each read costs a request. Through a hub, a bot in 200
channels on 5 content topics reads 5 topics, not 200. The hub gives a message to the channel that
the message names. An encrypted message that the hub cannot read goes to all channels of its topic.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from types import TracebackType
from typing import Final, Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from .._notifier import Notifier
from .base import (
    BaseTransport,
    Batch,
    Envelope,
    NodeHealth,
    Received,
    Transport,
    TransportError,
)
from .hub_store import TopicStore

__all__ = ["Hub", "HubTransport"]

QUEUE_LIMIT: Final = 10_000
"""Maximum number of messages that wait for one channel. The oldest messages are dropped and can be
fetched from Store."""
RETRY_S: Final = 0.5

ChannelOf = Callable[[bytes], str | None]
"""Function that returns the channel id in a payload, or None if the payload cannot be read."""


class Hub:
    """Hub with one subscription for each content topic, which channels share. Open the hub with
    `async with` before the channels.

    Args:
        connect: makes a transport for a content topic; the hub opens and closes it.
        channel_of: reads the channel id of a payload, so that a message goes to one channel.
    """

    def __init__(self, connect: Callable[[str], Transport], channel_of: ChannelOf) -> None:
        self._connect = connect
        self.channel_of = channel_of
        self._topics: dict[str, _Topic] = {}
        self._tasks: TaskGroup | None = None

    def transport(self, content_topic: str, channel_id: str) -> "HubTransport":
        """Return the transport of one channel, for `ReliableChannel(transport=…)`."""
        return HubTransport(self, content_topic, channel_id)

    @property
    def content_topics(self) -> tuple[str, ...]:
        """Content topics that the hub reads now."""
        return tuple(sorted(self._topics))

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(kind, error, traceback)
        self._topics.clear()

    async def join(self, member: "HubTransport") -> "_Topic":
        """Add a channel to its content topic. The first channel of a topic opens the subscription.

        Raises:
            TransportError: the hub is not in use, or the node does not answer.
        """
        if self._tasks is None:
            raise TransportError("the hub is not open: use it in `async with`", retryable=False)
        topic = self._topics.get(member.content_topic)
        if topic is None:
            connect = partial(self._connect, member.content_topic)
            topic = self._topics[member.content_topic] = _Topic(connect, self.channel_of)
        topic.add(member)
        try:
            await topic.opened(self._tasks)
        except BaseException:  # also where the channel's opening is cancelled
            await self.leave(member)
            raise
        return topic

    async def leave(self, member: "HubTransport") -> None:
        """Remove a channel from its content topic. The last channel of a topic ends the
        subscription."""
        topic = self._topics.get(member.content_topic)
        if topic is None or member not in topic.members:
            return
        topic.remove(member)
        if not topic.members:
            del self._topics[member.content_topic]
            await topic.closed()


class _Topic:
    """One content topic: its subscription and its listeners."""

    def __init__(self, connect: Callable[[], Transport], channel_of: ChannelOf) -> None:
        self.members: dict[HubTransport, None] = {}
        self._by_channel: dict[str, list[HubTransport]] = {}
        self._connect = connect
        self._channel_of = channel_of
        self._transport: Transport | None = None
        self._store: TopicStore | None = None
        self._left = anyio.Event()
        self._closed = anyio.Event()
        self._lock = anyio.Lock()

    @property
    def transport(self) -> Transport:
        """The way to the nodes, of a topic that is open."""
        assert self._transport is not None
        return self._transport

    @property
    def store(self) -> TopicStore:
        """The Store of a topic that is open."""
        assert self._store is not None
        return self._store

    def add(self, member: "HubTransport") -> None:
        """Add a channel."""
        self.members[member] = None
        self._by_channel.setdefault(member.channel_id, []).append(member)

    def remove(self, member: "HubTransport") -> None:
        """Remove a channel."""
        del self.members[member]
        namesakes = self._by_channel[member.channel_id]
        namesakes.remove(member)
        if not namesakes:
            del self._by_channel[member.channel_id]

    async def opened(self, tasks: TaskGroup) -> None:
        """Open the subscription, once, and read it from then on."""
        async with self._lock:
            if self._transport is None:
                await tasks.start(self._live, name="reliable_channel.hub")

    async def closed(self) -> None:
        """End the subscription, if there is one."""
        self._left.set()
        if self._transport is not None:
            await self._closed.wait()

    async def _live(self, *, task_status: TaskStatus[None]) -> None:
        """Open, read and close in one task, which is not that of the first channel nor of the last
        one: a transport with tasks inside, such as a pool, is closed by the task that opened it."""
        async with AsyncExitStack() as stack:
            self._closed = anyio.Event()
            stack.callback(self._closed.set)
            transport = self._connect()
            stack.push_async_callback(transport.aclose)
            await transport.open()
            async with anyio.create_task_group() as tasks:
                self._store = TopicStore(transport, tasks, self._channel_of)
                self._transport = transport
                task_status.started()
                tasks.start_soon(self._read, transport)
                try:
                    await self._left.wait()
                finally:
                    self._store.close()
                tasks.cancel_scope.cancel()

    async def _read(self, transport: Transport) -> None:
        """Hand out what arrives, for ever."""
        while True:
            try:
                self._hand_out(await transport.receive())
            except TransportError as error:
                for member in self.members:
                    member.fail(error)
                await anyio.sleep(RETRY_S)

    def _hand_out(self, batch: Batch) -> None:
        by_channel: dict[str, list[Received]] = {}
        for_all: list[Received] = []
        for message in batch.messages:
            channel_id = self._channel_of(message.payload)
            if channel_id is None:
                for_all.append(message)
            else:
                by_channel.setdefault(channel_id, []).append(message)
        if for_all or batch.gap:
            for member in self.members:
                member.arrive([*by_channel.get(member.channel_id, ()), *for_all], batch.gap)
            return
        for channel_id, messages in by_channel.items():
            for member in self._by_channel.get(channel_id, ()):
                member.arrive(messages, "")


class HubTransport(BaseTransport):
    """Transport of one channel in a hub."""

    def __init__(self, hub: Hub, content_topic: str, channel_id: str) -> None:
        self.content_topic = content_topic
        self.channel_id = channel_id
        self._hub = hub
        self._topic: _Topic | None = None
        self._queue: deque[Received] = deque(maxlen=QUEUE_LIMIT)
        self._gap = ""
        self._error: TransportError | None = None
        self._changed = Notifier()

    async def open(self) -> None:
        if self._topic is None:
            self._topic = await self._hub.join(self)

    async def aclose(self) -> None:
        self._topic = None
        await self._hub.leave(self)

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        return self._shared().envelope(
            payload, timestamp_ns=timestamp_ns, ephemeral=ephemeral, meta=meta
        )

    async def publish(self, envelope: Envelope) -> Envelope | None:
        return await self._shared().publish(envelope)

    async def receive(self) -> Batch:
        """Wait for messages for this channel."""
        while not (self._queue or self._gap or self._error):
            await self._changed.wait()
        if self._error is not None:
            error, self._error = self._error, None
            raise TransportError(str(error), retryable=error.retryable) from error
        batch = Batch(list(self._queue), self._gap)
        self._queue.clear()
        self._gap = ""
        return batch

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        return self._ours(await self._shared().by_hash(hashes))

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch stored messages by time, in one query with other channels of the content topic."""
        transport, topic = self._shared(), self._topic
        assert topic is not None
        is_only = len(topic.members) == 1
        if is_only:
            pages = transport.by_time(start_ns, end_ns)
        else:
            pages = topic.store.by_time(self.channel_id, start_ns, end_ns)
        async with aclosing(pages):
            async for page in pages:
                yield self._ours(page) if is_only else page

    def renew(self) -> None:
        """Renew the subscription of the content topic, for all its channels."""
        self._shared().renew()

    def nodes(self) -> tuple[NodeHealth, ...]:
        return () if self._topic is None else self._topic.transport.nodes()

    async def nodes_changed(self) -> None:
        """Wait until the state of a node changes."""
        await self._shared().nodes_changed()

    def arrive(self, messages: Sequence[Received], gap: str) -> None:
        """Add messages for this channel to its queue. If the list of messages is empty, no task
        wakes up."""
        if not messages and not gap:
            return
        if len(self._queue) + len(messages) > QUEUE_LIMIT:
            gap = f"the channel is more than {QUEUE_LIMIT} messages behind"
        self._queue.extend(messages)
        self._gap = gap or self._gap
        self._changed.notify()

    def fail(self, error: TransportError) -> None:
        self._error = error
        self._changed.notify()

    def _ours(self, messages: Sequence[Received]) -> list[Received]:
        """Those of this channel, and those that cannot be read here."""
        channel_of = self._hub.channel_of
        return [m for m in messages if channel_of(m.payload) in (self.channel_id, None)]

    def _shared(self) -> Transport:
        if self._topic is None:
            raise TransportError(f"the hub's topic {self.content_topic} is not open")
        return self._topic.transport
