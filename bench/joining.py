"""Joining a channel with a history: messages of others lie in Store, and a newcomer opens it.

They are of 50 participants, of at most 1 kB, with ten references each, as channels with
`causal_history_size=10` write them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Final

import anyio

from reliable_channel import ReliableChannel
from reliable_channel.events import MessageReceived
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.wire import SpecCodec
from waku import LightClient, WakuMessage
from waku.topics import PubsubTopic, pubsub_topic_for

HISTORY: Final = 10_000
REFERENCES: Final = 10
PARTICIPANTS: Final = 50
AT_ONCE: Final = 8
PATIENCE_S: Final = 600


async def store_history(peer: str, channel_id: str, content_topic: str, count: int) -> None:
    """Publish the messages of a channel, so that the peer's Store has them."""
    shard = pubsub_topic_for(content_topic)
    payloads = history(channel_id, count)
    async with (
        LightClient(peer, cluster_id=1, shards=[PubsubTopic.parse(shard).shard]) as client,
        anyio.create_task_group() as tasks,
    ):

        async def publish() -> None:
            for payload in payloads:
                message = WakuMessage(payload, content_topic, timestamp=time.time_ns())
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


def history(channel_id: str, count: int) -> Iterator[bytes]:
    """The messages of a channel, in causal order."""
    random = Random(1)
    ids = [random.randbytes(32).hex() for _ in range(count)]
    codec = SpecCodec()
    for number in range(count):
        references = ids[max(0, number - REFERENCES) : number]
        message = Message(
            f"participant-{number % PARTICIPANTS}",
            ids[number],
            channel_id,
            1_700_000_000_000 + number,
            tuple(map(HistoryEntry, references)),
            None,
            (),
            random.randbytes(100),
        )
        yield codec.encode(message)
