"""Joining a channel with a history: messages of others lie in Store, and a newcomer opens it.

They are of 50 participants. `SHORT` ones are of at most 1 kB, with ten references each, as channels
with `causal_history_size=10` write them; `DEFAULT` ones are what a channel writes by default: 200
references with hints and senders, and a bloom filter, 41 kB.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

import anyio

from reliable_channel import ChannelOptions, ReliableChannel
from reliable_channel.events import MessageReceived
from reliable_channel.sds.bloom import BloomParameters, RollingBloomFilter
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.wire import SpecCodec
from waku import LightClient, WakuMessage
from waku.hashing import message_hash
from waku.topics import PubsubTopic, pubsub_topic_for

HISTORY: Final = 10_000
PARTICIPANTS: Final = 50
AT_ONCE: Final = 8
PATIENCE_S: Final = 600


@dataclass(frozen=True, slots=True)
class Shape:
    """What the messages of a channel carry beside their content."""

    references: int
    is_full: bool
    """Hints and senders beside the ids, and a bloom filter."""


SHORT: Final = Shape(10, is_full=False)
DEFAULT: Final = Shape(ChannelOptions().causal_history_size, is_full=True)


async def store_history(
    peer: str, channel_id: str, content_topic: str, count: int, shape: Shape = SHORT
) -> None:
    """Publish the messages of a channel, so that the peer's Store has them."""
    shard = pubsub_topic_for(content_topic)
    messages = history(channel_id, content_topic, count, shape)
    async with (
        LightClient(peer, cluster_id=1, shards=[PubsubTopic.parse(shard).shard]) as client,
        anyio.create_task_group() as tasks,
    ):

        async def publish() -> None:
            for message in messages:
                await client.light_push(message, shard)

        for _ in range(AT_ONCE):
            tasks.start_soon(publish)


async def join_cost(
    peer: str, channel_id: str, content_topic: str, count: int
) -> tuple[float, float]:
    """Seconds, and CPU seconds of this process, until a newcomer was given every message."""
    begun, before = time.perf_counter(), time.process_time()
    with anyio.fail_after(PATIENCE_S):
        async with ReliableChannel(
            peer, channel_id=channel_id, sender_id="newcomer", content_topic=content_topic
        ) as channel:
            received = 0
            async for event in channel.events():
                received += isinstance(event, MessageReceived)
                if received == count:
                    break
            return time.perf_counter() - begun, time.process_time() - before


def history(
    channel_id: str, content_topic: str, count: int, shape: Shape = SHORT
) -> Iterator[WakuMessage]:
    """The messages of a channel, in causal order."""
    random = Random(1)
    codec, shard = SpecCodec(), pubsub_topic_for(content_topic)
    references: deque[HistoryEntry] = deque(maxlen=shape.references)
    bloom = RollingBloomFilter(BloomParameters()) if shape.is_full else None
    for number in range(count):
        message_id, sender_id = random.randbytes(32).hex(), f"participant-{number % PARTICIPANTS}"
        message = Message(
            sender_id,
            message_id,
            channel_id,
            1_700_000_000_000 + number,
            tuple(references),
            None if bloom is None else bytes(bloom),
            (),
            random.randbytes(100),
        )
        wrapped = WakuMessage(codec.encode(message), content_topic, timestamp=time.time_ns())
        yield wrapped
        if bloom is None:
            references.append(HistoryEntry(message_id))
        else:
            references.append(HistoryEntry(message_id, message_hash(shard, wrapped), sender_id))
            bloom.insert(message_id)
