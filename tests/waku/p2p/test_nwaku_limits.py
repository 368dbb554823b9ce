"""A light client keeps within what nwaku bears, and takes its refusals for what they are."""

from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import anyio
import pytest

from waku import WakuMessage, errors
from waku.libp2p.driver import Handler
from waku.p2p import (
    ClientEvent,
    LightClient,
    PeerDeaf,
    PeerLost,
    PeerPaused,
    Role,
    SubscriptionInterrupted,
    SubscriptionRenewed,
    TooFewPeers,
)
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.asking import BEHIND_S
from waku.p2p.client import PATIENCE_S
from waku.p2p.codec import ResponseStatus
from waku.p2p.protocols import FILTER_SUBSCRIBE
from waku.p2p.service_peer import ServicePeer

from .nwaku import FILTER_REQUESTS, MESH_BYTES, WINDOW_S, NwakuNetwork
from .service import SHARD, TOPIC, Service, answering, identity, served

pytestmark = pytest.mark.anyio


def client_of(
    *addresses: str, events: list[ClientEvent] | None = None, **options: Any
) -> LightClient:
    on_event = (lambda _: None) if events is None else events.append
    return LightClient(addresses, cluster_id=1, shards=[0], on_event=on_event, **options)


def message(number: int, size_bytes: int = 200, topic: str = TOPIC) -> WakuMessage:
    return WakuMessage(number.to_bytes(4, "big") * (size_bytes // 4), topic, timestamp=number + 1)


def of(events: list[ClientEvent], *kinds: type) -> list[type]:
    return [type(event) for event in events if isinstance(event, kinds)]


async def push_all(client: LightClient, count: int, size_bytes: int = 200) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(client.light_push, message(number, size_bytes), SHARD)


@pytest.mark.parametrize("size_bytes", [200, 19_000, 120_000])
async def test_many_messages_at_once_are_all_taken_and_break_no_mesh(
    monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    network = NwakuNetwork(2)
    async with network.in_memory(monkeypatch) as addresses, client_of(addresses[0]) as client:
        await push_all(client, 60, size_bytes)
        here, there = network.nodes
        assert not here.refused
        assert here.mesh.breaks == 0
        assert here.mesh.most_bytes < MESH_BYTES
        assert len(there.own_store) == 60


async def test_clients_of_one_loop_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NwakuNetwork(1)
    async with network.in_memory(monkeypatch) as (address,):
        async with client_of(address) as one, client_of(address) as other:
            async with anyio.create_task_group() as tasks:
                for client in (one, other):
                    tasks.start_soon(push_all, client, 20, 90_000)
        (node,) = network.nodes
        assert node.mesh.most_bytes < 100_000


async def test_a_slow_second_peer_does_not_pile_up_what_the_first_has_taken() -> None:
    first, second = Service(identity(1)), Service(identity(2))
    async with served(first, second, redundancy=2) as client:
        await client.light_push(message(0), SHARD)
        await anyio.sleep(1)  # both are connected
        second.push_answer = lambda _: None
        second.asked.clear()
        for number in range(100):
            await client.light_push(message(number), SHARD)
        assert len(second.asked) <= 8
        await anyio.sleep(60)
        assert len(second.asked) <= 16  # the rest was given up, not kept


async def test_a_second_peer_that_hangs_is_noted_and_checked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, events = Service(identity(1)), Service(identity(2)), list[ClientEvent]()
    async with served(
        first, second, events=events, redundancy=2, request_timeout_ms=60_000
    ) as client:
        await client.light_push(message(0), SHARD)
        await anyio.sleep(1)  # both are connected
        second.push_answer = lambda _: None
        checked: list[ServicePeer] = []
        check = ServicePeer.ping

        async def ping(peer: ServicePeer) -> float:
            checked.append(peer)
            return await check(peer)

        monkeypatch.setattr(ServicePeer, "ping", ping)
        await push_all(client, 20)
        await anyio.sleep(BEHIND_S + 1)
        assert [peer.link.peer_id for peer in checked] == [second.identity.peer_id]
        paused = [event for event in events if isinstance(event, PeerPaused)]
        assert [event.peer_id for event in paused] == [second.identity.peer_id]
        assert "light_push: no answer" in paused[0].reason


# Refusals


async def test_a_refusal_under_no_request_s_id_is_one() -> None:
    assert ResponseStatus("N/A", 429).is_for("0a")
    assert not ResponseStatus("N/A", 200).is_for("0a")
    assert not ResponseStatus("0b", 429).is_for("0a")


async def test_a_rate_limit_is_told_with_its_text_and_pauses_the_peer() -> None:
    service, events = Service(), list[ClientEvent]()
    service.push_answer = lambda _: pb.LightpushResponse(
        request_id="N/A", status_code=429, status_desc="rejected due to rate limit"
    )
    async with served(service, events=events) as client:
        with pytest.raises(errors.RateLimited, match="429: rejected due to rate limit"):
            await client.light_push(message(1), SHARD)
        (paused,) = [event for event in events if isinstance(event, PeerPaused)]
        assert (paused.role, paused.pause_ms) == (Role.LIGHT_PUSH, 1_000)


async def test_subscriptions_beyond_the_limit_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = NwakuNetwork(1)
    async with network.in_memory(monkeypatch) as (address,), client_of(address) as client:
        async with AsyncExitStack() as stack:
            for number in range(FILTER_REQUESTS + 15):
                await stack.enter_async_context(client.subscribe(SHARD, [f"/a/1/{number}/proto"]))
            assert network.nodes[0].refused["429"]
            assert len(*network.nodes[0].filters.values()) == FILTER_REQUESTS + 15


async def test_subscriptions_that_come_together_go_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = NwakuNetwork(1)
    async with network.in_memory(monkeypatch) as (address,), client_of(address) as client:
        async with anyio.create_task_group() as tasks:

            async def subscribe(topic: str) -> None:
                async with client.subscribe(SHARD, [topic]):
                    await anyio.sleep_forever()

            for number in range(45):
                tasks.start_soon(subscribe, f"/a/1/{number}/proto")
            await anyio.sleep(5)
            assert len(*network.nodes[0].filters.values()) == 45
            assert network.nodes[0].requests <= 2
            tasks.cancel_scope.cancel()


async def test_a_topic_that_is_refused_spoils_no_other() -> None:
    service = Service()

    def answer(request: pb.FilterSubscribeRequest) -> pb.FilterSubscribeResponse:
        status = 400 if "bad" in request.content_topics else 200
        return pb.FilterSubscribeResponse(request_id=request.request_id, status_code=status)

    service.handlers[FILTER_SUBSCRIBE] = answering(pb.FilterSubscribeRequest, answer)
    outcomes: dict[str, str] = {}
    async with served(service) as client, anyio.create_task_group() as tasks:

        async def subscribe(topic: str) -> None:
            try:
                async with client.subscribe(SHARD, [topic]):
                    outcomes[topic] = "subscribed"
            except errors.BadRequest:
                outcomes[topic] = "refused"

        for topic in ("first", "second", "bad", "third"):
            tasks.start_soon(subscribe, topic)
    assert outcomes == {
        "first": "subscribed", "second": "subscribed", "bad": "refused", "third": "subscribed",
    }  # fmt: skip


async def test_a_task_that_is_cancelled_takes_no_other_subscription_along() -> None:
    service, scopes, subscribed = Service(), [anyio.CancelScope() for _ in range(3)], []
    asked = anyio.Event()

    async def answer(stream: object) -> None:
        asked.set()
        await anyio.sleep(1)
        await answering(pb.FilterSubscribeRequest, service.filter)(stream)  # type: ignore[arg-type]

    service.handlers[FILTER_SUBSCRIBE] = answer
    async with served(service) as client, anyio.create_task_group() as tasks:

        async def subscribe(number: int) -> None:
            with scopes[number]:
                async with client.subscribe(SHARD, [f"/a/1/{number}/proto"]):
                    subscribed.append(number)

        tasks.start_soon(subscribe, 0)
        await asked.wait()
        for number in (1, 2):
            tasks.start_soon(subscribe, number)
        await anyio.wait_all_tasks_blocked()
        await anyio.sleep(1.5)
        scopes[1].cancel()  # its request is that of both
    assert subscribed == [0, 2]


def rationing(*statuses: int) -> Handler:
    """Answer filter requests by these statuses in turn, and by the last from then on."""
    left = list(statuses)
    return answering(
        pb.FilterSubscribeRequest,
        lambda request: pb.FilterSubscribeResponse(
            request_id=request.request_id,
            status_code=left.pop(0) if len(left) > 1 else left[0],
        ),
    )


async def test_a_subscription_that_the_keeper_renews_ends_the_pause() -> None:
    first, second, events = Service(identity(1)), Service(identity(2)), list[ClientEvent]()
    second.handlers[FILTER_SUBSCRIBE] = rationing(200, 429, 200, 429, 200)
    async with served(first, second, events=events) as client:
        async with client.subscribe(SHARD, [TOPIC]):
            for _ in range(2):
                await anyio.sleep(1.5)  # the keeper asks again when the pause is over
                client.renew()
            await anyio.sleep(1.5)
    pauses = [event.pause_ms for event in events if isinstance(event, PeerPaused)]
    assert pauses == [1_000, 1_000]


async def test_peers_that_never_take_a_subscription_are_given_up() -> None:
    service = Service()
    service.handlers[FILTER_SUBSCRIBE] = answering(
        pb.FilterSubscribeRequest,
        lambda _: pb.FilterSubscribeResponse(request_id="N/A", status_code=429),
    )
    async with served(service) as client:
        begun_s = anyio.current_time()
        with pytest.raises(errors.RateLimited):
            async with client.subscribe(SHARD, [TOPIC]):
                pass
        assert PATIENCE_S <= anyio.current_time() - begun_s < PATIENCE_S + 1


@pytest.mark.parametrize("limited", [0, 1])
async def test_a_peer_that_answers_429_is_waited_for_though_another_fails(limited: int) -> None:
    services = Service(identity(1)), Service(identity(2))
    services[limited].handlers[FILTER_SUBSCRIBE] = rationing(429, 429, 200)
    services[1 - limited].handlers[FILTER_SUBSCRIBE] = rationing(500)
    async with served(*services) as client, client.subscribe(SHARD, [TOPIC]):
        assert anyio.current_time() >= 3  # the pauses after two refusals


async def test_a_peer_that_answers_a_ping_by_429_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    network, events = NwakuNetwork(1), list[ClientEvent]()
    async with network.in_memory(monkeypatch) as (address,):
        client = client_of(address, events=events, keep_alive_ms=10_000)
        async with client, AsyncExitStack() as stack:
            for number in range(FILTER_REQUESTS):
                await stack.enter_async_context(client.subscribe(SHARD, [f"/a/1/{number}/proto"]))
            await anyio.sleep(WINDOW_S)
            assert network.nodes[0].refused["429"]
            assert of(events, PeerLost, SubscriptionInterrupted) == []


# Deafness


numbers = count()


async def talk(client: LightClient, seconds: int) -> None:
    for _ in range(seconds):
        await client.light_push(message(next(numbers)), SHARD)
        await anyio.sleep(1)


async def test_a_deaf_peer_is_named_and_counts_again_when_it_pushes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, events = NwakuNetwork(1), list[ClientEvent]()
    async with network.in_memory(monkeypatch) as (address,):
        async with client_of(address, events=events) as client:
            async with client.subscribe(SHARD, [TOPIC]) as messages:
                await talk(client, 30)
                assert of(events, PeerDeaf) == []
                network.nodes[0].has_left_shard = True
                await talk(client, 30)
                kinds = of(events, PeerDeaf, SubscriptionInterrupted, TooFewPeers)
                assert kinds[-3:] == [SubscriptionInterrupted, PeerDeaf, TooFewPeers]
                reason = next(event.reason for event in events if isinstance(event, PeerDeaf))
                assert "nothing came for" in reason
                async with client.subscribe(SHARD, ["/a/1/b/proto"]):
                    assert of(events, SubscriptionInterrupted) == [SubscriptionInterrupted] * 2
                network.nodes[0].has_left_shard = False
                await talk(client, 2)
                assert of(events, SubscriptionRenewed) == [SubscriptionRenewed]
                assert messages.statistics().current_buffer_used == 32
                await talk(client, 60)
                assert of(events, PeerDeaf) == [PeerDeaf]


async def test_a_quiet_peer_and_one_that_was_left_are_not_deaf(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, events = NwakuNetwork(1), list[ClientEvent]()
    async with network.in_memory(monkeypatch) as (address,):
        async with client_of(address, events=events) as client:
            async with client.subscribe(SHARD, [TOPIC]):
                await anyio.sleep(120)
                network.nodes[0].has_left_shard = True
                await talk(client, 2)
            await anyio.sleep(120)
            assert of(events, PeerDeaf) == []


async def test_of_two_peers_the_one_that_hears_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    network, events = NwakuNetwork(2), list[ClientEvent]()
    async with network.in_memory(monkeypatch) as addresses:
        async with client_of(*addresses, events=events) as client:
            async with client.subscribe(SHARD, [TOPIC]) as messages:
                network.nodes[0].has_left_shard = True
                await talk(client, 40)
                assert messages.statistics().current_buffer_used == 40
            assert of(events, PeerDeaf, SubscriptionInterrupted) == [PeerDeaf]
            asked: list[ServicePeer] = []
            store = ServicePeer.store

            async def noting(peer: ServicePeer, query: object) -> object:
                asked.append(peer)
                return await store(peer, query)  # type: ignore[arg-type]

            monkeypatch.setattr(ServicePeer, "store", noting)
            for number in range(4):
                assert await client.store_by_hash([sorted(network.nodes[1].own_store)[number]])
            hears = network.nodes[1].host.identity.peer_id
            assert {peer.link.peer_id for peer in asked} == {hears}
