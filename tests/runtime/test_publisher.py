"""The dispatcher: what it does when the transport fails, refuses, or is away for long."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import pytest

from reliable_channel import (
    ChannelOptions,
    DeliveryFailed,
    MessageAcknowledged,
    MessageSent,
    ReliableChannel,
    SendFailed,
)
from reliable_channel.diagnostics import SyncSent, TransportDegraded, TransportRecovered
from reliable_channel.engine.outbox import CONCURRENCY
from reliable_channel.events import AnyEvent, ConnectionStatusChanged
from reliable_channel.transport import Envelope, LossyTransport, MemoryNetwork, TransportError
from tests.channel.world import QUICK, Told, listening, make_channel, now_ns

pytestmark = pytest.mark.anyio


class Flaky(LossyTransport):
    """A transport that fails as told, and remembers what it was given."""

    def __init__(self, network: MemoryNetwork, *, failures: int = 0) -> None:
        super().__init__(network.transport(), drop_incoming=0, seed=0)
        self.failures = failures
        self.refuses: Sequence[bytes] = ()
        self.given: list[Envelope] = []

    async def publish(self, envelope: Envelope) -> None:
        self.given.append(envelope)
        await anyio.lowlevel.checkpoint()
        if any(content in envelope.payload for content in self.refuses):
            raise TransportError("too large for this node", retryable=False)
        if self.failures:
            self.failures -= 1
            raise TransportError("the node is away")
        await super().publish(envelope)


class Limited(LossyTransport):
    """A node that takes one message a second and refuses the others, as stock go-waku does."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__(network.transport(), drop_incoming=0, seed=0)
        self._next_s = 0.0

    async def publish(self, envelope: Envelope) -> None:
        await anyio.lowlevel.checkpoint()
        if anyio.current_time() < self._next_s:
            raise TransportError("exceeds the rate limit; wait and send fewer")
        self._next_s = anyio.current_time() + 1
        await super().publish(envelope)


def channel_over(transport: Flaky, **values: Any) -> ReliableChannel:
    return make_channel(transport, "alice", **values)


@pytest.mark.parametrize("failures", [1, 2, 3, 5])
async def test_within_ten_seconds_the_same_envelope_goes_again(
    virtual_time: None, failures: int
) -> None:
    transport = Flaky(MemoryNetwork(), failures=failures)
    channel = channel_over(transport, sync_min_interval_ms=0, retry_interval_ms=1_000_000)
    async with listening(channel) as told:
        request = await channel.send(b"hello")
        sent = await told.first(MessageSent)
        assert transport.given == [transport.given[0]] * (failures + 1)
        assert sent == MessageSent(
            request.message_id,
            request.request_id,
            transport.given[0].message_hash,
            request.message_ids,
        )


async def test_after_ten_seconds_it_is_stamped_anew(virtual_time: None) -> None:
    transport = Flaky(MemoryNetwork(), failures=80)
    channel = channel_over(transport, sync_min_interval_ms=0, retry_interval_ms=1_000_000)
    async with listening(channel) as told:
        await channel.send(b"hello")
        sent = await told.first(MessageSent, within_s=200)
        stamps = [envelope.timestamp_ns for envelope in transport.given]
        assert stamps == sorted(stamps)
        assert 1 < len(set(stamps)) < len(stamps)
        assert sent.message_hash == transport.given[-1].message_hash
        assert now_ns() - stamps[-1] < 10_000_000_000


@pytest.mark.conformance("JS-RC-3")
async def test_a_refusal_for_good_is_told_and_the_rest_goes_on() -> None:
    transport = Flaky(MemoryNetwork())
    transport.refuses = [b"(refuse me)"]  # in no id, which are hex
    channel = channel_over(transport, sync_min_interval_ms=0)
    async with listening(channel) as told:
        refused = await channel.send(b"(refuse me)")
        await told.first(SendFailed)
        await channel.send(b"good")
        await told.first(MessageSent)
        assert told.of(SendFailed) == [
            SendFailed(refused.message_id, refused.request_id, "too large for this node")
        ]
        assert channel.statistics().sds.outgoing == 1
        assert not told.of(TransportDegraded)


async def test_an_outage_is_told_once_with_its_length_and_reason(virtual_time: None) -> None:
    transport = Flaky(MemoryNetwork(), failures=30)
    channel = channel_over(transport, sync_min_interval_ms=0, retry_interval_ms=1_000_000)
    async with listening(channel) as told:
        for number in range(8):
            await channel.send(b"%d" % number)
        await told.until(lambda: len(told.of(MessageSent)) == 8, within_s=300)
        assert told.of(TransportDegraded) == [TransportDegraded("send", "the node is away")]
        (recovered,) = told.of(TransportRecovered)
        assert recovered.component == "send"
        assert recovered.outage_ms > 1_000
        assert channel.statistics().transport.publish_failures == 30
        assert channel.statistics().degraded == ()


async def test_what_promises_nothing_is_not_repeated(virtual_time: None) -> None:
    transport = Flaky(MemoryNetwork(), failures=2)
    channel = channel_over(transport, sync_min_interval_ms=1_000)
    async with listening(channel) as told:
        await channel.send_ephemeral(b"is typing")
        await told.until(lambda: len(told.of(SyncSent)) == 2, within_s=60)
        assert [b"is typing" in envelope.payload for envelope in transport.given].count(True) == 1
        assert all(envelope.ephemeral for envelope in transport.given)


