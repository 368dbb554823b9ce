"""A light client with several peers, some of them dead, refusing, foreign or asleep."""

import base64
import socket
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from tests import inside
from tests.waku.discovery.zone import Key, Zone, waku_record
from waku import StoreQuery, WakuMessage, errors, message_hash
from waku.p2p import (
    ClientEvent,
    LightClient,
    PeerConnected,
    PeerLost,
    PeerPaused,
    Role,
    SearchFailed,
    SubscriptionInterrupted,
    SurroundingsChanged,
    TooFewPeers,
    network_interfaces,
)
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.keeper import AT_ONCE, MAX_CONNECTED
from waku.p2p.protocols import FILTER_SUBSCRIBE, LIGHT_PUSH_2, LIGHT_PUSH_3, STORE_3

from .service import SHARD, TOPIC, Service, identity, served
from .test_client import MESSAGE, page_of

pytestmark = pytest.mark.anyio


def several(count: int) -> list[Service]:
    return [Service(identity(number + 1)) for number in range(count)]


def refusing(status: int, text: str = "no") -> Callable[[Any], Any]:
    return lambda request: pb.LightpushResponse(
        request_id=request.request_id, status_code=status, status_desc=text
    )


def kinds(events: Sequence[ClientEvent], *wanted: type) -> list[type]:
    return [type(event) for event in events if isinstance(event, wanted)]


def reader_of(messages: Any, into: list[bytes]) -> Callable[[], Any]:
    async def read() -> None:
        async for pushed in messages:
            into.append(pushed.message.payload)  # noqa: PERF401 as they come

    return read


# Light push


async def test_a_message_is_pushed_to_as_many_peers_as_wanted() -> None:
    """The answer of the first counts; a slow or refusing second costs nothing."""
    services = several(3)
    async with served(*services, redundancy=2) as client:
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(1)
        for service in services:
            service.asked.clear()
        services[0].push_answer = lambda _: None
        services[1].push_answer = refusing(500)
        services[2].push_answer = refusing(500)
        begun = anyio.current_time()
        with pytest.raises(errors.WakuError):
            await client.light_push(MESSAGE, SHARD)
        services[1].push_answer = Service().push_answer
        begun = anyio.current_time()
        await client.light_push(MESSAGE, SHARD)
        assert anyio.current_time() - begun < 11
        assert sum(len(service.asked) for service in services) >= 3


async def test_requests_are_no_reason_to_look_for_peers_once_there_is_one() -> None:
    """One peer where two are wanted: a search for each message would be half its cost."""
    async with served(Service(), redundancy=2) as client:
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(1)
        begun = inside.keeper(client).rounds_begun
        for _ in range(50):
            await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(1)
        assert inside.keeper(client).rounds_begun == begun


async def test_a_peer_that_refuses_is_left_in_peace_and_another_takes_the_message() -> None:
    services = several(2)
    services[0].push_answer = refusing(429)
    events: list[ClientEvent] = []
    async with served(*services, events=events, redundancy=2) as client:
        for _ in range(10):
            await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(0.1)
        asked = [len(service.asked) for service in services]
        assert asked[0] <= 2  # the second was on its way
        assert asked[1] == 10
        paused = next(event for event in events if isinstance(event, PeerPaused))
        assert (paused.peer_id, paused.role, paused.pause_ms) == (
            services[0].identity.peer_id, Role.LIGHT_PUSH, 1_000,
        )  # fmt: skip


async def test_when_all_refuse_nobody_is_asked_until_a_pause_is_over() -> None:
    service = Service()
    service.push_answer = refusing(429)
    events: list[ClientEvent] = []
    async with served(service, events=events) as client:
        for seconds in (1, 2, 4, 8, 16, 32, 60, 60):
            for _ in range(3):
                with pytest.raises(errors.RateLimited) as failure:
                    await client.light_push(MESSAGE, SHARD)
            assert "not asked again for" in str(failure.value)
            await anyio.sleep(seconds + 0.001)
        assert len(service.asked) == 8
        service.push_answer = Service().push_answer
        await client.light_push(MESSAGE, SHARD)
        service.push_answer = refusing(504)
        with pytest.raises(errors.OutOfRlnProofs):
            await client.light_push(MESSAGE, SHARD)
        pauses = [event.pause_ms for event in events if isinstance(event, PeerPaused)]
        assert pauses[-2:] == [60_000, 30_000]


