"""What passes on a content topic, seen by no member of the channel."""

from typing import Any

import anyio
import pytest

from pytest_reliable_channel.channels import now_ns
from reliable_channel import ReliableChannel
from reliable_channel.spi import Received, Source
from reliable_channel.transport import MemoryNetwork
from reliable_channel_watch.model import View
from reliable_channel_watch.sniffing import Sniffer, sniffed
from reliable_channel_watch.values import Lamp

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time


def member(network: MemoryNetwork, sender_id: str, **options: Any) -> ReliableChannel:
    return ReliableChannel(
        channel_id="ops",
        sender_id=sender_id,
        transport=network.transport(),
        now_ns=now_ns,
        **options,
    )


def sniffer(network: MemoryNetwork, history_s: float = 0, **given: Any) -> Sniffer:
    return Sniffer(given, history_s=history_s, transport=network.transport(), now_ns=now_ns)


@pytest.mark.parametrize("profile", ["spec", "nim"])
async def test_messages_and_acknowledgements_are_seen_and_nothing_is_sent(profile: str) -> None:
    network, view = MemoryNetwork(), View()
    async with (
        member(network, "alice", wire_profile=profile) as alice,
        member(network, "bob", wire_profile=profile) as bob,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(sniffer(network).listen, view)
        await anyio.sleep(1)
        await alice.send(b"one")
        await anyio.sleep(5)
        await bob.send(b"two")
        await anyio.sleep(5)
        tasks.cancel_scope.cancel()
        assert {each.sender_id for each in alice.log()} == {"alice", "bob"}
    assert {lane.name for lane in view.lanes} == {"alice", "bob"}
    one, two = view.messages.values()
    assert (one.count, two.parents) == (1, (one.number,))
    assert view.channel_ids == {"ops"}
    assert view.lamps[-1, ""][Lamp.RECEIVE].at(view.last_ms) == (True, "")


async def test_a_gap_is_seen_by_its_requests_and_closes_with_a_reference() -> None:
    network, view = MemoryNetwork(), View()
    async with (
        member(network, "alice", retry_interval_ms=3_600_000) as alice,
        member(network, "bob", drop_incoming=0.0, retrieval_strategy="sds-r-only") as bob,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(sniffer(network).listen, view)
        bob.cut_off(True)
        await alice.send(b"missed")
        await anyio.sleep(2)
        bob.cut_off(False)
        await alice.send(b"arrives")
        await anyio.sleep(300)
        await bob.send(b"I have both")
        await anyio.sleep(10)
        tasks.cancel_scope.cancel()
    (gap,) = view.gaps.values()
    assert view.lanes[gap.lane].name == "bob" and gap.asked_ms and gap.until_ms is not None
    assert gap.sender_id == "alice"


async def test_what_store_has_of_the_past_is_shown_at_its_time() -> None:
    network, view = MemoryNetwork(), View()
    async with member(network, "alice") as alice:
        await alice.send(b"one")
        await anyio.sleep(60)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sniffer(network, history_s=600).listen, view)
            await anyio.sleep(1)
            tasks.cancel_scope.cancel()
    (one,) = view.messages.values()
    assert one.sent_ms is not None and one.sent_ms < now_ns() // 1_000_000 - 50_000
    assert view.lamps[-1, ""][Lamp.STORE].at(view.last_ms) == (True, "")


async def test_a_node_that_is_away_is_a_lamp_and_no_end() -> None:
    network, view = MemoryNetwork(), View()
    transport = network.transport()
    listener = Sniffer({}, transport=transport, now_ns=now_ns)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.listen, view)
        await anyio.sleep(1)
        network.away = True
        transport.arrive(Received(b"waits there", bytes(32), now_ns(), Source.LIVE))
        await anyio.sleep(5)
        receive = view.lamps[-1, ""][Lamp.RECEIVE]
        assert receive.at(now_ns() // 1_000_000) == (False, "the network is away")
        network.away = False
        await anyio.sleep(5)
        assert receive.at(now_ns() // 1_000_000) == (True, "")
        tasks.cancel_scope.cancel()
    assert [total for _, total, _ in view.seconds()] == [len(b"waits there")]


def test_what_is_not_of_the_channel_is_traffic_alone() -> None:
    view = View()
    for number, payload in enumerate((b"", b"\xff\xff", b"\x0a\x03bob", b"nonsense" * 100)):
        received = Received(payload, bytes([number]), 1_000_000_000, Source.LIVE)
        sniffed(view, received, payload, 1_000, channel_id="ops")
        sniffed(view, received, payload, 1_000, channel_id="ops")
    assert not view.messages and not view.lanes
    assert sum(total for _, total, _ in view.seconds()) == 2 + 5 + 800
