"""A node of the library from its creation to its end, through any number of runs."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from waku import WakuMessage
from waku.node import ArchiveError, BadAddress, CannotListen

from .config import NodeConfig
from .events import Emit
from .failures import Refused, first_alone
from .messaging import shard_of
from .records import node_key
from .running import INFO_IDS, RunningNode

__all__ = ["DeliveryNode"]

ATTEMPTS: Final = 5
"""To get a free port that no other thread takes at the same time."""


class DeliveryNode:
    """What a `NodeWrapper` drives in an event loop: `live` is a task, the rest are calls.

    Every call raises `Refused` with the library's text where it does not do its job.

    Args:
        config: of the node.
        emit: takes events.
    """

    def __init__(self, config: NodeConfig, emit: Emit) -> None:
        self._config = config
        self._emit = emit
        self._topics: dict[str, None] = {}
        self._planned: dict[str, tuple[str, str]] = {}
        """Channels made before the start: content topic and sender id by channel id."""
        self._key = node_key("")
        self._tasks: TaskGroup | None = None
        self._running: RunningNode | None = None
        self._ending = anyio.Event()

    async def live(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold what runs, until `end`."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            await self._ending.wait()
            await self.stop()

    async def end(self) -> None:
        """Stop, and let `live` return."""
        self._ending.set()

    async def start(self) -> None:
        """Run the node; does nothing where it runs."""
        if self._running is not None:
            return
        for attempt in range(1, ATTEMPTS + 1):
            try:
                running = await self._run()
                break
            except (ArchiveError, BadAddress, CannotListen) as error:
                if self._config.tcp_port or attempt == ATTEMPTS:
                    raise Refused(f"failed to start: {error}") from error
        self._running = running
        planned, self._planned = self._planned, {}
        for channel_id, (content_topic, sender_id) in planned.items():
            with _prefixed("failed to start"):
                await running.channels.create(channel_id, content_topic, sender_id)
        running.join()

    async def stop(self) -> None:
        """Stop the node, and with it its channels; does nothing where it does not run."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def subscribe(self, content_topic: str) -> None:
        """Emit what comes on a content topic."""
        with _prefixed("Subscribe failed"):
            if self._running is not None:
                await self._running.messaging.subscribe(content_topic)
            else:
                shard_of(content_topic, self._config)
                self._topics[content_topic] = None

    async def unsubscribe(self, content_topic: str) -> None:
        with _prefixed("Unsubscribe failed"):
            if self._running is not None:
                await self._running.messaging.unsubscribe(content_topic)
            else:
                self._topics.pop(content_topic, None)

    async def send(self, message: Mapping[str, Any]) -> str:
        """Send a message of the messaging layer; return its request id."""
        if not isinstance(content_topic := message.get("contentTopic"), str):
            raise Refused("Missing contentTopic field")
        payload = _payload(message)
        ephemeral = message.get("ephemeral") is True
        with _prefixed("Send failed"):
            sending = WakuMessage(payload, content_topic, ephemeral=ephemeral)
            return await self._up().messaging.send(sending)

    async def channel_create(self, channel_id: str, content_topic: str, sender_id: str) -> str:
        """Make a channel; before the start it is opened with it."""
        with _prefixed("ChannelCreate failed"):
            if self._running is not None:
                return await self._running.channels.create(channel_id, content_topic, sender_id)
            if channel_id in self._planned:
                raise Refused(f"channel already exists: {channel_id}")
            self._planned[channel_id] = (content_topic, sender_id)
            return channel_id

    async def channel_exists(self, channel_id: str) -> bool:
        """Whether there is a channel of that id."""
        if self._running is None:
            return channel_id in self._planned
        return self._running.channels.exists(channel_id)

    async def channel_send(self, channel_id: str, message: Mapping[str, Any]) -> str:
        """Send a message of a channel; return its request id.

        `ephemeral` changes nothing: the dialect of logos-delivery has no such messages.
        """
        payload = _payload(message)
        with _prefixed("ChannelSend failed"):
            return await self._up().channels.send(channel_id, payload)

    async def channel_close(self, channel_id: str) -> str:
        """Close a channel; its state stays. The library answers with an empty text."""
        with _prefixed("ChannelClose failed"):
            if self._running is not None:
                await self._running.channels.close(channel_id)
            elif self._planned.pop(channel_id, None) is None:
                raise Refused(f"unknown channel: {channel_id}")
        return ""

    async def info(self, info_id: str) -> str:
        """A fact about the node."""
        if info_id not in INFO_IDS:
            raise Refused(f"Invalid node info id: {info_id}")
        return self._up().info(info_id)

    def _up(self) -> RunningNode:
        if self._running is None:
            raise Refused("the node is not running: call start_node first")
        return self._running

    async def _run(self) -> RunningNode:
        running = RunningNode(self._config, self._key, self._topics, self._emit)
        assert self._tasks is not None, "live() holds what start() runs"
        with first_alone():
            await self._tasks.start(running.run)
        return running


@contextmanager
def _prefixed(what: str) -> Iterator[None]:
    try:
        yield
    except Refused as error:
        raise Refused(f"{what}: {error}") from error


def _payload(message: Mapping[str, Any]) -> bytes:
    """Raises Refused: it is missing, or no base64."""
    if "payload" not in message:
        raise Refused("Missing payload field")
    try:
        return b64decode(message["payload"], validate=True)
    except (TypeError, ValueError) as error:
        raise Refused(f"invalid payload format: {error}") from error