async def test_a_proof_that_is_missing_is_asked_of_another_peer() -> None:
    """Some service nodes attach proofs."""
    services = several(2)
    async with served(*services, redundancy=2) as client:
        await client.light_push(MESSAGE, SHARD)
        services[0].push_answer = services[1].push_answer = refusing(420, "RLN validation failed")
        with pytest.raises(errors.RlnProofRequired):
            await client.light_push(MESSAGE, SHARD)
        services[1].push_answer = Service().push_answer
        for _ in range(2):
            await client.light_push(MESSAGE, SHARD)


async def test_a_message_that_is_wrong_is_not_pushed_around() -> None:
    services = several(2)
    async with served(*services) as client:
        for service in services:
            service.push_answer = refusing(413)
        with pytest.raises(errors.MessageTooLarge):
            await client.light_push(MESSAGE, SHARD)
        assert sum(len(service.asked) for service in services) == 1


# Filter


async def test_two_peers_push_and_each_message_comes_once() -> None:
    services = several(2)
    async with served(*services) as client, client.subscribe(SHARD, [TOPIC]) as messages:
        got: list[bytes] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader_of(messages, got))
            await anyio.sleep(1)
            for service in services:
                assert len(service.subscribed) == 1
                await service.push(b"1", b"2")
            await services[1].push(b"3")
            await anyio.sleep(1)
            tasks.cancel_scope.cancel()
        assert got == [b"1", b"2", b"3"]
    await anyio.sleep(1)
    for service in services:
        assert [kind for kind, _, _ in service.subscribed] == [1, 2]


async def test_a_dead_peer_is_replaced_without_an_interruption() -> None:
    services = several(3)
    events: list[ClientEvent] = []
    async with served(*services, events=events) as client:
        async with client.subscribe(SHARD, [TOPIC]):
            await anyio.sleep(20)
            (third,) = [service for service in services if not service.dials]
            first, *_ = [service for service in services if service.dials]
            first.reachable = False
            first.links[0].close()
            await anyio.sleep(1)
            assert [kind for kind, _, _ in third.subscribed] == [1]
            assert kinds(events, PeerLost)
            assert not kinds(events, SubscriptionInterrupted)


async def test_a_peer_without_filter_is_no_filter_peer() -> None:
    services = several(3)
    del services[0].handlers[FILTER_SUBSCRIBE]
    async with served(*services) as client, client.subscribe(SHARD, [TOPIC]):
        await anyio.sleep(1)
        assert [len(service.subscribed) for service in services] == [0, 1, 1]


async def test_a_hundred_topics_are_renewed_with_few_requests() -> None:
    """nwaku serves a client 30 filter requests a minute."""
    services = several(2)
    services[1].reachable = False
    async with served(*services) as client, anyio.create_task_group() as tasks:

        async def subscribe(number: int) -> None:
            async with client.subscribe(SHARD, [f"/app/1/{number}/proto"]):
                await anyio.sleep_forever()

        for number in range(150):
            tasks.start_soon(subscribe, number)
        await anyio.sleep(1)
        services[1].reachable = True
        await anyio.sleep(100)
        sizes = [len(topics) for kind, _, topics in services[1].subscribed if kind == 1]
        assert sizes == [100, 50]
        tasks.cancel_scope.cancel()


# Store


def paging(number: int) -> Callable[[Any], Any]:
    return lambda request: page_of(request, range(1), bytes([number]) * 32)


async def test_stores_are_asked_in_turn_and_pages_come_from_one() -> None:
    services = several(2)
    for number, service in enumerate(services):
        service.store_answer = paging(number)
    async with served(*services) as client:
        await client.store(StoreQuery())
        await anyio.sleep(1)
        for _ in range(6):
            page = await client.store(StoreQuery())
            assert (await client.store(StoreQuery(cursor=page.cursor))).cursor == page.cursor
        counts = [len(service.asked) for service in services]
        assert min(counts) >= 4


async def test_a_store_that_fails_is_passed_over() -> None:
    services = several(2)
    services[0].store_answer = lambda _: None
    services[1].store_answer = lambda request: page_of(request, range(2), None)
    async with served(*services) as client:
        for _ in range(4):
            assert len((await client.store(StoreQuery())).entries) == 2
        await anyio.sleep(1)
        assert len(services[0].asked) <= 2


