"""The messaging layer above one running node, as logos-delivery has it below its channels.

Content topics are subscribed and read, and a message is sent until another node has it: through
relay, else light push. With reliability it is then looked up in Store.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import replace
from typing import Final, NoReturn

import anyio
from anyio.abc import TaskGroup, TaskStatus

from reliable_channel.sds.ids import RecentSet
from waku import StoreQuery, WakuClient, WakuMessage, message_hash, pubsub_topic_for
from waku.errors import InvalidTopic, NotSubscribed
from waku.node import EmbeddedNode, PublishRefused, ServiceRefused

from .config import NodeConfig
from .events import Emit, message_error, message_propagated, message_received, message_sent
from .failures import Refused

__all__ = ["IN_PROCESS", "Messaging", "shard_of"]

IN_PROCESS: Final = "http://node"
"""Where the node of this process is asked, past every socket."""

LOOK_S: Final = 0.1
"""How often the node's cache is read."""
RETRY_S: Final = 1.0
WINDOW_S: Final = 60.0
"""How long a message is tried, and how long Store is asked for it afterwards."""
ARCHIVE_S: Final = 3.0
"""Before each question to Store."""
UNREPEATABLE: Final = (400, 420, 500)
"""Refusals of light push that concern the message, as one that is too large."""
RECENT: Final = 10_000
"""Hashes kept to emit each message once."""
WINDOW_EXPIRED: Final = "Unable to send within retry time window"


def shard_of(content_topic: str, config: NodeConfig) -> str:
    """The pubsub topic on which a content topic travels.

    Raises:
        Refused: it has another shape, or the network no autosharding.
    """
    if config.num_shards is None:
        raise Refused("autosharding is not configured: give the node numShardsInNetwork")
    try:
        return pubsub_topic_for(
            content_topic, cluster_id=config.cluster_id, num_shards=config.num_shards
        )
    except InvalidTopic as error:
        raise Refused(error.detail) from error


class Messaging:
    """Topics, sends and what comes, for as long as `run` does.

    Args:
        node: the running node.
        config: relay or edge, with reliability or without.
        topics: the subscribed content topics, which outlive the node.
        emit: takes events.
    """

    def __init__(
        self, node: EmbeddedNode, config: NodeConfig, topics: dict[str, None], emit: Emit
    ) -> None:
        self._node = node
        self._config = config
        self._topics = topics
        self._emit = emit
        self._client = WakuClient(IN_PROCESS, app=node.app)
        self._tasks: TaskGroup | None = None
        self._known = RecentSet[bytes](RECENT)
        """Messages that were emitted, and own ones, which never are."""
        self._reading = anyio.Lock()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Read and send until cancelled."""
        async with self._client:
            await self._follow(*self._topics)
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                await self._keep_reading()

    async def subscribe(self, content_topic: str) -> None:
        """Read a content topic from now on.

        Raises:
            Refused: it has no shard.
        """
        shard_of(content_topic, self._config)
        await self._follow(content_topic)
        self._topics[content_topic] = None

    async def unsubscribe(self, content_topic: str) -> None:
        """Read it no longer.

        Raises:
            Refused: it has no shard.
        """
        shard_of(content_topic, self._config)
        self._topics.pop(content_topic, None)
        if self._config.relay:
            await self._client.relay_auto_unsubscribe([content_topic])

    async def send(self, message: WakuMessage) -> str:
        """Accept a message and return its request id; its result is emitted.

        Raises:
            Refused: its content topic cannot be subscribed.
        """
        if message.content_topic not in self._topics:
            try:
                await self.subscribe(message.content_topic)
            except Refused as error:
                raise Refused(f"Failed to auto-subscribe before sending: {error}") from error
        if self._tasks is None:
            raise Refused("the node is not running")
        request_id = secrets.token_hex(10)
        stamped = replace(message, timestamp=self._node.options.now_ns())
        self._tasks.start_soon(self._deliver, request_id, stamped)
        return request_id

    def own(self, digest: bytes) -> None:
        """This node sends a message: it is not emitted as received when it comes back."""
        self._known.add(digest)

    # -- what comes -------------------------------------------------------------------------------

    async def read(self, content_topic: str) -> None:
        """Emit what has come on a content topic so far; returns when all of it is emitted.

        A channel calls this before it takes what it was brought, so that `message_received` comes
        before the `channel_message_received` that it belongs to.
        """
        async with self._reading:
            try:
                messages = await self._client.relay_auto_messages(content_topic)
            except NotSubscribed:
                return  # unsubscribed meanwhile
            for message in messages:
                shard = shard_of(message.content_topic, self._config)
                self.emit(message_hash(shard, message), message)

    def emit(self, digest: bytes, message: WakuMessage) -> None:
        """Emit a message of others, once."""
        if self._known.add(digest):
            self._emit(message_received(digest, message))

    async def _follow(self, *content_topics: str) -> None:
        # An edge node has nothing to read from: only its own process could serve it filter.
        if self._config.relay:
            await self._client.relay_auto_subscribe(content_topics)

    async def _keep_reading(self) -> NoReturn:
        while True:
            for topic in list(self._topics) if self._config.relay else ():
                await self.read(topic)
            await anyio.sleep(LOOK_S)

    # -- what goes --------------------------------------------------------------------------------

    async def _deliver(self, request_id: str, message: WakuMessage) -> None:
        shard = shard_of(message.content_topic, self._config)
        digest = message_hash(shard, message)
        self.own(digest)
        with anyio.move_on_after(WINDOW_S) as window:
            try:
                while not await self._propagate(shard, message):  # noqa: ASYNC110 - peers come and go
                    await anyio.sleep(RETRY_S)
            except Refused as error:
                self._emit(message_error(request_id, digest, str(error)))
                return
        if window.cancelled_caught:
            self._emit(message_error(request_id, digest, WINDOW_EXPIRED))
            return
        self._emit(message_propagated(request_id, digest))
        if self._config.reliability and not message.ephemeral:
            with anyio.move_on_after(WINDOW_S):
                await anyio.sleep(ARCHIVE_S)
                while not await self._is_stored(digest):  # noqa: ASYNC110 - Store is polled
                    await anyio.sleep(ARCHIVE_S)
                self._emit(message_sent(request_id, digest))

    async def _propagate(self, shard: str, message: WakuMessage) -> bool:
        """Hand a message to other nodes; return whether there is one that took it.

        Raises:
            Refused: no node ever will.
        """
        try:
            self._node.check_size(message)
        except PublishRefused as error:
            raise Refused(str(error)) from error
        # Asked first: the node passes a message on once, and with nobody there that would be lost.
        if self._config.relay and self._node.mesh.followers(shard):
            return self._node.publish(shard, message, unfollowed=True) > 0
        for services in self._node.service_nodes.all("lightpush"):
            try:
                await services.push(shard, message)
            except ServiceRefused as refusal:
                if refusal.status in UNREPEATABLE:
                    raise Refused(refusal.description) from refusal
                continue
            return True
        return False

    async def _is_stored(self, digest: bytes) -> bool:
        """Ask the Stores of other nodes, one after the other."""
        query = StoreQuery(hashes=(digest,), include_data=False)
        for services in self._node.service_nodes.all("store"):
            with suppress(ServiceRefused):
                if (await services.query(query)).entries:
                    return True
        return False
