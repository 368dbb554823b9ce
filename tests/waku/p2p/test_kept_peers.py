"""Relay leaves that find their peers: lists in a DNS of the tests' own, networks, records."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from tests import inside
from tests.waku.discovery.zone import Zone, waku_record
from waku import RelayLeaf, errors
from waku.discovery import Network
from waku.libp2p import InvalidInput, PrivateKey
from waku.p2p import ClientEvent, PeerConnected, PeerLost, SearchFailed, kept_peers
from waku.p2p.kept_peers import WANTED

from .service import identity
from .test_relay import HERE, SHARD, leaf, message, reading, until

pytestmark = pytest.mark.anyio

NOWHERE = "/ip4/127.0.0.1/tcp/1"
RELAY_ONLY, LIGHT_ONLY = 1, 14


def record(number: int, address: str, **values: Any) -> str:
    """The record of a leaf whose key is `identity(number)`."""
    at = address.partition("/p2p/")[0]
    return waku_record(number, at, **{"waku2": RELAY_ONLY, "cluster_id": 42, **values})


@asynccontextmanager
async def leaves(*numbers: int, **values: Any) -> AsyncIterator[list[RelayLeaf]]:
    """Leaves that listen, each with its own key."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(listening(identity(n), **values)) for n in numbers]


def listening(key: PrivateKey, **values: Any) -> RelayLeaf:
    return leaf(listen=[HERE], identity=key, **values)


async def lives_until_cancelled(
    one: RelayLeaf, *, task_status: TaskStatus[anyio.CancelScope]
) -> None:
    with anyio.CancelScope() as scope:
        async with one:
            task_status.started(scope)
            await anyio.sleep_forever()


def connected(one: RelayLeaf) -> int:
    return len(inside.host(one).links)


async def test_a_leaf_finds_peers_in_a_list_and_keeps_as_many_as_a_mesh_wants() -> None:
    zone = Zone()
    numbers = range(1, WANTED + 4)
    async with leaves(*numbers) as found:
        records = [record(n, one.addresses[0]) for n, one in zip(numbers, found, strict=True)]
        records.append(record(50, NOWHERE, waku2=LIGHT_ONLY))
        records.append(record(51, NOWHERE, cluster_id=43))
        tree = zone.plant("relays.example", records)
        events: list[ClientEvent] = []
        async with leaf(tree, resolver=zone, on_event=events.append) as alice:
            await until(lambda: connected(alice) == WANTED)
            await anyio.sleep(80)
            assert connected(alice) == WANTED
            assert not [event for event in events if isinstance(event, PeerLost)]
            async with reading(next(one for one in found if connected(one))) as read:
                await alice.publish(message(b"found you"), SHARD)
                await until(lambda: read == [b"found you"])


async def test_a_found_peer_that_ends_is_replaced_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_peers, "WANTED", 1)
    zone = Zone()
    events: list[ClientEvent] = []
    async with anyio.create_task_group() as tasks:
        both = [listening(identity(number)) for number in (1, 2)]
        scopes = [await tasks.start(lives_until_cancelled, one) for one in both]
        records = [record(n, one.addresses[0]) for n, one in zip((1, 2), both, strict=True)]
        tree = zone.plant("relays.example", [*records, record(3, NOWHERE)])
        async with leaf(tree, resolver=zone, on_event=events.append) as alice:
            await until(lambda: connected(alice) == 1)
            first = 0 if connected(both[0]) else 1
            scopes[first].cancel()
            await until(lambda: connected(both[1 - first]) == 1)
            assert connected(alice) == 1
        scopes[1 - first].cancel()
    lost = [event.peer_id for event in events if isinstance(event, PeerLost)]
    assert both[first].peer_id in lost and both[1 - first].peer_id not in lost


async def test_a_network_gives_the_entry_and_the_shards() -> None:
    zone = Zone()
    async with leaves(1) as (found,):
        tree = zone.plant("relays.example", [record(1, found.addresses[0])])
        own = Network(name="own", cluster_id=42, shards=(0,), entry=(tree,))
        async with RelayLeaf(network=own, resolver=zone) as alice:
            await until(lambda: alice.peers(SHARD) == 1)
        async with RelayLeaf((), network=own, resolver=zone) as alone:
            await anyio.sleep(60)
            assert not alone.peers(SHARD), "an empty list is no list of the network"


async def test_a_list_of_another_network_is_named() -> None:
    zone = Zone()
    tree = zone.plant("relays.example", [record(1, NOWHERE, cluster_id=43)])
    events: list[ClientEvent] = []
    async with leaf(tree, resolver=zone, on_event=events.append):
        await until(lambda: bool(events))
    (failed,) = events
    assert isinstance(failed, SearchFailed) and "is in cluster 43, not 42" in failed.reason


async def test_a_record_is_an_address_too() -> None:
    async with leaves(1) as (found,):
        events: list[ClientEvent] = []
        async with leaf(record(1, found.addresses[0]), on_event=events.append) as alice:
            await until(lambda: alice.peers(SHARD) == 1)
    assert isinstance(events[0], PeerConnected) and events[0].peer_id == found.peer_id
    with pytest.raises(errors.WrongNetwork, match="is in cluster 43, not 42"):
        leaf(record(1, NOWHERE, cluster_id=43))
    with pytest.raises(InvalidInput):
        leaf("http://127.0.0.1:8645")
