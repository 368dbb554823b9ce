"""Nodes through a forwarder: publications in order, bad neighbours, a forwarder that goes away."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import anyio
import pytest

from reliable_channel_svs import (
    DigestSigner,
    Ed25519Signer,
    KeyTrust,
    Name,
    OwnNameClaimed,
    Rebootstrapped,
    Signer,
    StateVector,
    SvsOptions,
    Trust,
    VectorIgnored,
)
from reliable_channel_svs.ndn import (
    ForwarderConnected,
    ForwarderLost,
    NodeEvent,
    NodeOptions,
    PacketRefused,
    PublicationEvicted,
    PublicationReceived,
    PublicationUnavailable,
    SvsNode,
)
from reliable_channel_svs.packet import MAX_PACKET_BYTES, Interest, make_data
from svs_tests.small_forwarder import SmallForwarder, small_forwarder

OPTIONS = NodeOptions(
    svs=SvsOptions(periodic_timeout_ms=500), retry_min_ms=20, interest_lifetime_ms=300
)
ALO = replace(OPTIONS, naming="svs-alo")
KEY = Name.parse("/group/KEY/%01")
T = TypeVar("T", bound=NodeEvent)


@dataclass
class World:
    """A forwarder, and nodes on it with what they told."""

    path: Path
    forwarder: SmallForwarder
    stack: AsyncExitStack
    told: dict[SvsNode, list[NodeEvent]]
    heard: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, when any node tells something."""

    async def node(
        self,
        name: str,
        options: NodeOptions = OPTIONS,
        signer: Signer | None = None,
        trust: Trust | None = None,
    ) -> SvsNode:
        node = SvsNode(
            f"unix://{self.path}",
            group="/room",
            name=name,
            options=options,
            signer=signer,
            trust=trust,
        )
        await self.stack.enter_async_context(node)
        tasks = await self.stack.enter_async_context(anyio.create_task_group())
        self.stack.callback(tasks.cancel_scope.cancel)
        self.told[node] = []
        tasks.start_soon(self._listen, node)
        return node

    async def _listen(self, node: SvsNode) -> None:
        async for event in node.events():
            self.told[node].append(event)
            self.heard.set()
            self.heard = anyio.Event()

    async def until(self, node: SvsNode, kind: type[T], count: int = 1) -> list[T]:
        """Wait until a node told so many events of a kind."""
        while len(found := self.all(node, kind)) < count:
            await self.heard.wait()
        return found

    def all(self, node: SvsNode, kind: type[T]) -> list[T]:
        return [event for event in self.told[node] if isinstance(event, kind)]


@pytest.fixture(params=["asyncio", "trio"])
def run(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[Callable[[World], Awaitable[None]]], None]]:
    def running(scenario: Callable[[World], Awaitable[None]]) -> None:
        async def main() -> None:
            async with world() as made:
                await scenario(made)

        anyio.run(main, backend=request.param)

    yield running


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    with TemporaryDirectory(prefix="svs") as directory:  # a socket's path must be short
        path = Path(directory) / "fw"
        listener = await anyio.create_unix_listener(path)
        async with small_forwarder(listener) as forwarder, AsyncExitStack() as stack:
            yield World(path, forwarder, stack, {})


Run = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.mark.parametrize("options", [OPTIONS, ALO], ids=["spec", "svs-alo"])
def test_publications_arrive_once_and_in_order(options: NodeOptions, run: Run) -> None:
    async def scenario(world: World) -> None:
        alice, bob = await world.node("/alice", options), await world.node("/bob", options)
        for number in range(50):
            await alice.publish(b"%d" % number)
        received = await world.until(bob, PublicationReceived, 50)
        assert [event.content for event in received] == [b"%d" % n for n in range(50)]
        assert [event.seq for event in received] == list(range(1, 51))
        assert {event.name for event in received} == {alice.name}
        assert world.all(alice, PublicationReceived) == []

    run(scenario)


def test_a_latecomer_gets_what_was_before(run: Run) -> None:
    async def scenario(world: World) -> None:
        alice = await world.node("/alice")
        for number in range(30):
            await alice.publish(b"%d" % number)
        bob = await world.node("/bob")
        await world.until(bob, PublicationReceived, 30)

    run(scenario)


