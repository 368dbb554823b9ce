"""Several nodes at once: nodes that die, lie, lag and have gaps."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel.transport import (
    Batch,
    MemoryNetwork,
    MemoryTransport,
    PoolTransport,
    Received,
    StoreUnavailable,
    TransportError,
)
from tests.channel.world import now_ns

from .nodes import Line, line, over

pytestmark = pytest.mark.anyio


class Node(MemoryTransport):
    """A way into a network through a node that can be made to fail."""

    def __init__(self, network: MemoryNetwork, name: str = "node") -> None:
        super().__init__(network)
        self.url = name
        self.down = False
        self.hangs = False
        self.refuses = False
        self.gap = ""
        self.published: list[bytes] = []
        self.asked: list[tuple[bytes, ...]] = []
        self.opened = self.closed = self.renewed = 0

    def check(self, error: type[TransportError] = TransportError) -> None:
        if self.down:
            raise error(f"{self.url} is down")

    async def open(self) -> None:
        self.opened += 1
        self.check()
        await super().open()

    async def aclose(self) -> None:
        self.closed += 1
        await super().aclose()

    async def publish(self, envelope: Any) -> None:
        self.check()
        if self.refuses:
            raise TransportError(f"{self.url} refuses", retryable=False)
        if self.hangs:
            await anyio.sleep_forever()
        self.published.append(envelope.payload)
        await super().publish(envelope)

    async def receive(self) -> Batch:
        await anyio.sleep(0.01)
        self.check()
        messages: Sequence[Received] = []
        with anyio.move_on_after(0):
            if self._arrived:
                messages = (await super().receive()).messages
        gap, self.gap = self.gap, ""
        return Batch(messages, gap)

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        self.asked.append(tuple(hashes))
        self.check(StoreUnavailable)
        return await super().by_hash(hashes)

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        self.check(StoreUnavailable)
        async for page in super().by_time(start_ns, end_ns):
            yield page

    def renew(self) -> None:
        self.renewed += 1


@asynccontextmanager
async def pool(*nodes: Any, **arguments: Any) -> AsyncIterator[PoolTransport]:
    it = PoolTransport(nodes, retry_s=0.02, **arguments)
    await it.open()
    try:
        yield it
    finally:
        await it.aclose()


async def all_open(it: PoolTransport) -> None:
    with anyio.fail_after(5):
        while any(node.state == "unsubscribed" for node in it.nodes()):
            await it.receive()


async def publish(it: Any, payload: bytes) -> bytes:
    envelope = it.envelope(payload, timestamp_ns=now_ns(), ephemeral=False)
    await it.publish(envelope)
    return bytes(envelope.message_hash)


async def arrived(it: PoolTransport, count: int) -> list[bytes]:
    found: list[bytes] = []
    with anyio.fail_after(10):
        while len(found) < count:
            found += [message.payload for message in (await it.receive()).messages]
    return found


async def gaps(it: PoolTransport, *, batches: int = 40) -> list[str]:
    return [gap for _ in range(batches) if (gap := (await it.receive()).gap)]


def three() -> tuple[MemoryNetwork, list[Node]]:
    network = MemoryNetwork()
    return network, [Node(network, name) for name in "abc"]


# -- sending ---------------------------------------------------------------------------------------


async def test_a_message_goes_to_as_many_nodes_as_the_redundancy_says() -> None:
    _, nodes = three()
    async with pool(*nodes) as it:
        await all_open(it)
        await publish(it, b"hello")
        assert [len(node.published) for node in nodes] == [1, 1, 0]
        assert await arrived(it, 1) == [b"hello"]
        assert [m for _ in range(30) for m in (await it.receive()).messages] == []


async def test_a_node_that_fails_is_replaced_at_once_and_passed_over_for_a_while() -> None:
    _, nodes = three()
    async with pool(*nodes) as it:
        await all_open(it)
        nodes[0].down = True
        await publish(it, b"hello")
        assert [len(node.published) for node in nodes] == [0, 1, 1]
        assert it.nodes()[0].last_error == "a is down"
        assert all(node.for_ms < 5_000 for node in it.nodes())
        nodes[0].down = False
        await all_open(it)
        await anyio.sleep(0.1)
        await publish(it, b"again")
        assert nodes[0].published == [b"again"]


async def test_a_node_that_hangs_holds_up_a_message_for_a_second_at_most(
    virtual_time: None,
) -> None:
    _, nodes = three()
    async with pool(*nodes) as it:
        await all_open(it)
        nodes[0].hangs = True
        with anyio.fail_after(1.1):
            await publish(it, b"hello")
        assert nodes[1].published == [b"hello"]
        assert it.nodes()[0].state == "failing"


async def test_a_refusal_is_for_good_where_all_nodes_say_so() -> None:
    _, nodes = three()
    async with pool(*nodes) as it:
        await all_open(it)
        nodes[0].refuses = nodes[1].refuses = True
        await publish(it, b"taken by the third")
        nodes[2].down = True
        with pytest.raises(TransportError, match="refuses") as passing:
            await publish(it, b"later")
        nodes[2].down, nodes[2].refuses = False, True
        with pytest.raises(TransportError, match="c refuses") as lasting:
            await publish(it, b"never")
        assert (passing.value.retryable, lasting.value.retryable) == (True, False)


# -- opening, and all down -------------------------------------------------------------------------


async def test_one_node_is_enough_to_open_and_the_others_join_later() -> None:
    _, nodes = three()
    nodes[0].down = nodes[1].down = True
    async with pool(*nodes) as it:
        assert [node.state for node in it.nodes()] == ["unsubscribed", "unsubscribed", "healthy"]
        await publish(it, b"hello")
        assert nodes[2].published == [b"hello"]
        nodes[0].down = nodes[1].down = False
        await all_open(it)


async def test_no_node_at_all_is_an_error_that_names_each_and_may_pass() -> None:
    _, nodes = three()
    for node in nodes:
        node.down = True
    it = PoolTransport(nodes)
    with pytest.raises(TransportError, match=r"a: a is down; b: b is down; c: c is") as error:
        await it.open()
    assert error.value.retryable
    with pytest.raises(TransportError, match="no node is connected"):
        await publish(it, b"hello")
    with pytest.raises(StoreUnavailable):
        await it.by_hash([b"\1" * 32])
    await it.aclose()
    await it.aclose()


async def test_all_down_is_told_and_passes() -> None:
    _, nodes = three()
    async with pool(*nodes) as it:
        await all_open(it)
        for node in nodes:
            node.down = True
        with pytest.raises(TransportError, match="no node answers"):
            while True:
                await it.receive()
        with pytest.raises(TransportError, match="a is down"):
            await publish(it, b"lost")
        with pytest.raises(StoreUnavailable, match="b is down"):
            assert [page async for page in it.by_time(1, 2)]
        for node in nodes:
            node.down = False
        with anyio.fail_after(5):
            while any(node.state == "unsubscribed" for node in it.nodes()):
                try:
                    await it.receive()
                except TransportError:
                    continue
        await publish(it, b"hello")
        assert await arrived(it, 1) == [b"hello"]


@pytest.mark.parametrize(("transports", "redundancy"), [([], 2), ([Node(MemoryNetwork())], 0)])
def test_a_pool_of_nothing_is_refused(transports: list[Node], redundancy: int) -> None:
    with pytest.raises(ValueError, match=r"^(`transports` is|`redundancy` must be) "):
        PoolTransport(transports, redundancy=redundancy)


async def test_nodes_whose_addresses_differ_in_the_tokens_alone_are_told_apart() -> None:
    network = MemoryNetwork()
    names = ["http://tokA@gw/", "http://b/", "http://tokB@gw/", "http://tokC@gw/"]
    it = PoolTransport([Node(network, name) for name in names])
    shown = ["http://***@gw/", "http://b/", "http://***@gw/ (2)", "http://***@gw/ (3)"]
    assert [node.address for node in it.nodes()] == shown


# -- gaps ------------------------------------------------------------------------------------------


async def test_a_gap_of_one_node_is_none_where_another_covered_it() -> None:
    _, nodes = three()
    async with pool(*nodes) as it:
        await all_open(it)
        await gaps(it, batches=6)
        nodes[0].gap = "the cache was full"
        assert await gaps(it) == []
        nodes[1].down = True
        await anyio.sleep(0.1)
        nodes[1].down = False
        assert await gaps(it) == []


async def test_a_gap_that_nobody_covered_is_told() -> None:
    network = MemoryNetwork()
    alone = Node(network, "a")
    async with pool(alone) as it:
        await gaps(it, batches=2)
        alone.gap = "the cache was full"
        assert await gaps(it) == ["a: the cache was full"]
    both = [Node(network, "a"), Node(network, "b")]
    async with pool(*both) as it:
        await all_open(it)
        await gaps(it, batches=4)
        both[0].gap = both[1].gap = "full"
        assert await gaps(it)


async def test_a_gap_is_told_where_the_node_that_covered_it_fails() -> None:
    network = MemoryNetwork()
    both = [Node(network, "a"), Node(network, "b")]
    async with pool(*both) as it:
        await all_open(it)
        await gaps(it, batches=4)
        both[0].gap, both[1].down = "full", True
        assert "a: full" in "; ".join(await gaps(it))


# -- Store -----------------------------------------------------------------------------------------


async def test_the_next_node_is_asked_for_what_the_first_does_not_have() -> None:
    ours, theirs = MemoryNetwork(), MemoryNetwork()
    first, second = Node(ours, "a"), Node(theirs, "b")
    async with pool(first, second, redundancy=1) as it:
        await all_open(it)
        one = await publish(first, b"one")
        two = await publish(second, b"two")
        found = await it.by_hash([one, two])
        assert [message.payload for message in found] == [b"one", b"two"]
        assert (first.asked, second.asked) == ([(one, two)], [(two,)])
        first.down = True
        assert [m.payload async for page in it.by_time(1, 2**62) for m in page] == [b"two"]


async def test_of_a_node_that_lies_nothing_is_believed() -> None:
    async with line() as honest, line() as liar, AsyncExitStack() as stack:
        lying = over(liar)
        it = await stack.enter_async_context(pool(lying, over(honest)))
        await all_open(it)
        true = await publish(it, b"true")
        liar.disturbance = lambda request: (
            false_answer(liar, true) if "/store/" in request.url.path else None
        )
        assert [message.payload for message in await it.by_hash([true])] == [b"true"]
        assert [m.payload async for page in it.by_time(1, 2**62) for m in page] == [b"true"]
        assert lying.mislabelled == 2
        assert [node.mislabelled for node in it.nodes()] == [2, 0]


def false_answer(liar: Line, message_hash: bytes) -> Any:
    message = {"payload": "ZmFsc2U=", "contentTopic": "/reliable-channel/1/general/proto"}
    entry = {"messageHash": "0x" + message_hash.hex(), "message": message}
    body = {"statusCode": 200, "statusDesc": "OK", "messages": [entry]}
    return httpx.Response(200, json=body)


# -- the rest --------------------------------------------------------------------------------------


async def test_every_node_is_subscribed_again_on_demand_and_closed_once() -> None:
    _, nodes = three()
    async with pool(*nodes) as it:
        it.renew()
    assert [(node.renewed, node.closed) for node in nodes] == [(1, 1)] * 3


async def test_nodes_killed_one_by_one_lose_nothing() -> None:
    async with line() as one, line() as two, line() as three_:
        lines = [one, two, three_]
        nodes = [it.node for it in lines]
        assert nodes[0] is not None and nodes[1] is not None and nodes[2] is not None
        nodes[0].join(nodes[1])
        nodes[0].join(nodes[2])
        nodes[1].join(nodes[2])
        async with pool(*map(over, lines)) as alice, pool(*map(over, reversed(lines))) as bob:
            await all_open(alice)
            await all_open(bob)
            await publish(alice, b"0")
            assert await arrived(bob, 1) == [b"0"]
            for number, killed in enumerate(lines[:2], start=1):
                killed.connect(None)
                await publish(alice, b"%d" % number)
                assert await arrived(bob, 1) == [b"%d" % number]
            assert [health.state for health in alice.nodes()][2] == "healthy"
