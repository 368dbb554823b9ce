"""`ReliableChannel(…, sync="mvds")`: the same events over any transport."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from reliable_channel import (
    ChannelOptions,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    ReliableChannel,
)
from reliable_channel._plugins.loading import process_registry
from reliable_channel.events import AnyEvent
from reliable_channel.transport import MemoryNetwork
from reliable_channel_mvds import plugin

pytestmark = pytest.mark.anyio

OPTIONS = ChannelOptions(retry_interval_ms=300, max_retry_attempts=1_000, retrieval_strategy="none")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    registry = process_registry()
    if "mvds" in registry.plugins:
        yield
        return
    registry.add(plugin, "mvds")
    yield
    process_registry.cache_clear()


class Told:
    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self._told = anyio.Event()

    async def listen(self, channel: ReliableChannel) -> None:
        async for event in channel.events():
            self.events.append(event)
            self._told.set()
            self._told = anyio.Event()

    def has(self, kind: type[AnyEvent], count: int = 1) -> bool:
        return sum(isinstance(event, kind) for event in self.events) >= count

    @property
    def contents(self) -> list[bytes]:
        return [event.content for event in self.events if isinstance(event, MessageReceived)]

    async def until(self, kind: type[AnyEvent], count: int = 1) -> None:
        while not self.has(kind, count):
            await self._told.wait()


@asynccontextmanager
async def _opened(
    at: MemoryNetwork | str,
    name: str,
    *,
    loss: float | None = None,
    options: ChannelOptions = OPTIONS,
    **arguments: str,
) -> AsyncIterator[tuple[ReliableChannel, Told]]:
    """A participant in a network, or at a node's URL."""
    told = Told()
    channel = ReliableChannel(
        at if isinstance(at, str) else None,
        transport=None if isinstance(at, str) else at.transport(),
        drop_incoming=loss,
        seed=len(name),
        channel_id="general",
        sender_id=name,
        sync="mvds",
        options=options,
        **arguments,  # type: ignore[arg-type]
    )
    async with anyio.create_task_group() as tasks, channel:
        tasks.start_soon(told.listen, channel)
        yield channel, told


async def test_two_talk() -> None:
    network = MemoryNetwork()
    async with _opened(network, "alice") as (alice, told), _opened(network, "bob") as (_, bob):
        request = await alice.send(b"hello")
        await told.until(MessageAcknowledged)
        await bob.until(MessageReceived)
        assert told.has(MessageSent)
        (acknowledged,) = [e for e in told.events if isinstance(e, MessageAcknowledged)]
        assert acknowledged.message_id == request.message_id
        assert acknowledged.acknowledged_by == "bob"
        assert bob.contents == [b"hello"]


async def test_two_talk_over_real_sockets(real_node: str) -> None:
    async with _opened(real_node, "alice") as (alice, told), _opened(real_node, "bob") as (bob, _):
        requests = {(await alice.send(b"%d" % number)).message_id for number in range(5)}
        await told.until(MessageAcknowledged, 5)
        assert {entry.message_id for entry in bob.log()} == requests
        assert alice.log_digest() == bob.log_digest()


async def test_a_long_message_travels_in_segments() -> None:
    network = MemoryNetwork()
    long = bytes(range(256)) * 1_200
    opened = partial(_opened, network, options=replace(OPTIONS, segmentation="lip-243-v0.1"))
    async with opened("alice") as (alice, _), opened("bob") as (_, bob):
        await alice.send(long)
        await bob.until(MessageReceived)
        assert bob.contents == [long]


async def test_a_group_with_loss_and_a_restart_ends_with_one_log(tmp_path: Path) -> None:
    network = MemoryNetwork()
    opened = partial(_opened, network, loss=0.3)
    names = ("alice", "bobby", "caroline")
    state = {name: f"sqlite:///{tmp_path}/{name}.sqlite" for name in names}
    for round_number in range(2):
        async with AsyncExitStack() as stack:
            group = [
                await stack.enter_async_context(opened(name, state=state[name])) for name in names
            ]
            for number in range(5):
                for channel, _ in group:
                    await channel.send(f"{channel.sender_id} {round_number} {number}".encode())
            for _, told in group:
                await told.until(MessageReceived, 10)
            logs = [[entry.message_id for entry in channel.log()] for channel, _ in group]
            assert logs[0] == logs[1] == logs[2]