def test_long_publications_go_in_segments(run: Run) -> None:
    async def scenario(world: World) -> None:
        alice, bob = await world.node("/alice", ALO), await world.node("/bob", ALO)
        contents = [b"", b"x" * 8_000, b"y" * 8_001, bytes(range(256)) * 200]
        for content in contents:
            await alice.publish(content)
        received = await world.until(bob, PublicationReceived, 4)
        assert [event.content for event in received] == contents

    run(scenario)


@pytest.mark.parametrize(
    ("options", "limit"), [(OPTIONS, 8_000), (replace(ALO, segments=3), 24_000)]
)
def test_a_publication_that_is_too_long_is_refused(
    options: NodeOptions, limit: int, run: Run
) -> None:
    async def scenario(world: World) -> None:
        alice = await world.node("/alice", options)
        with pytest.raises(ValueError, match=f"at most {limit}"):
            await alice.publish(b"x" * (limit + 1))
        assert (await alice.publish(b"x" * limit)).seq == 1

    run(scenario)


@pytest.mark.parametrize("options", [OPTIONS, ALO], ids=["spec", "svs-alo"])
@pytest.mark.parametrize("size", [252, 253, 300, 1_000])
def test_long_names_travel_and_their_packets_are_no_longer_than_forwarders_take(
    size: int, options: NodeOptions, run: Run
) -> None:
    async def scenario(world: World) -> None:
        key = Ed25519Signer(b"\x01" * 32, KEY)
        trust = KeyTrust({KEY: key.public_key})
        alice = await world.node("/" + "a" * size, options, key, trust)
        bob = await world.node("/bob", options, key, trust)
        longest = bytes(min(alice.content_limit_bytes, 20_000))
        await alice.publish(longest)
        [event] = await world.until(bob, PublicationReceived)
        assert (event.name, event.content) == (alice.name, longest)
        assert world.forwarder.longest_bytes <= MAX_PACKET_BYTES

    run(scenario)


def test_who_was_cut_off_catches_up(run: Run) -> None:
    async def scenario(world: World) -> None:
        alice, bob = await world.node("/alice"), await world.node("/bob")
        await alice.publish(b"before")
        await world.until(bob, PublicationReceived)
        await world.forwarder.cut()
        for node in (alice, bob):
            await world.until(node, ForwarderLost)
        await alice.publish(b"meanwhile")
        received = await world.until(bob, PublicationReceived, 2)
        assert [event.content for event in received] == [b"before", b"meanwhile"]
        await world.until(bob, ForwarderConnected, 2)

    run(scenario)


