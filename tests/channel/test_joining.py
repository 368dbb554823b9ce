"""Joining a conversation that has gone on for long."""

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageLost, MessageReceived, MessageSent
from reliable_channel.transport import MemoryNetwork

from .world import listening, make_channel, now_ns

pytestmark = pytest.mark.anyio


def joining(**values: object) -> ChannelOptions:
    return ChannelOptions(retrieve_frequency_ms=500, **values)  # type: ignore[arg-type]


async def test_who_wants_all_gets_all_in_order() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=joining())
    async with alice:
        for number in range(300):
            await alice.send(b"%d" % number)
        late = make_channel(network.transport(), "late", options=joining())
        async with listening(late) as told:
            await told.until(lambda: len(told.contents) == 300)
            assert told.contents == [b"%d" % number for number in range(300)]
            assert late.log_digest() == alice.log_digest()


async def test_who_wants_none_takes_part_at_once(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=joining())
    async with listening(alice) as heard:
        for number in range(100):
            await alice.send(b"%d" % number)
        await anyio.sleep(1)  # 100 messages in one virtual moment put their clock ahead
        late = make_channel(network.transport(), "late", options=joining(history="none"))
        before_ns = now_ns()
        async with listening(late) as told:
            await alice.send(b"now")
            assert (await told.first(MessageReceived)).content == b"now"
            assert now_ns() - before_ns < 1_000_000_000
            await late.send(b"me too")
            await heard.until(lambda: b"me too" in heard.contents)
            # What it did not ask for is neither delivered nor missed, however long it waits.
            await told.until(lambda: now_ns() - before_ns > 900_000_000_000, within_s=2_000)
            assert told.contents == [b"now"]
            assert told.of(MessageLost) == []
            assert late.sync_status.state == "synced"


async def test_who_wants_some_gets_what_was_said_since(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=joining())
    async with listening(alice) as said:
        await alice.send(b"long ago")
        began_ns = now_ns()
        await said.until(lambda: now_ns() - began_ns > 3_600_000_000_000, within_s=5_000)
        since_ms = now_ns() // 1_000_000
        await alice.send(b"lately")
        options = joining(history="since", history_since_ms=since_ms)
        late = make_channel(network.transport(), "late", options=options)
        async with listening(late) as told:
            await told.until(lambda: b"lately" in told.contents)
            assert told.contents == [b"lately"]
            assert late.sync_status.state == "synced"


async def test_what_is_lost_right_after_joining_is_still_found() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=joining())
    late = make_channel(
        network.transport(), "late", options=joining(history="none"), drop_incoming=0
    )
    async with listening(alice) as own, listening(late) as told:
        await alice.send(b"before")
        late.cut_off(True)
        await alice.send(b"lost at first")
        await own.until(lambda: len(own.of(MessageSent)) == 2)
        late.cut_off(False)
        await alice.send(b"refers to it")
        wanted = {b"lost at first", b"refers to it"}
        await told.until(lambda: wanted <= set(told.contents))