async def test_a_sync_goes_again_until_a_newer_one_is_made(virtual_time: None) -> None:
    transport = Flaky(MemoryNetwork(), failures=3)
    channel = channel_over(transport, sync_min_interval_ms=10_000)
    async with listening(channel) as told:
        await told.until(lambda: len(told.of(SyncSent)) == 2, within_s=60)
        await anyio.wait_all_tasks_blocked()
        first, *others = (envelope.payload for envelope in transport.given)
        assert others[:3] == [first] * 3
        assert first not in others[3:]


async def test_a_retry_that_was_acknowledged_while_it_waited_does_not_go(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    transport = Flaky(network)
    alice = channel_over(transport, sync_min_interval_ms=0, retry_interval_ms=1_000)
    bob = make_channel(network.transport(), "bob", seed=2)
    async with listening(alice) as told:
        await alice.send(b"hello")
        await told.first(MessageSent)
        transport.failures = 1_000
        await told.first(TransportDegraded, within_s=60)  # the retry waits from here on
        tries = len(transport.given)
        async with listening(bob):
            await bob.send(b"I have heard you")
            await told.first(MessageAcknowledged, within_s=60)
            await anyio.sleep(60)
        assert len(transport.given) - tries <= CONCURRENCY


async def test_waiting_for_the_transport_uses_up_no_attempt(virtual_time: None) -> None:
    transport = Flaky(MemoryNetwork(), failures=100)
    options: dict[str, Any] = {
        "sync_min_interval_ms": 0,
        "retry_interval_ms": 1_000,
        "max_retry_attempts": 2,
        "confirm_interval_ms": 0,
    }
    channel = channel_over(transport, **options)
    async with listening(channel) as told:
        await channel.send(b"hello")
        failed = await told.first(DeliveryFailed, within_s=2_000)
        assert failed.attempts == 3
        aside = (TransportDegraded, ConnectionStatusChanged)
        assert [type(e) for e in told.events if not isinstance(e, aside)][1:] == [
            TransportRecovered, MessageSent, DeliveryFailed,
        ]  # fmt: skip


async def test_closing_tells_what_never_went_out(virtual_time: None) -> None:
    transport = Flaky(MemoryNetwork(), failures=1_000)
    channel = channel_over(transport, sync_min_interval_ms=0)
    async with listening(channel) as told:
        request = await channel.send(b"hello")
        await channel.send_ephemeral(b"is typing")
        await told.first(TransportDegraded)
    assert [(event.message_id, event.request_id) for event in told.of(SendFailed)] == [
        (request.message_id, request.request_id)
    ]
    assert "closed" in told.of(SendFailed)[0].reason


async def test_closing_waits_until_what_was_accepted_is_out(virtual_time: None) -> None:
    transport = Flaky(MemoryNetwork(), failures=3)
    channel = channel_over(transport, sync_min_interval_ms=0)
    async with listening(channel) as told:
        await channel.send(b"hello")
    assert told.of(MessageSent)
    assert not told.of(SendFailed)


async def test_it_is_bounded_how_many_are_on_their_way() -> None:
    network = MemoryNetwork()
    transport = Flaky(network)
    waiting = 0
    most = 0
    go_on = anyio.Event()
    publish = transport.publish

    async def slow(envelope: Envelope) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await go_on.wait()
        waiting -= 1
        await publish(envelope)

    transport.publish = slow  # type: ignore[method-assign]
    channel = channel_over(transport, options=QUICK)
    async with listening(channel) as told:
        for number in range(20):
            await channel.send(b"%d" % number)
        await anyio.wait_all_tasks_blocked()
        assert most == CONCURRENCY
        go_on.set()
        await told.until(lambda: len(told.of(MessageSent)) == 20)


async def test_retries_keep_no_sync_from_ending_those_of_others(virtual_time: None) -> None:
    network, options = MemoryNetwork(), ChannelOptions(sync_min_interval_ms=30_000)
    alice = make_channel(Limited(network), "alice", options=options)
    bob = make_channel(Limited(network), "bob", options=options, seed=2)
    async with listening(alice) as alice_told, listening(bob) as bob_told:
        for _ in range(200):  # what waits refers to nothing that comes meanwhile
            await alice.send(b"from alice")
            await bob.send(b"from bob")
        for kind, within_s in ((MessageSent, 1_000), (MessageAcknowledged, 2 * 30)):
            for told in (alice_told, bob_told):
                await told.until(partial(_has_told, told, kind, 200), within_s=within_s)


def _has_told(told: Told, kind: type[AnyEvent], count: int) -> bool:
    return len(told.of(kind)) == count


@pytest.mark.parametrize("hangs", [False, True])
async def test_closing_does_not_wait_for_a_retry(virtual_time: None, hangs: bool) -> None:
    transport = Flaky(MemoryNetwork())
    channel = channel_over(transport, sync_min_interval_ms=0, retry_interval_ms=1_000)
    hung = anyio.Event()

    async def hang(envelope: Envelope) -> None:
        hung.set()
        await anyio.sleep_forever()

    async with listening(channel) as told:
        await channel.send(b"hello")
        await told.first(MessageSent)
        if hangs:
            transport.publish = hang  # type: ignore[method-assign]
            await hung.wait()
        else:
            transport.failures = 1_000
            await told.first(TransportDegraded, within_s=60)
        begun_s = anyio.current_time()
    assert anyio.current_time() - begun_s < 1
    assert not told.of(SendFailed)


async def test_an_idle_channel_has_one_task_that_publishes(virtual_time: None) -> None:
    async with listening(channel_over(Flaky(MemoryNetwork()), sync_min_interval_ms=0)):
        names = [task.name for task in anyio.get_running_tasks()]
        assert sum("publisher" in (name or "") for name in names) == 1
