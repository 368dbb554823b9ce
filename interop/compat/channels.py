"""The reliable channels of one running node, by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from reliable_channel import MessageReceived, ReliableChannel, ReliableChannelError, SendFailed
from reliable_channel.events import AnyEvent, MessageStored
from reliable_channel.transport import (
    Batch,
    Envelope,
    Received,
    TransportError,
    WakuSettings,
    WakuTransport,
)
from waku import WakuMessage
from waku.node import EmbeddedNode

from .config import NodeConfig
from .events import Emit, channel_message_error, channel_message_received, channel_message_sent
from .failures import Refused
from .messaging import IN_PROCESS, Messaging

__all__ = ["Channels"]

UNCONFIRMED: Final = 10_000
"""Maximum number of messages that wait to be seen in Store; the oldest ones are dropped."""


class NodeTransport(WakuTransport):
    """Waku through a node of this process; holds messages back while it has no peer.

    The node would deliver them to itself, and not pass them on to later peers. `messaging` emits
    each message before the channel gets it.
    """

    def __init__(
        self, node: EmbeddedNode, settings: WakuSettings, messaging: Messaging, *, has_store: bool
    ) -> None:
        super().__init__(IN_PROCESS, settings, app=node.app)
        self._has_store = has_store
        self._node = node
        self._messaging = messaging

    @property
    def has_store(self) -> bool:
        """True if the node's configuration has a Store."""
        return self._has_store

    async def publish(self, envelope: Envelope) -> None:
        """Publish where another node follows the topic.

        Raises:
            TransportError: there is none now, or as `WakuTransport.publish`.
        """
        if not self._node.mesh.followers(self.settings.shard):
            raise TransportError("NoPeersToPublish")
        self._messaging.own(envelope.message_hash)
        await super().publish(envelope)

    async def receive(self) -> Batch:
        """Bring what came, after it was emitted as received."""
        batch = await super().receive()
        if batch.messages:
            await self._messaging.read(self.settings.content_topic)
            self._emit(batch.messages)
        return batch

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Bring what Store has, after it was emitted as received."""
        found = await super().by_hash(hashes)
        self._emit(found)
        return found

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Bring what Store has, after it was emitted as received."""
        async with aclosing(super().by_time(start_ns, end_ns)) as pages:
            async for page in pages:
                self._emit(page)
                yield page

    def _emit(self, messages: Sequence[Received]) -> None:
        """Emit what messaging has not read: what came through filter, or from Store."""
        for received in messages:
            message = WakuMessage(
                received.payload,
                self.settings.content_topic,
                timestamp=received.timestamp_ns,
                meta=received.meta,
            )
            self._messaging.emit(received.message_hash, message)


@dataclass(slots=True)
class _Open:
    """A channel, and what its end takes."""

    content_topic: str
    channel: ReliableChannel
    closing: anyio.Event = field(default_factory=anyio.Event)
    closed: anyio.Event = field(default_factory=anyio.Event)
    requests: dict[str, str] = field(default_factory=dict)
    """Message id to request id, of what Store was not seen to have."""
    segments: Counter[str] = field(default_factory=Counter)
    """Request id to the number of such messages."""


