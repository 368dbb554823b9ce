"""Channels over the same service peers share a client, which ends with the last of them."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from reliable_channel.testing.transport_suite import (
    CONTENT_TOPIC,
    SETTINGS,
    envelope,
    listening,
    published,
)
from reliable_channel.transport import TransportError, WakuSettings
from reliable_channel.transport.addresses import checked_addresses
from reliable_channel.transport.connect import light_transport
from reliable_channel.transport.libp2p import LightTransport
from reliable_channel.transport.shared_client import ClientKey, shared_client
from tests import inside
from tests.waku.libp2p.driver.tls import contexts
from tests.waku.p2p.network import ServiceNetwork
from tests.waku.p2p.service import SHARD
from waku import LightClient

pytestmark = pytest.mark.anyio

NOWHERE = "/ip4/127.0.0.1/tcp/1"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def to(*addresses: str, settings: WakuSettings = SETTINGS, **values: Any) -> LightTransport:
    if values:
        settings = WakuSettings(**{"content_topic": CONTENT_TOPIC, **values})
    (url,) = checked_addresses(addresses)
    return light_transport(url, settings)


async def test_channels_of_one_shard_share_their_connections() -> None:
    network = ServiceNetwork(2)
    async with network.listening() as addresses, AsyncExitStack() as stack:
        for number in range(5):
            topic = f"/app/1/topic-{number}/proto"
            one = to(*addresses, content_topic=topic, pubsub_topic=SHARD)
            await one.open()
            stack.push_async_callback(one.aclose)
        assert [len(node.host.links) for node in network.nodes] == [1, 1]
        other = to(*addresses, pubsub_topic=SHARD.replace("/1/0", "/1/1"))
        await other.open()
        stack.push_async_callback(other.aclose)
        assert sum(len(node.host.links) for node in network.nodes) > 2


async def test_the_last_channel_closes_the_connections_and_the_first_does_not() -> None:
    network = ServiceNetwork(1)
    async with network.listening() as addresses:
        alice, bob = to(*addresses), to(*addresses)
        await alice.open()
        await bob.open()
        (link,) = network.nodes[0].host.links
        await alice.aclose()
        async with listening([bob]) as listeners:
            await published(bob, [envelope(bob, b"still here")], listeners)
        assert link.failure is None
        await bob.aclose()
        with anyio.fail_after(60):
            await link.closed.wait()
        carol = to(*addresses)  # the client has ended: she gets a new one
        await carol.open()
        assert link not in network.nodes[0].host.links
        await carol.aclose()


async def test_a_channel_may_be_closed_by_another_task_than_opened_it() -> None:
    network = ServiceNetwork(1)
    async with network.listening() as addresses:
        alice = to(*addresses)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(alice.open)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(alice.aclose)


async def test_a_topic_is_registered_once_and_as_long_as_somebody_reads_it() -> None:
    network = ServiceNetwork(1)
    async with network.listening() as addresses:
        alice, bob = to(*addresses), to(*addresses)
        await alice.open()
        await bob.open()
        (topics,) = network.nodes[0].filters.values()
        assert len(topics) == network.nodes[0].requests == 1
        await alice.aclose()
        assert topics
        await bob.aclose()
        assert not topics


async def test_an_opening_that_is_cancelled_harms_nobody_else() -> None:
    network = ServiceNetwork(1)
    async with network.listening() as addresses:
        alice, bob = to(*addresses), to(*addresses)
        await alice.open()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await bob.open()
        async with listening([alice]) as listeners:
            await published(alice, [envelope(alice, b"unharmed")], listeners)
        await alice.aclose()


async def test_peers_that_do_not_answer_leave_no_client_behind() -> None:
    key = inside.client_key(to(NOWHERE))
    for _ in range(2):
        with pytest.raises(TransportError, match="check the address and that the node runs"):
            await to(NOWHERE).open()
        async with shared_client(key, lambda _: None) as first:
            async with shared_client(key, lambda _: None) as second:
                assert first is second


async def test_what_breaks_a_client_reaches_its_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> LightClient:
        raise RuntimeError("a defect")

    monkeypatch.setattr(LightClient, "__aenter__", broken)
    key = ClientKey((NOWHERE,), None, 1, 0, 1, None)
    with pytest.raises(RuntimeError, match="a defect"):
        async with shared_client(key, lambda _: None):
            pass


async def test_channels_of_other_settings_have_other_clients(tmp_path: Path) -> None:
    contexts(tmp_path)
    assert inside.client_key(to(NOWHERE)) == inside.client_key(to(NOWHERE))
    assert inside.client_key(to(NOWHERE)) != inside.client_key(
        to(NOWHERE, ca_file=tmp_path / "chain.pem")
    )
    assert inside.client_key(to(NOWHERE)) != inside.client_key(to(NOWHERE, redundancy=2))
    with pytest.raises(ValueError, match="`ca_file` must be a PEM file of certificates: "):
        to(NOWHERE, ca_file=tmp_path / "none.pem")


def test_equal_addresses_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []

    class Counting(LightClient):
        def __init__(self, addresses: tuple[str, ...], **options: Any) -> None:
            made.append(addresses)
            super().__init__(addresses, **options)

    monkeypatch.setattr("reliable_channel.transport.shared_client.LightClient", Counting)
    for number in range(100):
        to("/ip4/127.0.0.1/tcp/7", content_topic=f"/app/1/topic-{number}/proto")
    assert made == [("/ip4/127.0.0.1/tcp/7",)]
