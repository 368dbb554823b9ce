"""The network in memory, and the transport that loses on purpose."""

from typing import Any

import anyio
import pytest

from reliable_channel import BlockingReliableChannel, ChannelUnavailable, ReliableChannel
from reliable_channel.transport import (
    LossyTransport,
    MemoryNetwork,
    Source,
    StoreUnavailable,
    Transport,
    TransportError,
    memory,
)
from reliable_channel.transport.memory import BEHIND

pytestmark = pytest.mark.anyio


async def publish(transport: Transport, payload: bytes, timestamp_ns: int = 1) -> bytes:
    envelope = transport.envelope(payload, timestamp_ns=timestamp_ns, ephemeral=False)
    await transport.publish(envelope)
    return envelope.message_hash


async def test_everybody_gets_what_is_broadcast_the_sender_too() -> None:
    network = MemoryNetwork()
    transports = [network.transport() for _ in range(3)]
    for transport in transports:
        await transport.open()
    digest = await publish(transports[0], b"hello")
    for transport in transports:
        (received,) = (await transport.receive()).messages
        assert (received.payload, received.message_hash) == (b"hello", digest)
        assert received.source is Source.LIVE


async def test_who_left_gets_nothing_and_may_come_back() -> None:
    network = MemoryNetwork()
    alice, bob = network.transport(), network.transport()
    await bob.open()
    await bob.open()
    await bob.aclose()
    await bob.aclose()
    await publish(alice, b"missed")
    await bob.open()
    await publish(alice, b"heard")
    assert [m.payload for m in (await bob.receive()).messages] == [b"heard"]


async def test_the_store_keeps_what_is_not_ephemeral_by_hash_and_by_time() -> None:
    network = MemoryNetwork()
    alice = network.transport()
    digests = [await publish(alice, b"%d" % number, timestamp_ns=number) for number in range(1, 6)]
    ephemeral = alice.envelope(b"is typing", timestamp_ns=3, ephemeral=True)
    await alice.publish(ephemeral)
    found = await alice.by_hash([digests[3], ephemeral.message_hash, digests[0]])
    assert [(m.payload, m.source) for m in found] == [(b"4", Source.STORE), (b"1", Source.STORE)]
    spans = [m.payload async for page in alice.by_time(2, 4) for m in page]
    assert spans == [b"2", b"3", b"4"]


async def test_the_store_keeps_the_newest_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "STORE_LIMIT_BYTES", 10)
    network = MemoryNetwork()
    alice = network.transport()
    digests = [await publish(alice, payload) for payload in (b"four", b"four", b"more", b"six666")]
    assert digests[0] == digests[1]
    assert [m.payload for m in await alice.by_hash(digests[1:])] == [b"more", b"six666"]
    await publish(alice, b"longer than ten bytes")
    assert not network.store


async def test_the_hash_covers_payload_meta_and_time() -> None:
    alice = MemoryNetwork().transport()
    values = [(b"a", 1, b""), (b"b", 1, b""), (b"a", 2, b""), (b"a", 1, b"a")]
    made = [
        alice.envelope(payload, timestamp_ns=time, ephemeral=False, meta=meta)
        for payload, time, meta in values
    ]
    assert len({envelope.message_hash for envelope in made}) == 4
    assert {len(envelope.message_hash) for envelope in made} == {32}


async def test_a_publisher_leaves_the_others_a_turn_once_they_are_behind() -> None:
    network = MemoryNetwork()
    alice, bob, heard = network.transport(), network.transport(), list[int]()
    await bob.open()

    async def listen() -> None:
        while sum(heard) < 2 * BEHIND:
            heard.append(len((await bob.receive()).messages))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        for number in range(2 * BEHIND):
            await publish(alice, b"%d" % number)
    assert max(heard) <= BEHIND + 1, "the order of a turn is the event loop's"


async def test_while_it_is_away_everything_fails() -> None:
    network = MemoryNetwork()
    alice = network.transport()
    await alice.open()
    await publish(alice, b"before")
    network.away = True
    with pytest.raises(TransportError, match="away"):
        await publish(alice, b"hello")
    with pytest.raises(TransportError, match="away"):
        await network.transport().open()
    with pytest.raises(TransportError, match="away"):
        await alice.receive()
    with pytest.raises(StoreUnavailable):
        await alice.by_hash([])
    with pytest.raises(StoreUnavailable):
        assert [page async for page in alice.by_time(1, 2)]
    network.away = False
    assert [m.payload for m in (await alice.receive()).messages] == [b"before"]


async def test_the_share_that_is_lost_is_about_right_and_repeatable() -> None:
    lost = []
    for _ in range(2):
        network = MemoryNetwork()
        lossy = LossyTransport(network.transport(), drop_incoming=0.3, seed=5)
        await lossy.open()
        for number in range(1_000):
            await publish(lossy, b"%d" % number)
        kept = (await lossy.receive()).messages
        assert len(kept) + lossy.dropped == 1_000
        assert len(network.store) == 1_000
        lost.append(lossy.dropped)
    assert lost[0] == lost[1]
    assert 250 < lost[0] < 350


async def test_who_is_cut_off_neither_hears_nor_is_heard_and_does_not_know() -> None:
    network = MemoryNetwork()
    lossy = LossyTransport(network.transport(), drop_incoming=0, seed=0)
    await lossy.open()
    digest = await publish(network.transport(), b"stored")
    lossy.cut_off = True
    await publish(lossy, b"unheard")
    assert list((await lossy.receive()).messages) == []
    assert await lossy.by_hash([digest]) == []
    assert [page async for page in lossy.by_time(1, 2)] == []
    assert len(network.store) == 1
    lossy.cut_off = False
    assert [m.payload for m in await lossy.by_hash([digest])] == [b"stored"]
    assert [m.payload async for page in lossy.by_time(1, 2) for m in page] == [b"stored"]
    await lossy.aclose()
    await publish(network.transport(), b"after")
    with anyio.move_on_after(0.001) as scope:
        await lossy.receive()
    assert scope.cancelled_caught


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_a_share_outside_0_to_1_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="must be a share from 0 to 1"):
        LossyTransport(MemoryNetwork().transport(), drop_incoming=wrong, seed=0)


def test_a_named_network_is_for_one_event_loop_and_says_so() -> None:
    arguments: dict[str, Any] = {"node": "memory://here", "channel_id": "general"}
    with BlockingReliableChannel(sender_id="alice", **arguments) as alice:
        alice.send(b"hello")
        with BlockingReliableChannel(sender_id="bob", **arguments):
            pass  # blocking channels share an event loop
        with pytest.raises(ChannelUnavailable, match="memory://here is in use in another thread"):
            anyio.run(ReliableChannel(sender_id="carol", **arguments).open)