class Channels:
    """Creates, holds and closes channels.

    Args:
        node: the running node.
        config: where their state lives, and how they behave.
        messaging: subscribes their content topics.
        tasks: where they run.
        emit: takes events.
    """

    def __init__(
        self,
        node: EmbeddedNode,
        config: NodeConfig,
        messaging: Messaging,
        tasks: TaskGroup,
        emit: Emit,
    ) -> None:
        self._node = node
        self._config = config
        self._messaging = messaging
        self._tasks = tasks
        self._emit = emit
        self._channels: dict[str, _Open] = {}

    def exists(self, channel_id: str) -> bool:
        """Whether it is between its creation and its end."""
        return channel_id in self._channels

    async def create(self, channel_id: str, content_topic: str, sender_id: str) -> str:
        """Open a channel and return its id.

        Raises:
            Refused: it exists, its content topic cannot be subscribed, or it cannot be opened.
        """
        if channel_id in self._channels:
            raise Refused(f"channel already exists: {channel_id}")
        try:
            await self._messaging.subscribe(content_topic)
        except Refused as error:
            raise Refused(f"failed to subscribe to content topic: {error}") from error
        try:
            made = _Open(content_topic, self._make(channel_id, content_topic, sender_id))
            self._channels[channel_id] = made
            await self._tasks.start(self._hold, made)
        except (ReliableChannelError, ValueError, OSError) as error:
            self._channels.pop(channel_id, None)
            raise Refused(str(error)) from error
        return channel_id

    async def send(self, channel_id: str, payload: bytes) -> str:
        """Send, and return the request id.

        Raises:
            Refused: an unknown channel, or nothing to send, or as `ReliableChannel.send`.
        """
        made = self._known(channel_id)
        if not payload:
            raise Refused("empty payload")
        try:
            request = await made.channel.send(payload)
        except ReliableChannelError as error:
            raise Refused(str(error)) from error
        made.requests.update(dict.fromkeys(request.message_ids, request.request_id))
        made.segments[request.request_id] = len(request.message_ids)
        while len(made.requests) > UNCONFIRMED:
            self._finish(made, next(iter(made.requests)))
        return request.request_id

    async def close(self, channel_id: str) -> None:
        """Close a channel; its content topic too, unless another one uses it.

        Raises:
            Refused: an unknown channel.
        """
        made = self._known(channel_id)
        del self._channels[channel_id]
        made.closing.set()
        await made.closed.wait()
        if all(other.content_topic != made.content_topic for other in self._channels.values()):
            await self._messaging.unsubscribe(made.content_topic)

    async def close_all(self) -> None:
        """Close every channel, side by side."""
        open_now, self._channels = list(self._channels.values()), {}
        for made in open_now:
            made.closing.set()
        for made in open_now:
            await made.closed.wait()

    def _known(self, channel_id: str) -> _Open:
        if channel_id not in self._channels:
            raise Refused(f"unknown channel: {channel_id}")
        return self._channels[channel_id]

    def _make(self, channel_id: str, content_topic: str, sender_id: str) -> ReliableChannel:
        config = self._config
        settings = WakuSettings(
            content_topic, cluster_id=config.cluster_id, num_shards=config.num_shards or 1
        )
        state = None
        if config.storage_path is not None:
            Path(config.storage_path).mkdir(parents=True, exist_ok=True)
            state = f"sqlite:///{config.storage_path}/{{channel_id}}-{{sender_id}}.db"
        return ReliableChannel(
            transport=NodeTransport(
                self._node,
                settings,
                self._messaging,
                has_store=config.store and config.reliability,
            ),
            channel_id=channel_id,
            sender_id=sender_id,
            content_topic=content_topic,
            options=config.channel_options,
            state=state,
        )

    async def _hold(
        self, made: _Open, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep a channel open until it is asked to close."""
        try:
            async with made.channel, anyio.create_task_group() as tasks:
                tasks.start_soon(self._emit_events, made)
                task_status.started()
                await made.closing.wait()
                tasks.cancel_scope.cancel()  # a channel that closes is silent
        finally:
            made.closed.set()

    async def _emit_events(self, made: _Open) -> None:
        async for event in made.channel.events():
            self._emit_event(made, event)

    def _emit_event(self, made: _Open, event: AnyEvent) -> None:
        channel_id = made.channel.channel_id
        match event:
            case MessageReceived(sender_id=sender_id, content=content):
                self._emit(channel_message_received(channel_id, sender_id, content))
            case MessageStored(message_id=message_id):
                if request_id := self._finish(made, message_id):
                    self._emit(channel_message_sent(channel_id, request_id))
            case SendFailed(request_id=request_id, reason=reason):
                self._emit(channel_message_error(channel_id, request_id, reason))

    @staticmethod
    def _finish(made: _Open, message_id: str) -> str | None:
        """Note that a segment is in Store; return its request's id where it was the last one."""
        request_id = made.requests.pop(message_id, None)
        if request_id is None:
            return None
        made.segments[request_id] -= 1
        if made.segments[request_id]:
            return None
        del made.segments[request_id]
        return request_id