async def test_what_one_store_lacks_is_asked_of_the_next() -> None:
    services = several(2)
    messages = [WakuMessage(b"%d" % n, TOPIC) for n in range(2)]
    digests = [message_hash(SHARD, message) for message in messages]

    def having(number: int) -> Callable[[Any], Any]:
        def answer(request: Any) -> Any:
            page = page_of(request, range(number, number + 1), None)
            page.messages[0].message_hash = digests[number]
            return page

        return answer

    for number, service in enumerate(services):
        service.store_answer = having(number)
    async with served(*services) as client:
        await client.store(StoreQuery())
        await anyio.sleep(1)
        found = await client.store_by_hash([*digests, bytes(32)])
        assert {entry.message_hash for entry in found} == set(digests)
        services[0].store_answer = refusing(500)
        found = await client.store_by_hash(digests)
        assert digests[1] in {entry.message_hash for entry in found}


# Finding peers


def record_of(service: Service, **what: Any) -> str:
    number = int.from_bytes(service.identity.encode()[-32:], "big")
    return waku_record(number, service.address.partition("/p2p")[0], **what)


async def test_a_tree_names_peers_by_what_they_serve() -> None:
    services = several(4)
    zone = Zone()
    tree = zone.plant(
        "nodes.example",
        [
            record_of(services[0], waku2=1),
            record_of(services[1], cluster_id=16),
            record_of(services[2], shards=[5]),
            record_of(services[3]),
        ],
    )
    async with served(*services, addresses=[tree], resolver=zone) as client:
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(30)
        assert [len(service.dials) for service in services] == [0, 0, 0, 1]


async def test_a_tree_of_another_network_is_an_error_that_says_so() -> None:
    services = several(3)
    zone = Zone()
    records = [record_of(service, cluster_id=3) for service in services]
    tree = zone.plant("nodes.example", records)
    events: list[ClientEvent] = []
    async with served(*services, addresses=[tree], resolver=zone, events=events) as client:
        with pytest.raises(errors.WrongNetwork, match="no node of 3 fits: 3 is in cluster 3, not"):
            await client.light_push(MESSAGE, SHARD)
        assert kinds(events, SearchFailed) == [SearchFailed]
        # And it is not read at every request.
        asked = len(zone.asked)
        for _ in range(5):
            with pytest.raises(errors.WrongNetwork):
                await client.light_push(MESSAGE, SHARD)
        assert len(zone.asked) == asked


async def test_a_tree_that_cannot_be_read_is_tried_again() -> None:
    service = several(1)[0]
    zone = Zone()
    tree = zone.plant("nodes.example", [record_of(service)])
    texts, zone.texts_by_name = zone.texts_by_name, {}
    events: list[ClientEvent] = []
    async with served(service, addresses=[tree], resolver=zone, events=events) as client:
        with pytest.raises(errors.NodeUnreachable, match="does not exist"):
            await client.light_push(MESSAGE, SHARD)
        zone.texts_by_name = texts
        await anyio.sleep(6)
        await client.light_push(MESSAGE, SHARD)
    zone.plant("nodes.example", [], signer=Key(9))


async def test_peers_name_others() -> None:
    """A boot node serves nothing but that; it is asked, and let go."""
    boot, *services = several(3)
    for name in (LIGHT_PUSH_3, LIGHT_PUSH_2, FILTER_SUBSCRIBE, STORE_3):
        del boot.handlers[name]
    garbage = [b"", b"\xff" * 400]
    boot.records = [*garbage, *(decoded(record_of(service)) for service in services)]
    events: list[ClientEvent] = []
    async with served(boot, *services, addresses=[boot.address], events=events) as client:
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(120)
        assert (len(boot.dials), len(boot.exchanges)) == (1, 1)
        await boot.links[0].closed.wait()
        assert kinds(events, PeerConnected, PeerLost) == [PeerLost, PeerConnected]


async def test_a_peer_is_not_asked_for_others_too_often() -> None:
    service = Service()
    events: list[ClientEvent] = []
    async with served(service, events=events) as client, client.subscribe(SHARD, [TOPIC]):
        await anyio.sleep(3_600)
        assert 2 <= len(service.exchanges) <= 13
        few = [event for event in events if isinstance(event, TooFewPeers)]
        assert few == [TooFewPeers(Role.FILTER, 1, 2)]


async def test_a_list_of_dead_peers_is_dialled_with_patience() -> None:
    dead = several(30)
    for service in dead:
        service.reachable, service.dial_s = False, 15
    async with served(*dead) as client:
        with pytest.raises(errors.NodeUnreachable, match="nobody is there"):
            await client.light_push(MESSAGE, SHARD)
        before = sum(len(service.dials) for service in dead)
        await anyio.sleep(600)
        dials = sum(len(service.dials) for service in dead) - before
        assert dials <= 600 / 15 * AT_ONCE
        dead[17].reachable = True
        await anyio.sleep(400)
        await client.light_push(MESSAGE, SHARD)


