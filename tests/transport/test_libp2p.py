"""Channels over service peers: the contract, on loopback, and what happens when peers go."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from reliable_channel import ChannelUnavailable, ReliableChannel
from reliable_channel.events import MessageReceived
from reliable_channel.hub import ChannelHub
from reliable_channel.testing.transport_suite import (
    CONTENT_TOPIC,
    SETTINGS,
    MakeTransport,
    TransportSuite,
    envelope,
    listening,
    published,
)
from reliable_channel.transport import (
    PoolTransport,
    StoreUnavailable,
    TransportError,
    WakuSettings,
)
from reliable_channel.transport.addresses import checked_addresses
from reliable_channel.transport.connect import light_transport, needs_libp2p
from reliable_channel.transport.libp2p import LightTransport
from reliable_channel.transport.node import NodeTransport
from tests import inside
from tests.waku.libp2p.driver.tls import contexts
from tests.waku.p2p.network import ServiceNetwork

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def to(addresses: list[str], settings: WakuSettings = SETTINGS) -> LightTransport:
    (url,) = checked_addresses(addresses)
    return light_transport(url, settings)


class TestOverTcp(TransportSuite):
    kind = ""

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        async with ServiceNetwork(2).listening(self.kind) as addresses:
            yield lambda settings: to(list(addresses), settings)


class TestOverWebSocket(TestOverTcp):
    kind = "/ws"


async def test_a_node_that_goes_is_replaced_and_nothing_is_lost() -> None:
    network = ServiceNetwork(3)
    async with network.listening() as addresses:
        alice, bob = to(list(addresses)), to(list(addresses))
        await alice.open()
        await bob.open()
        async with listening([bob]) as listeners:
            await published(alice, [envelope(alice, b"before")], listeners)
            for link in list(network.nodes[0].host.links):
                link.close()
            envelopes = [envelope(alice, b"%d" % number) for number in range(10)]
            await published(alice, envelopes, listeners)
        await bob.aclose()
        await alice.aclose()


async def test_it_says_when_nothing_arrives_and_when_something_may_be_missing() -> None:
    network = ServiceNetwork(1)
    async with network.listening() as addresses:
        bob = to(list(addresses))
        await bob.open()
        # The client dials again by itself; until then `receive` fails, so that a pool knows.
        for link in list(network.nodes[0].host.links):
            link.close()
        failures, gap = 0, ""
        with anyio.fail_after(60):
            while not gap:
                try:
                    gap = (await bob.receive()).gap
                except TransportError as error:
                    assert error.retryable
                    failures += 1
        assert gap == "no peer pushed messages for a while"
        await bob.aclose()


async def test_a_renewed_subscription_is_registered_again() -> None:
    network = ServiceNetwork(1)
    async with network.listening() as addresses:
        bob = to(list(addresses))
        bob.renew()  # not open yet: nothing to renew
        await bob.open()
        network.nodes[0].filters.clear()
        bob.renew()
        with anyio.fail_after(60):
            while not network.nodes[0].filters:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        await bob.aclose()


async def test_nobody_there_is_an_error_that_may_pass() -> None:
    transport = to(["/ip4/127.0.0.1/tcp/1"])
    with pytest.raises(TransportError, match=r"tcp/1: .*check the address") as failure:
        await transport.open()
    assert failure.value.retryable
    with pytest.raises(TransportError, match="open it first"):
        await transport.receive()
    await transport.aclose()


async def test_a_store_that_is_asked_while_the_node_is_away_is_unavailable() -> None:
    """A pool closes the transport of a node that is lost; the store client goes on asking."""
    network = ServiceNetwork(1)
    async with network.listening() as addresses:
        bob = to(list(addresses))
        await bob.open()
        pages = bob.by_time(0, 1)
        await bob.aclose()
        with pytest.raises(StoreUnavailable, match="is closed; open it first"):
            await anext(pages)
        with pytest.raises(StoreUnavailable, match="is closed; open it first"):
            await bob.by_hash([bytes(32)])


async def test_another_network_is_an_error_that_stays() -> None:
    async with ServiceNetwork(1).listening() as addresses:
        settings = WakuSettings(CONTENT_TOPIC, cluster_id=16)
        with pytest.raises(TransportError, match="is in cluster 1, not 16"):
            await to(list(addresses), settings).open()


async def test_a_channel_takes_addresses() -> None:
    async with ServiceNetwork(2).listening("/ws") as addresses:
        async with (
            ReliableChannel(addresses[0], channel_id="c", sender_id="alice") as alice,
            ReliableChannel(list(addresses), channel_id="c", sender_id="bob") as bob,
        ):
            await alice.send(b"hello")
            with anyio.fail_after(60):
                async for event in bob.events():
                    if isinstance(event, MessageReceived):
                        assert event.content == b"hello"
                        break


async def test_a_hub_takes_addresses() -> None:
    async with ServiceNetwork(2).listening() as addresses:
        async with (
            ChannelHub(list(addresses)) as hub,
            hub.channel(channel_id="a", sender_id="alice", content_topic=CONTENT_TOPIC) as alice,
            hub.channel(channel_id="a", sender_id="bob", content_topic=CONTENT_TOPIC) as bob,
        ):
            await alice.send(b"hello")
            with anyio.fail_after(60):
                async for event in bob.events():
                    if isinstance(event, MessageReceived):
                        assert event.content == b"hello"
                        break


async def test_a_channel_trusts_the_certificates_of_a_file(tmp_path: Path) -> None:
    server, _ = contexts(tmp_path)
    network = ServiceNetwork(1)
    async with network.listening("/wss", ssl_context=server) as addresses:
        with pytest.raises(ChannelUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            async with ReliableChannel(addresses[0], channel_id="c", sender_id="alice"):
                pass
        async with ReliableChannel(
            addresses[0], channel_id="c", sender_id="alice", ca_file=tmp_path / "chain.pem"
        ):
            assert network.nodes[0].host.links


def test_a_hub_takes_the_peers_of_a_network() -> None:
    hub = ChannelHub(network="status.prod")
    pool = hub._connect(CONTENT_TOPIC)  # noqa: SLF001
    assert isinstance(pool, PoolTransport)
    with pytest.raises(ValueError, match="`node` must be the address"):
        ChannelHub()


def test_addresses_of_service_peers_are_one_client() -> None:
    peers = ["/ip4/1.2.3.4/tcp/1", "enrtree://AAAA@x.example"]
    assert checked_addresses(peers[0]) == ("libp2p:///ip4/1.2.3.4/tcp/1",)
    together = "libp2p:///ip4/1.2.3.4/tcp/1,enrtree://AAAA@x.example"
    assert checked_addresses(["http://a", *peers, peers[0]]) == ("http://a", together)
    with pytest.raises(ValueError, match="cannot be dialled"):
        ReliableChannel("/ip4/1.2.3.4/udp/1", channel_id="c", sender_id="alice")
    with pytest.raises(ValueError, match="enrtree://<key>@<domain>"):
        ReliableChannel("enrtree://x.example", channel_id="c", sender_id="alice")


def test_a_pool_may_be_mixed() -> None:
    channel = ReliableChannel(
        ["http://127.0.0.1:1", "/ip4/127.0.0.1/tcp/1"], channel_id="c", sender_id="alice"
    )
    kinds = [type(transport) for transport in inside.transports(channel)]
    assert kinds == [NodeTransport, LightTransport]


def test_a_network_gives_cluster_shard_and_peers() -> None:
    channel = ReliableChannel(network="status.prod", channel_id="c", sender_id="alice")
    assert inside.settings(channel).shard == "/waku/2/rs/16/32"
    (transport,) = inside.transports(channel)
    assert isinstance(transport, LightTransport)
    assert transport.url.startswith("libp2p://enrtree://AMOJVZX4")
    channel = ReliableChannel("http://a", network="logos.test", channel_id="c", sender_id="alice")
    assert inside.settings(channel).shard.startswith("/waku/2/rs/2/")
    with pytest.raises(ValueError, match="`network` must be one of"):
        ReliableChannel(network="status", channel_id="c", sender_id="alice")
    with pytest.raises(ValueError, match="cannot be read"):
        ReliableChannel(network="missing.toml", channel_id="c", sender_id="alice")


def test_without_the_extra_the_error_names_it() -> None:
    with pytest.raises(ValueError, match=r"`node` needs websockets: pip install .*\[libp2p\]"):
        with needs_libp2p("node"):
            raise ModuleNotFoundError(name="websockets")
    with pytest.raises(ModuleNotFoundError), needs_libp2p("node"):
        raise ModuleNotFoundError(name="other")