def test_a_forwarder_that_is_not_there_is_waited_for(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.forwarder.status = 403
        alice = await world.node("/alice")
        [first, *_] = await world.until(alice, ForwarderLost)
        assert "403" in first.reason
        world.forwarder.status = 200
        await world.until(alice, ForwarderConnected)

    run(scenario)


def test_what_is_wanted_when_the_link_is_lost_is_fetched_later(run: Run) -> None:
    async def scenario(world: World) -> None:
        bob = await world.node("/bob", replace(OPTIONS, give_up_after_ms=2_000))
        await bob.wait_connected()
        ghost = StateVector({Name.parse("/ghost"): {1_700_000_000: 3}})
        await world.forwarder.inject(sync_interest(ghost.encode()))
        world.forwarder.status = 403
        await world.forwarder.cut()
        await world.until(bob, ForwarderLost, 4)
        world.forwarder.status = 200
        await world.until(bob, PublicationUnavailable, 3)

    run(scenario)


def test_only_what_the_group_signed_is_taken(run: Run) -> None:
    async def scenario(world: World) -> None:
        key = Ed25519Signer(b"\x01" * 32, KEY)
        trust = KeyTrust({KEY: key.public_key})
        alice = await world.node("/alice", signer=key, trust=trust)
        bob = await world.node("/bob", signer=key, trust=trust)
        mallory = await world.node("/mallory", signer=DigestSigner(), trust=trust)
        await mallory.publish(b"lies")
        await world.until(bob, PacketRefused)
        await alice.publish(b"truth")
        [event] = await world.until(bob, PublicationReceived)
        assert event.content == b"truth"
        assert mallory.name not in bob.core.vector

    run(scenario)


def sync_interest(vector: bytes, data_name: str = "/room/v=3") -> bytes:
    data = make_data(Name.parse(data_name), vector, DigestSigner())
    return Interest(Name.parse("/room/v=3"), b"1234", 1_000, parameters=data).encode()


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        (sync_interest(b"nonsense"), VectorIgnored),
        (sync_interest(b"\xc9\x00", "/other/v=3"), PacketRefused),
        (sync_interest(b"\xc9\x00", "/alice/room/t=1/seq=1"), PacketRefused),
        (sync_interest(b"\xc9\x00")[:-1] + b"\x00", PacketRefused),
        (Interest(Name.parse("/room/v=3"), b"1234", parameters=b"none").encode(), VectorIgnored),
        (Interest(Name.parse("/room/v=3"), b"1234").encode(), VectorIgnored),
        (b"\x05\x03\x07\x01\x08", PacketRefused),
        (b"\x64\x02\x50\x00", PacketRefused),
        (b"\x64\x00", PacketRefused),
        (b"\x99\x00", PacketRefused),
    ],
)
def test_bad_neighbours_are_told_and_change_nothing(
    packet: bytes, kind: type[NodeEvent], run: Run
) -> None:
    async def scenario(world: World) -> None:
        alice, bob = await world.node("/alice"), await world.node("/bob")
        await alice.wait_connected()
        await bob.wait_connected()
        await world.forwarder.inject(packet)
        await world.until(bob, kind)
        await alice.publish(b"still there")
        await world.until(bob, PublicationReceived)

    run(scenario)


def test_who_claims_our_future_does_not_stop_us(run: Run) -> None:
    async def scenario(world: World) -> None:
        alice, bob = await world.node("/alice"), await world.node("/bob")
        await alice.publish(b"one")
        await world.until(bob, PublicationReceived)
        boot = alice.core.bootstrap_time
        claim = StateVector({alice.name: {boot: 2**64 - 1}})
        await world.forwarder.inject(sync_interest(claim.encode()))
        await world.until(alice, OwnNameClaimed)
        await alice.publish(b"two")
        await world.until(alice, Rebootstrapped)
        received = await world.until(bob, PublicationReceived, 2)
        assert received[1].content == b"two"
        assert (received[1].bootstrap_time, received[1].seq) == (boot + 1, 1)

    run(scenario)


def test_what_nobody_has_is_given_up(run: Run) -> None:
    async def scenario(world: World) -> None:
        options = replace(OPTIONS, give_up_after_ms=200)
        alice, bob = await world.node("/alice", options), await world.node("/bob", options)
        await alice.wait_connected()
        await bob.wait_connected()
        ghost = StateVector({Name.parse("/ghost"): {1_700_000_000: 3}})
        await world.forwarder.inject(sync_interest(ghost.encode()))
        given_up = await world.until(bob, PublicationUnavailable, 3)
        assert [event.seq for event in given_up] == [1, 2, 3]
        await alice.publish(b"real")
        await world.until(bob, PublicationReceived)

    run(scenario)


def test_own_publications_make_room_for_newer_ones(run: Run) -> None:
    async def scenario(world: World) -> None:
        alice = await world.node("/alice", replace(OPTIONS, store_bytes=3_000))
        for _ in range(10):
            await alice.publish(b"x" * 500)
        evicted = await world.until(alice, PublicationEvicted, 5)
        assert [event.seq for event in evicted] == [1, 2, 3, 4, 5]

    run(scenario)


def test_sync_interests_go_to_everybody(run: Run) -> None:
    async def scenario(world: World) -> None:
        await (await world.node("/alice")).wait_connected()
        commands = [str(name) for name in world.forwarder.seen if "nfd" in str(name)]
        assert [name.split("/")[3:5] for name in commands] == [
            ["rib", "register"],
            ["rib", "register"],
            ["strategy-choice", "set"],
        ]

    run(scenario)


@pytest.mark.parametrize("url", ["http://localhost", "unix://", "/run/nfd.sock", "tcp://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="unix:///path"):
        SvsNode(url, group="/room", name="/alice")