async def test_a_request_does_not_wait_for_a_dead_peer() -> None:
    services = several(3)
    services[0].reachable, services[0].dial_s = False, 15
    async with served(*services, redundancy=3) as client:
        begun = anyio.current_time()
        await client.light_push(MESSAGE, SHARD)
        assert anyio.current_time() - begun < 1


async def test_connections_are_bounded() -> None:
    """Peers that lack what is wanted do not fill the table."""
    services = several(30)
    for service in services[:29]:
        del service.handlers[STORE_3]
    async with served(*services) as client:
        with pytest.raises(errors.WakuError):
            await client.store(StoreQuery())
        assert sum(len(service.dials) for service in services) <= MAX_CONNECTED + AT_ONCE


async def test_two_addresses_of_one_peer_are_one_connection() -> None:
    """T17: nwaku keeps one connection for each peer id."""
    service = Service()
    addresses = ["/ip4/10.1.1.1/tcp/1", service.address, service.address.replace("tcp/1", "tcp/2")]
    async with served(service, addresses=addresses) as client:
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(1)
        assert sum(link.failure is None for link in service.links) == 1
        await anyio.sleep(1_000)
        assert len(service.dials) <= 3


# Sleep, and other addresses


async def test_after_a_sleep_dead_connections_are_replaced_at_once() -> None:
    services = several(3)
    events: list[ClientEvent] = []
    async with served(*services, events=events) as client, client.subscribe(SHARD, [TOPIC]):
        await anyio.sleep(60)
        inside.keeper(client)._wall_clock = lambda: 4e9  # noqa: SLF001
        used = [service for service in services if service.links]
        for service in used:
            service.silence()
            service.reachable = False
        await anyio.sleep(5 + 10 + 5)
        assert kinds(events, SurroundingsChanged) == [SurroundingsChanged]
        (third,) = [service for service in services if service not in used]
        assert third.subscribed


@pytest.mark.parametrize(
    ("somewhere", "address"),
    [
        ([(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "no address")], "127.0.0.1"),
        ([(socket.AF_INET, "no address"), (socket.AF_INET, "127.0.0.1")], "127.0.0.1"),
        ([(socket.AF_INET, "127.0.0.1")] * 2, "127.0.0.1 and 127.0.0.1"),
        ([(socket.AF_INET, "no address")], ""),
    ],
)
def test_the_own_addresses_are_those_of_each_family_that_has_a_route(
    somewhere: list[tuple[socket.AddressFamily, str]],
    address: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network_interfaces, "_SOMEWHERE", somewhere)
    assert network_interfaces.local_address() == address


async def test_a_changed_address_is_noticed() -> None:
    service = Service()
    events: list[ClientEvent] = []
    async with served(service, events=events) as client:
        own = ["10.0.0.1"]
        inside.keeper(client)._own_address = lambda: own[-1]  # noqa: SLF001
        await client.light_push(MESSAGE, SHARD)
        await anyio.sleep(30)
        assert not kinds(events, SurroundingsChanged)
        own.append("")
        await anyio.sleep(6)
        own.append("192.168.0.1")
        await anyio.sleep(6)
        reasons = [event.reason for event in events if isinstance(event, SurroundingsChanged)]
        assert reasons == [
            "the own address is none, no longer 10.0.0.1",
            "the own address is 192.168.0.1, no longer none",
        ]
        await client.light_push(MESSAGE, SHARD)


def test_arguments_of_several_peers_are_checked() -> None:
    with pytest.raises(ValueError, match=r"`redundancy` must be between 1 and 8 \(got 9\)"):
        LightClient("/ip4/1.2.3.4/tcp/1", cluster_id=1, redundancy=9)
    with pytest.raises(ValueError, match="`cluster_id` or `network`"):
        LightClient("/ip4/1.2.3.4/tcp/1")
    with pytest.raises(ValueError, match="`network` must be one of"):
        LightClient(network="status.staging")
    named = LightClient(network="status.prod")
    given = LightClient("/ip4/1.2.3.4/tcp/1", network="twn", cluster_id=7)
    assert [each._own.cluster_id for each in (named, given)] == [16, 7]  # noqa: SLF001


def decoded(record: str) -> bytes:
    return base64.urlsafe_b64decode(record[4:] + "==")
