"""All participants end with the same log, whatever happened on the way."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from random import Random

import anyio
import pytest

from reliable_channel import (
    ChannelOptions,
    DeliveryFailed,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    ReliableChannel,
    SendFailed,
)
from reliable_channel.diagnostics import TransportDegraded, TransportRecovered
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.transport import LossyTransport, MemoryNetwork
from tests.slow import slow

from .world import Told, listening, make_channel

pytestmark = pytest.mark.anyio


class Weather(LossyTransport):
    """A way into a network whose loss changes."""

    def __init__(self, network: MemoryNetwork, seed: int) -> None:
        super().__init__(network.transport(), drop_incoming=0, seed=seed)
        self.loss = 0.0

    def _loses(self) -> bool:
        return self._random.random() < self.loss or self.cut_off


class World:
    """A few participants of one channel in one network."""

    def __init__(self, seed: int, options: ChannelOptions, stack: AsyncExitStack) -> None:
        self.network = MemoryNetwork()
        self.random = Random(seed)
        self.options = options
        self.weathers: list[Weather] = []
        self.channels: list[ReliableChannel] = []
        self.told: list[Told] = []
        self._stack = stack

    async def join(self) -> None:
        number = len(self.channels)
        weather = Weather(self.network, seed=self.random.getrandbits(32))
        channel = make_channel(
            weather, f"participant {number}", options=self.options, seed=self.random.getrandbits(32)
        )
        self.told.append(await self._stack.enter_async_context(listening(channel)))
        self.weathers.append(weather)
        self.channels.append(channel)

    async def send(self) -> None:
        channel = self.random.choice(self.channels)
        await channel.send(b"content %d" % self.random.getrandbits(64))

    def end_all_faults(self) -> None:
        self.network.away = False
        for weather in self.weathers:
            weather.loss, weather.cut_off = 0.0, False

    async def until_equal(self, *, within_s: float) -> None:
        with anyio.fail_after(within_s):
            while len({channel.log_digest() for channel in self.channels}) > 1:  # noqa: ASYNC110
                await anyio.sleep(1)

    async def assert_delivered_once_and_in_causal_order(self) -> None:
        await anyio.wait_all_tasks_blocked()  # a log can be ahead of who reads the events
        history: dict[str, Sequence[str]] = {}
        for stored in self.network.store.values():
            message = SpecCodec().decode(stored.payload)
            history[message.message_id] = message.causal_ids
        for channel, told in zip(self.channels, self.told, strict=True):
            received = told.of(MessageReceived)
            assert len({event.message_id for event in received}) == len(received)
            known = {e.message_id for e in channel.log() if e.sender_id == channel.sender_id}
            for event in received:
                excused = {entry.message_id for entry in event.missing}
                assert set(history[event.message_id]) <= known | excused
                known.add(event.message_id)
            assert len(channel.log()) == len(known)


@pytest.mark.parametrize("strategy", ["both", "store-only", "sds-r-only"])
@pytest.mark.parametrize("seed", [*range(3), *slow(*range(3, 20))])
async def test_whatever_happens_all_logs_end_equal(
    virtual_time: None, seed: int, strategy: str
) -> None:
    options = ChannelOptions(retrieval_strategy=strategy)
    async with AsyncExitStack() as stack:
        world = World(seed, options, stack)
        random = world.random
        for _ in range(random.randint(2, 4)):
            await world.join()
        for _ in range(random.randint(20, 60)):
            weather = random.choice(world.weathers)
            match random.choice(["send"] * 6 + ["wait", "lose", "cut", "away", "join"]):
                case "send":
                    await world.send()
                case "wait":
                    await anyio.sleep(random.expovariate(1 / 10))
                case "lose":
                    weather.loss = random.choice([0, 0.2, 0.5, 0.9])
                case "cut":
                    weather.cut_off = not weather.cut_off
                case "away":
                    world.network.away = not world.network.away
                case "join" if not world.network.away and len(world.channels) < 6:
                    await world.join()
        world.end_all_faults()
        await world.send()
        sent = sum(c.statistics().sds.counters.sent for c in world.channels)
        await world.until_equal(within_s=1_800)
        assert all(len(channel.log()) == sent for channel in world.channels)
        await world.assert_delivered_once_and_in_causal_order()
        assert not any(told.of(SendFailed) for told in world.told)


async def test_half_of_everything_lost_costs_nothing(virtual_time: None) -> None:
    async with AsyncExitStack() as stack:
        world = World(1, ChannelOptions(), stack)
        for _ in range(4):
            await world.join()
        for weather in world.weathers:
            weather.loss = 0.5
        for _ in range(100):
            await world.send()
            await anyio.sleep(0.5)
        await world.until_equal(within_s=1_800)
        assert all(len(channel.log()) == 100 for channel in world.channels)
        assert sum(weather.dropped for weather in world.weathers) > 100
        await world.assert_delivered_once_and_in_causal_order()
        for channel in world.channels:
            positions = {entry.message_id: n for n, entry in enumerate(channel.log())}
            assert sorted(positions.values()) == list(range(100))


@pytest.mark.conformance("JS-CONNECT-2")
async def test_what_is_sent_while_the_network_is_away_goes_out_in_order_afterwards(
    virtual_time: None,
) -> None:
    async with AsyncExitStack() as stack:
        world = World(1, ChannelOptions(), stack)
        await world.join()
        await world.join()
        alice = world.channels[0]
        alice_told, bob_told = world.told
        world.network.away = True
        for number in range(200):
            await alice.send(b"%d" % number)
            await anyio.sleep(10)
        # With one sync message, which content puts off for some minutes and no longer.
        assert alice.statistics().waiting_to_be_sent == 201
        assert "send" in alice.statistics().degraded
        assert not alice_told.of(MessageSent)
        world.network.away = False
        await bob_told.until(lambda: len(bob_told.contents) == 200, within_s=600)
        assert bob_told.contents == [b"%d" % number for number in range(200)]
        await world.until_equal(within_s=1)
        await alice_told.until(lambda: len(alice_told.of(MessageAcknowledged)) == 200, within_s=600)
        degraded = [event.component for event in alice_told.of(TransportDegraded)]
        assert sorted(degraded) == ["send", "store"]
        (recovered,) = [e for e in alice_told.of(TransportRecovered) if e.component == "send"]
        assert 1_980_000 < recovered.outage_ms < 2_020_000
        assert not alice_told.of(DeliveryFailed)


async def test_nobody_there_is_told_after_the_retries(virtual_time: None) -> None:
    async with AsyncExitStack() as stack:
        world = World(1, ChannelOptions(retry_interval_ms=30_000, max_retry_attempts=10), stack)
        await world.join()
        (alice,), (told,) = world.channels, world.told
        request = await alice.send(b"is anybody there?")
        failed = await told.first(DeliveryFailed, within_s=400)
        assert (failed.message_id, failed.attempts) == (request.message_id, 11)
        assert "sent 11 times" in failed.reason
        assert alice.statistics().sds.outgoing == 0
        await anyio.sleep(3_600)
        assert len(told.of(DeliveryFailed)) == 1
