"""The book of peers: what it takes, whom it forgets."""

import itertools

import pytest

from tests.waku.discovery.zone import waku_record
from waku.discovery import NodeRecord
from waku.errors import NodeUnreachable, RateLimited, WrongNetwork
from waku.libp2p import InvalidInput, Multiaddr
from waku.p2p.codec import Metadata
from waku.p2p.peer_book import MAX_ADDRESSES, PeerBook
from waku.p2p.protocols import FILTER_SUBSCRIBE, LIGHT_PUSH_3, Role

ALL = set(Role)


def book(limit: int = 10) -> PeerBook:
    numbers = itertools.count()
    return PeerBook(Metadata(1, frozenset({0})), random=lambda: next(numbers), limit=limit)


def node(number: int, address: str = "/dns4/a.example/tcp/1", waku2: int = 15) -> NodeRecord:
    return NodeRecord.parse(waku_record(number, address, waku2=waku2))


def test_found_peers_are_bounded_and_the_worst_gives_way() -> None:
    """A hostile peer may name thousands."""
    peers = book(limit=5)
    peers.add_address(Multiaddr.parse("/dns4/mine.example/tcp/1"))
    for number in range(1, 5):
        assert peers.add_record(node(number))
    (*_, worst) = peers.to_dial(ALL, 0, 10)
    for at in range(3):
        peers.fail(worst, NodeUnreachable("connect"), at)
    assert peers.add_record(node(9))
    assert len(peers) == 5
    entries = peers.to_dial(ALL, 10**9, 10)
    assert worst not in entries
    assert entries[0].is_configured
    for entry in entries:
        entry.is_connected = True
    assert not peers.add_record(node(10))


def test_a_record_brings_addresses_and_roles() -> None:
    peers = book()
    peers.add_record(node(1, waku2=8))
    assert not peers.add_record(node(1, "/dns4/b.example/tcp/2"))
    for port in range(2 * MAX_ADDRESSES):
        peers.add_record(node(1, f"/dns4/c.example/tcp/{port + 1}"))
    (entry,) = peers.to_dial({Role.LIGHT_PUSH}, 0, 10)
    assert len(entry.addresses) == MAX_ADDRESSES
    assert str(entry.addresses[0]).startswith("/dns4/c.example/tcp/16/")  # the newest first
    assert not peers.to_dial({Role.STORE}, 0, 10)


def test_what_nobody_can_dial_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no address that can be dialled"):
        book().add_record(node(1, "/ip4/1.2.3.4/udp/1/quic-v1"))
    with pytest.raises(WrongNetwork, match="in cluster 2, not 1"):
        book().add_record(NodeRecord.parse(waku_record(1, "/dns4/a.example/tcp/1", cluster_id=2)))


def test_an_address_without_a_peer_id_becomes_its_peer() -> None:
    peers = book()
    record = node(1)
    peers.add_record(record)
    peers.add_address(Multiaddr.parse("/dns4/mine.example/tcp/1"))
    mine, found = peers.to_dial(ALL, 0, 10)
    assert peers.connect(mine, record.peer_id, [LIGHT_PUSH_3]) is found
    assert len(peers) == 1
    assert found.is_configured
    assert found.roles == frozenset({Role.LIGHT_PUSH})
    assert peers.connect(found, record.peer_id, [LIGHT_PUSH_3]) is None


def test_a_misfit_rests_longer_and_a_new_network_wakes_the_others() -> None:
    peers = book()
    for number in (1, 2):
        peers.add_record(node(number))
    first, second = peers.to_dial(ALL, 0, 10)
    peers.fail(first, WrongNetwork("connect"), 0)
    peers.fail(second, NodeUnreachable("connect"), 0)
    assert peers.to_dial(ALL, 999, 10) == []
    assert peers.to_dial(ALL, 1_000, 10) == [second]
    peers.fail(second, NodeUnreachable("connect"), 1_000)
    peers.wake_all()
    assert peers.to_dial(ALL, 1_001, 10) == [second]
    assert isinstance(peers.failure(), WrongNetwork)


def test_a_pause_that_is_over_hides_no_other() -> None:
    peers = book()
    for number in (1, 2):
        peers.add_record(node(number))
    for entry, now_ms in zip(peers.to_dial(ALL, 0, 10), (0, 2_000), strict=True):
        assert entry.peer_id is not None
        peers.connect(entry, entry.peer_id, [FILTER_SUBSCRIBE])
        peers.refused(entry, Role.FILTER, RateLimited("filter"), now_ms)
    assert peers.pause_ends_ms(Role.FILTER, 999) == 1_000
    assert peers.pause_ends_ms(Role.FILTER, 2_000) == 3_000
    assert "for 1.0 s" in str(peers.pause_error(Role.FILTER, 2_000))
    assert peers.pause_ends_ms(Role.FILTER, 3_000) is None
