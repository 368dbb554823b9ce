"""What is refused for good is refused once."""

import anyio
import pytest

from reliable_channel import ChannelOptions
from reliable_channel.diagnostics import MessageRejected
from reliable_channel.transport import Envelope, MemoryNetwork

from .world import listening, make_channel, now_ns

pytestmark = pytest.mark.anyio


async def test_garbage_in_store_is_told_once_however_often_store_is_searched(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=ChannelOptions())
    bob = make_channel(network.transport(), "bob", options=ChannelOptions(), drop_incoming=0)
    async with alice, listening(bob) as told:
        network.broadcast(Envelope(b"garbage", now_ns(), False, b"g" * 32))
        bob.cut_off(True)
        lost = await alice.send(b"lost")
        await anyio.sleep(1)
        network.store = {b"g" * 32: network.store[b"g" * 32]}
        bob.cut_off(False)
        await alice.send(b"refers to it")
        await anyio.sleep(25)
        assert bob.statistics().sds.missing == 1
        assert bob.statistics().transport.store_queries > 3
        assert len(told.of(MessageRejected)) == 1
        assert lost.message_id not in {entry.message_id for entry in bob.log()}
