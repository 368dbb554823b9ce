"""Light clients come and go, and a node keeps no descriptor and no object of theirs."""

import gc
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from waku.libp2p.driver import Stream
from waku.node import EmbeddedNode, ListenLimits, NodeOptions
from waku.p2p import codec
from waku.p2p.protocols import LIGHT_PUSH_3

from .around import SHARD, asked, dialled, listening, message, subscribe, until

AT_ONCE = 30
OPTIONS = NodeOptions(cache_capacity=10)  # full after the first turn
LIMITS = ListenLimits(connections=1_000, connections_by_address=1_000)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def objects() -> int:
    gc.collect()
    return sum(type(each).__module__.startswith("waku.") for each in gc.get_objects())


async def read(stream: Stream) -> None:
    while await stream.receive():
        pass


async def visit(node: EmbeddedNode, number: int) -> None:
    """Subscribe, push and leave: at the end, in the middle of a request, or without a word."""
    async with dialled(node, number, pushes=read) as link:
        topic = f"/churn/1/{number % 50}/proto"
        assert (await subscribe(link, [topic])).status == codec.OK
        # Not for Store, which is to grow with messages.
        sent = replace(message(number, 200, topic), ephemeral=True)
        await asked(link, LIGHT_PUSH_3, codec.encode_light_push("2", sent, SHARD))
        if number % 3 == 1:
            await link.open([LIGHT_PUSH_3]).send(b"\xff\x01half of a request")
        elif number % 3 == 2:
            link.close()


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count files elsewhere")
async def test_clients_that_come_and_go_leave_nothing_behind() -> None:
    async with listening(options=OPTIONS, limits=LIMITS) as node:
        before, kept = descriptors(), []
        for turn in range(4):
            async with anyio.create_task_group() as visitors:
                for number in range(AT_ONCE):
                    visitors.start_soon(visit, node, turn * AT_ONCE + number)
            await until(lambda: descriptors() <= before)
            await anyio.sleep(600)  # virtual: what is kept for a while is gone
            kept.append(objects())
    assert kept[1:] == kept[:1] * 3
