"""Store synchronisation: after a round, what a node was away for is in its Store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.waku.node.wires import TOPIC, Inbox, Wires, message, publish, until
from waku import WakuMessage
from waku.models import StorePage, StoreQuery
from waku.node import EmbeddedNode, NodeOptions
from waku.node.envelope import Envelope
from waku.node.protocols import RECONCILIATION, TRANSFER
from waku.node.reconciliation import MAX_DIFFERENCES
from waku.node.store_sync import (
    MAX_ROUND_BYTES,
    MAX_WINDOW_IDS,
    WINDOW_AGE_NS,
    StoreSync,
    SyncFailed,
)
from waku.node.sync_codec import SYNC_SERVICES, gift_json, ranges_json

pytestmark = pytest.mark.anyio

S = 1_000_000_000
START = 1_000_000 * S


class Clock:
    def __init__(self) -> None:
        self.now_ns = START

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def options(clock: Clock) -> NodeOptions:
    return NodeOptions(
        store_sync=True,
        store_sync_range_s=100,
        store_sync_relay_jitter_s=0,
        redial_min_s=0.001,
        redial_max_s=0.002,
        relay=False,  # so that nothing but synchronisation carries messages
        now_ns=clock,
    )


def stamped(seconds: float, number: int = 0, payload: bytes = b"") -> Envelope:
    at_ns = START + int(seconds * S)
    return Envelope.of(
        "/waku/2/rs/1/0", WakuMessage(b"%d" % number + payload, TOPIC, timestamp=at_ns)
    )


def store(node: EmbeddedNode, *envelopes: Envelope) -> None:
    for envelope in envelopes:
        node.archive_only(envelope)


def hashes(node: EmbeddedNode) -> set[bytes]:
    assert node.archive is not None
    return {digest for _, digest in node.archive.newest_ids(-(2**63), 10**6)}


def sync_of(node: EmbeddedNode) -> StoreSync:
    assert node.store_sync is not None
    return node.store_sync


async def test_a_round_gives_both_stores_what_either_lacked(options: NodeOptions) -> None:
    async with EmbeddedNode(options) as ours, EmbeddedNode(options) as theirs:
        both = [stamped(-50 + number / 100, number) for number in range(1_000)]
        store(ours, *both[:600])
        store(theirs, *both[400:])
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert hashes(ours) == hashes(theirs) == {one.hash for one in both}
        assert ours.metrics.synchronised == {"receive": 400, "sent": 400}


async def test_only_the_window_is_compared(options: NodeOptions, clock: Clock) -> None:
    """From the range and the jitter ago to the jitter ago, as the side that begins has them."""
    options = replace(options, store_sync_range_s=20, store_sync_relay_jitter_s=10)
    far = replace(options, store_sync_range_s=3600)
    async with EmbeddedNode(options) as ours, EmbeddedNode(far) as theirs:
        too_old, oldest, newest, too_young = map(stamped, (-30.5, -30, -10.5, -10))
        store(theirs, too_old, oldest, newest, too_young)
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert hashes(ours) == {oldest.hash, newest.hash}


async def test_a_range_may_go_back_beyond_all_time(options: NodeOptions) -> None:
    options = replace(options, store_sync_range_s=10.0**12)
    async with EmbeddedNode(options) as ours, EmbeddedNode(options) as theirs:
        store(theirs, stamped(-900_000))
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert len(hashes(ours)) == 1


@pytest.mark.parametrize("name", ["store_sync_range_s", "store_sync_relay_jitter_s"])
@pytest.mark.parametrize("seconds", [-1, math.inf, math.nan])
def test_a_time_that_is_none_is_refused(name: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=f"{name}.* must be"):
        NodeOptions(**{name: seconds})  # type: ignore[arg-type]


async def test_what_the_other_side_no_longer_keeps_is_not_handed_over(options: NodeOptions) -> None:
    near = replace(options, store_sync_range_s=10)
    async with EmbeddedNode(options) as ours, EmbeddedNode(near) as theirs:
        old, young = stamped(-50), stamped(-5)
        store(ours, old, young)
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert hashes(theirs) == {young.hash}
        assert ours.metrics.synchronised["sent"] == 1


async def test_a_node_that_was_down_has_what_it_missed_when_it_is_back(
    options: NodeOptions,
) -> None:
    """Over HTTP, at once where the link is made again; its clients get no old messages as new."""
    wires = Wires()
    async with wires.node("first", options=options) as first:
        store(first, stamped(-9, 1))
        async with wires.node("second", "first", options=options) as second:
            inbox = Inbox(second)
            await until(lambda: hashes(second) == hashes(first))
            wires.cut_off("first")
            await until(lambda: not second.mesh.peers())
            store(first, stamped(-8, 2))
            store(second, stamped(-7, 3))
            wires.mend("first")
            first_options_age(first, second)
            await until(lambda: len(hashes(second)) == len(hashes(first)) == 3)
            assert inbox.payloads == []


def first_options_age(*nodes: EmbeddedNode) -> None:
    """Let a second pass, after which the archives are read again."""
    clock = nodes[0].options.now_ns
    assert isinstance(clock, Clock)
    clock.now_ns += WINDOW_AGE_NS


async def test_messages_cross_a_node_in_the_middle(options: NodeOptions, clock: Clock) -> None:
    """Of three in a row the last one was down; each round is with the next link in turn."""
    names = [EmbeddedNode(options) for _ in range(3)]
    async with names[0] as first, names[1] as middle, names[2] as last:
        store(first, *(stamped(-9, number) for number in range(5)))
        store(last, stamped(-8, 9))
        first.join(middle)
        middle.join(last)
        for _ in range(3):
            await sync_of(middle).next_round()
            clock.now_ns += WINDOW_AGE_NS
        assert len(hashes(first)) == 6
        assert hashes(first) == hashes(middle) == hashes(last)


async def test_the_interval_makes_rounds(options: NodeOptions) -> None:
    """Without any link that comes up."""
    options = replace(options, store_sync_interval_s=0.001)
    async with EmbeddedNode(options) as ours, EmbeddedNode(options) as theirs:
        store(theirs, stamped(-9))
        ours.join(theirs)
        await until(lambda: len(hashes(ours)) == 1)


async def test_a_node_without_it_is_left_alone(options: NodeOptions) -> None:
    without = replace(options, store_sync=False)
    async with EmbeddedNode(options) as ours, EmbeddedNode(without) as theirs:
        store(theirs, stamped(-9))
        store(ours, stamped(-8))
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert len(hashes(ours)) == len(hashes(theirs)) == 1
        (link,) = ours.mesh.links.values()
        with pytest.raises(SyncFailed, match="no store synchronisation"):
            await sync_of(ours).round_with(link)


async def test_a_node_without_store_has_none(options: NodeOptions) -> None:
    async with EmbeddedNode(replace(options, store=False)) as node:
        assert node.store_sync is None
        assert not {RECONCILIATION, TRANSFER} & set(node.info.protocols)
    async with EmbeddedNode(options) as node:
        assert {RECONCILIATION, TRANSFER} <= set(node.info.protocols)


async def test_the_tolerance_of_relayed_messages_does_not_apply(options: NodeOptions) -> None:
    """A message that is new to the Store and 50 seconds old came too late by relay alone."""
    strict = replace(options, store_timestamp_tolerance_s=20)
    async with EmbeddedNode(options) as ours, EmbeddedNode(strict) as theirs:
        store(ours, stamped(-50))
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert hashes(theirs) == hashes(ours)


async def test_what_is_none_to_keep_is_not_kept(options: NodeOptions) -> None:
    async with EmbeddedNode(options) as node:
        topic = "/waku/2/rs/1/0"
        ephemeral = WakuMessage(b"", TOPIC, timestamp=START, ephemeral=True)
        large = WakuMessage(bytes(200_000), TOPIC, timestamp=START)
        gift = [
            stamped(-101),
            stamped(+21),
            Envelope.of(topic, ephemeral),
            Envelope.of(topic, large),
            stamped(-100, 7),
        ]
        assert sync_of(node).answer(gift_json(gift)) == {"status": 200}
        assert hashes(node) == {gift[-1].hash}


async def test_what_is_handed_over_stays_within_the_capacity(options: NodeOptions) -> None:
    async with EmbeddedNode(replace(options, store_capacity=50)) as node:
        for at in range(6):
            gift = [stamped(-50 + at, number) for number in range(100)]
            sync_of(node).answer(gift_json(gift))
        assert len(hashes(node)) <= 100  # looked at each 50 messages


async def test_what_the_retention_forgot_does_not_come_again(options: NodeOptions) -> None:
    forgetful = replace(options, store_retention_s=20)
    async with EmbeddedNode(forgetful) as ours, EmbeddedNode(options) as theirs:
        store(theirs, stamped(-30), stamped(-10))
        ours.join(theirs)
        for asking in (ours, theirs):
            await sync_of(asking).next_round()
            assert hashes(ours) == {stamped(-10).hash}


class Scripted:
    """A joined node that answers as a test has it."""

    key = "scripted"
    connected = True

    def __init__(self, node: EmbeddedNode) -> None:
        self.info = node.info
        self.services: Any = self
        self.asked: list[Mapping[str, Any]] = []
        self.queries = 0
        self.page = StorePage((), None)
        self._node = node

    def follows(self, pubsub_topic: str) -> bool:
        return False

    def send(self, envelope: Envelope) -> None: ...

    async def ask_sync(self, fields: Mapping[str, object]) -> Mapping[str, Any]:
        self.asked.append(fields)
        return sync_of(self._node).answer(fields)

    async def query(self, query: StoreQuery) -> StorePage:
        self.queries += 1
        return self.page


async def test_a_store_that_does_not_send_what_it_named_is_asked_once_a_page(
    options: NodeOptions,
) -> None:
    """Nothing, or messages that nobody asked for: neither is kept, nor asked for again."""
    async with EmbeddedNode(options) as ours, EmbeddedNode(options) as theirs:
        store(theirs, *(stamped(-9, number) for number in range(150)))
        other = EmbeddedNode(replace(options, store_sync=False))
        store(other, stamped(-9, 1_000))
        liar = Scripted(theirs)
        await sync_of(ours).round_with(liar)
        assert liar.queries == 2  # a page of 100, and one of 50
        assert other.archive is not None
        liar.page = other.archive.query(StoreQuery())
        await sync_of(ours).round_with(liar)
        assert liar.queries == 4
        assert hashes(ours) == set()
        other.archive.close()


async def test_a_round_hands_over_so_many_bytes(options: NodeOptions, clock: Clock) -> None:
    async with EmbeddedNode(options) as ours, EmbeddedNode(options) as theirs:
        size = 140_000
        number = MAX_ROUND_BYTES // size + 10
        store(ours, *(stamped(-50 + at / 10, at, bytes(size)) for at in range(number)))
        ours.join(theirs)
        await sync_of(ours).next_round()
        first = len(hashes(theirs))
        assert number - 13 < first < number
        clock.now_ns += WINDOW_AGE_NS
        await sync_of(ours).next_round()
        assert hashes(theirs) == hashes(ours)


async def test_a_long_absence_takes_several_rounds(options: NodeOptions, clock: Clock) -> None:
    async with EmbeddedNode(options) as ours, EmbeddedNode(options) as theirs:
        number = MAX_DIFFERENCES + 100
        store(theirs, *(stamped(-50 + at / 1_000, at) for at in range(number)))
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert len(hashes(ours)) == MAX_DIFFERENCES
        clock.now_ns += WINDOW_AGE_NS
        await sync_of(ours).next_round()
        assert len(hashes(ours)) == number


async def test_many_requests_read_the_archive_once_a_second(
    options: NodeOptions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with EmbeddedNode(options) as node:
        assert node.archive is not None
        reads: list[int] = []
        read = node.archive.newest_ids

        def counted(since_ns: int, limit: int) -> list[tuple[int, bytes]]:
            assert limit == MAX_WINDOW_IDS
            reads.append(since_ns)
            return read(since_ns, limit)

        monkeypatch.setattr(node.archive, "newest_ids", counted)
        for _ in range(100):
            sync_of(node).answer(ranges_json([]))
        clock.now_ns += WINDOW_AGE_NS
        sync_of(node).answer(ranges_json([]))
        assert len(reads) == 2


async def test_of_a_window_with_too_many_the_newest_are_compared(
    options: NodeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither side takes the older ones for missing."""
    monkeypatch.setattr("waku.node.store_sync.MAX_WINDOW_IDS", 10)
    async with EmbeddedNode(options) as ours, EmbeddedNode(options) as theirs:
        messages = [stamped(-50 + at, at) for at in range(30)]
        store(theirs, *messages)
        store(ours, *messages[:5])
        ours.join(theirs)
        await sync_of(ours).next_round()
        assert len(hashes(theirs)) == 30
        assert hashes(ours) > {one.hash for one in messages[21:]}
        assert ours.metrics.synchronised["sent"] == 0


@pytest.mark.parametrize("service", SYNC_SERVICES)
async def test_a_request_that_is_none_ends_the_round_alone(
    options: NodeOptions, service: str
) -> None:
    """Over HTTP it is answered with 400, and the link goes on."""
    wires = Wires()
    async with wires.node("first", options=options) as first:
        async with wires.node("second", "first", options=options) as second:
            await until(lambda: bool(second.mesh.peers()))
            (link,) = second.mesh.links.values()
            answer = await link.ask_sync({"service": service})  # type: ignore[attr-defined]
            assert answer["status"] == 400
            assert bool(first.mesh.peers())
            with pytest.raises(ValueError, match="not"):
                sync_of(first).answer({"service": service})


async def test_relayed_messages_are_not_fetched_again(options: NodeOptions) -> None:
    relaying = replace(options, relay=True)
    async with EmbeddedNode(relaying) as ours, EmbeddedNode(relaying) as theirs:
        ours.join(theirs)
        publish(ours, message(1), message(2))
        await sync_of(ours).next_round()
        assert ours.metrics.synchronised.total() == 0
        assert len(hashes(theirs)) == 2
