"""Meshes of our own leaves, with loss and churn; and what hostile peers get."""

from random import Random

import pytest

from tests import inside
from waku.libp2p import InvalidInput
from waku.libp2p.gossipsub import (
    Arrived,
    Blamed,
    GossipOptions,
    QueueFull,
    Router,
    message_id,
)
from waku.libp2p.gossipsub_pb2 import GossipRpc

from .world import TOPIC, World

SMALL = GossipOptions(queue_bytes=10_000, rpc_bytes=2_000)


def rpc(**control: object) -> GossipRpc:
    made = GossipRpc()
    for name, values in control.items():
        for value in values:  # type: ignore[attr-defined]
            getattr(made.control, name).add(**value)
    return made


def published(data: bytes, topic: str = TOPIC, **extra: bytes) -> bytes:
    made = GossipRpc()
    made.publish.add(topic=topic, data=data, **extra)
    return made.SerializeToString()


def subscribed(topic: str) -> bytes:
    made = GossipRpc()
    made.subscriptions.add(subscribe=True, topic=topic)
    return made.SerializeToString()


def leaf(*peers: str, options: GossipOptions | None = None, topic: str = TOPIC) -> Router:
    router = Router(random=Random(1), now_ms=0, options=options)
    router.subscribe(topic)
    for peer in peers:
        router.connected(peer)
        router.receive(peer, subscribed(topic), 0)
    return router


def sent(router: Router, peer: str) -> GossipRpc:
    """All that waits for a peer, as one RPC."""
    made = GossipRpc()
    while parts := router.take_outgoing(peer):
        for part in parts:
            made.MergeFromString(part)
    return made


def events(router: Router) -> list[object]:
    found: list[object] = []
    while (event := router.next_event()) is not None:
        found.append(event)
    return found


# Meshes


@pytest.mark.parametrize("seed", range(3))
def test_every_message_reaches_everybody_once(seed: int) -> None:
    world = World(20, seed)
    world.link_at_random(8)
    world.run(5_000)
    for number in range(40):
        world.publish(number % 20, b"%d" % number)
        world.run(50)
    world.run(10_000)
    expected = sorted(b"%d" % number for number in range(40))
    for number in range(20):
        assert sorted(world.arrived[number]) == expected
        degree = sum(number in link for link in world.links)
        # Peers whose mesh is full refuse, and are not asked again within the back-off.
        assert min(3, degree) <= len(world.leaves[number].mesh(TOPIC)) <= 8
    assert world.blamed() == []


@pytest.mark.parametrize("seed", range(3))
def test_gossip_repairs_what_is_lost(seed: int) -> None:
    """A third of all messages is lost on each link: IHAVE and IWANT bring them.

    What is sent for IWANT can be lost as well, and nobody asks twice.
    """
    world = World(16, seed)
    world.link_at_random(10)
    world.run(5_000)
    world.loses = lambda data: (
        bool(GossipRpc.FromString(data).publish) and (world.random.random() < 0.33)
    )
    for number in range(40):
        world.publish(number % 16, b"%d" % number)
        world.run(100)
    world.loses = lambda _: False
    world.run(10_000)
    assert sum(len(set(world.arrived[number])) for number in range(16)) >= 16 * 40 - 1


@pytest.mark.parametrize("seed", range(3))
def test_links_that_come_and_go(seed: int) -> None:
    world = World(16, seed)
    world.link_at_random(8)
    world.run(3_000)
    for number in range(60):
        one, other = sorted(world.random.choice(sorted(map(sorted, world.links))))
        if abs(one - other) not in (1, 15):  # the ring stays
            world.cut(one, other)
        world.link(*world.random.sample(range(16), 2))
        world.publish(number % 16, b"%d" % number)
        world.run(200)
    world.run(10_000)
    assert all(len(set(world.arrived[number])) == 60 for number in range(16))
    assert world.blamed() == []


def test_who_is_in_no_mesh_gets_all_by_gossip() -> None:
    world = World(2, 1)
    world.link(0, 1)
    for router, other in ((world.leaves[0], 1), (world.leaves[1], 0)):
        prune = rpc(prune=[{"topic": TOPIC, "backoff_s": 600}])
        router.receive(other, prune.SerializeToString(), 0)
    world.run(3_000)
    assert world.leaves[0].mesh(TOPIC) == frozenset()
    # Without flood publishing: as if it had come from somebody else.
    world.leaves[0].connected(9)
    world.leaves[0].receive(9, published(b"news"), world.now_ms)
    world.run(3_000)
    assert b"news" in world.arrived[1]


def test_leaving_a_topic() -> None:
    router = leaf("a", "b")
    router.on_heartbeat(1_000)
    assert router.mesh(TOPIC) == {"a", "b"} and router.subscribers(TOPIC) == ["a", "b"]
    sent(router, "a")
    router.unsubscribe(TOPIC, 1_500)
    told = sent(router, "a")
    assert [(s.topic, s.subscribe) for s in told.subscriptions] == [(TOPIC, False)]
    assert [(p.topic, p.backoff_s) for p in told.control.prune] == [(TOPIC, 10)]
    router.receive("a", published(b"late"), 2_000)
    assert events(router) == []
    assert router.publish(TOPIC, b"x", 2_000) == 2, "the others are still subscribed"
    assert [m.data for m in sent(router, "b").publish] == [b"x"]


def test_joining_grafts_at_once_those_who_follow_the_topic() -> None:
    router = leaf("a", "b", topic="other")
    router.receive("a", subscribed(TOPIC), 0)
    sent(router, "a")
    router.subscribe(TOPIC)
    assert router.mesh(TOPIC) == {"a"}
    first, second = map(GossipRpc.FromString, router.take_outgoing("a"))
    assert first.subscriptions, "a GRAFT before that could be ignored"
    assert [graft.topic for graft in second.control.graft] == [TOPIC]


def test_who_subscribes_is_grafted_at_once_while_the_mesh_is_small() -> None:
    names = [f"peer {number}" for number in range(8)]
    router = leaf(*names)
    grafted = [name for name in names if sent(router, name).control.graft]
    assert grafted == names[:6]
    assert router.mesh(TOPIC) == set(grafted)


@pytest.mark.parametrize("way", ["subscription", "graft"])
def test_who_comes_just_after_a_message_hears_of_it_at_once(way: str) -> None:
    router = leaf()
    router.publish(TOPIC, b"early", 0)
    router.connected("late")
    assert not sent(router, "late").control.have
    graft = rpc(graft=[{"topic": TOPIC}]).SerializeToString()
    entry = subscribed(TOPIC) if way == "subscription" else graft
    for _ in range(2):
        router.receive("late", entry, 5)
    (have,) = sent(router, "late").control.have
    assert list(have.message_ids) == [message_id(b"early")]
    router.receive("late", rpc(want=[{"message_ids": have.message_ids}]).SerializeToString(), 9)
    assert [message.data for message in sent(router, "late").publish] == [b"early"]


def test_a_chain_that_forms_around_a_message_carries_it_without_a_heartbeat() -> None:
    world = World(3, 1)
    world.link(0, 1)
    world.publish(0, b"early")
    world.link(1, 2)
    world.run(900)
    assert world.arrived[1] == world.arrived[2] == [b"early"]


def test_who_subscribes_again_and_again_costs_few_ids() -> None:
    router = leaf()
    router.publish(TOPIC, b"early", 0)
    router.connected("m")
    left = GossipRpc()
    left.subscriptions.add(subscribe=False, topic=TOPIC)
    for _ in range(100):
        router.receive("m", subscribed(TOPIC), 0)
        router.receive("m", left.SerializeToString(), 0)
    assert len(sent(router, "m").control.have) == router.options.have_per_heartbeat


def test_a_large_mesh_is_pruned_and_a_small_one_grows() -> None:
    names = [f"peer {number}" for number in range(12)]
    router = leaf(*names)
    for name in names:
        router.receive(name, rpc(graft=[{"topic": TOPIC}]).SerializeToString(), 0)
    assert len(router.mesh(TOPIC)) == 8
    refused = [name for name in names if sent(router, name).control.prune]
    assert len(refused) == 4
    for name in sorted(map(str, router.mesh(TOPIC)))[:6]:
        router.gone(name)
    router.on_heartbeat(1_000)
    assert len(router.mesh(TOPIC)) == 2, "the refused ones are within their back-off"
    router.on_heartbeat(61_000)
    assert len(router.mesh(TOPIC)) == 6


def test_a_message_is_delivered_once_and_not_sent_back() -> None:
    router = leaf("a", "b")
    router.on_heartbeat(1_000)
    sent(router, "a"), sent(router, "b")
    for peer in "aba":
        router.receive(peer, published(b"x"), 1_000)
    (arrived,) = events(router)
    assert arrived == Arrived(TOPIC, b"x", message_id(b"x"), "a")
    assert not sent(router, "a").publish
    assert [m.data for m in sent(router, "b").publish] == [b"x"]
    assert router.publish(TOPIC, b"x", 2_000) == 2
    assert not sent(router, "b").publish, "it was seen"


# Bad input


def test_what_is_no_rpc() -> None:
    router = leaf("a")
    for _ in range(30):
        with pytest.raises(InvalidInput, match="not a gossipsub RPC"):
            router.receive("a", b"\xff\xff\xff", 0)
    assert events(router) == [Blamed("a", "an RPC that cannot be read")]
    router.receive("nobody", b"\xff", 0)


@pytest.mark.parametrize("field", ["sender", "seqno", "signature", "key"])
def test_a_signed_message_is_refused(field: str) -> None:
    router = leaf("a")
    for number in range(20):
        router.receive("a", published(b"%d" % number, TOPIC, **{field: b"me"}), 0)
    (blamed,) = events(router)
    assert isinstance(blamed, Blamed) and "anonymous" in blamed.reason


def test_an_invalid_message_is_judged_once_and_goes_no_further() -> None:
    judged = []

    def is_valid(topic: str, data: bytes) -> bool:
        judged.append(data)
        return data != b"bad"

    router = Router(random=Random(1), now_ms=0, is_valid=is_valid)
    router.subscribe(TOPIC)
    for peer in "abc":
        router.connected(peer)
        router.receive(peer, rpc(graft=[{"topic": TOPIC}]).SerializeToString(), 0)
        sent(router, peer)
    for data in (b"bad", b"bad", b"good", bytes(200_000)):
        router.receive("a", published(data), 0)
    assert judged == [b"bad", b"good"]
    assert [e.data for e in events(router) if isinstance(e, Arrived)] == [b"good"]
    assert [m.data for m in sent(router, "b").publish] == [b"good"]
    with pytest.raises(ValueError, match=r"`data` must have at most 153600 bytes \(got 200000\)"):
        router.publish(TOPIC, bytes(200_000), 0)


def test_a_flood_of_ihave_costs_few_requests_and_broken_promises_are_faults() -> None:
    router = leaf("mallory", "bob")
    random = Random(1)
    asked = 0
    for beat in range(30):
        for _ in range(50):
            ids = [random.randbytes(32) for _ in range(1_000)]
            have = rpc(have=[{"topic": TOPIC, "message_ids": ids}])
            router.receive("mallory", have.SerializeToString(), 1_000 * beat)
        asked += sum(len(w.message_ids) for w in sent(router, "mallory").control.want)
        router.on_heartbeat(1_000 * beat + 1_000)
        assert inside.sizes(router)["_promises"] <= 2_000
    assert asked <= 2_000 * 11, "what is asked of one peer is bounded"
    (blamed,) = (event for event in events(router) if isinstance(event, Blamed))
    assert blamed.peer == "mallory"
    # Others are asked as ever.
    have = rpc(have=[{"topic": TOPIC, "message_ids": [bytes(32)]}])
    router.receive("bob", have.SerializeToString(), 40_000)
    assert sent(router, "bob").control.want[0].message_ids == [bytes(32)]


def test_a_broken_promise_is_a_fault_and_another_peer_is_asked() -> None:
    router = leaf("a", "b")
    have = rpc(have=[{"topic": TOPIC, "message_ids": [bytes(32)]}]).SerializeToString()
    for peer in "ab":
        router.receive(peer, have, 0)
    assert sent(router, "a").control.want and not sent(router, "b").control.want
    router.on_heartbeat(3_000)
    assert router.peers["a"].faults > 0.9 and router.peers["a"].promised == 0
    router.receive("b", have, 3_000)
    assert sent(router, "b").control.want


def test_ids_of_a_wrong_length_and_of_other_topics_are_not_asked_for() -> None:
    router = leaf("a")
    ids = [b"short", bytes(33), b""]
    router.receive("a", rpc(have=[{"topic": TOPIC, "message_ids": ids}]).SerializeToString(), 0)
    other = rpc(have=[{"topic": "other", "message_ids": [bytes(32)]}])
    router.receive("a", other.SerializeToString(), 0)
    assert not sent(router, "a").control.want


def test_a_flood_of_iwant_gets_each_message_three_times() -> None:
    router = leaf("a", "mallory")
    ids = []
    for number in range(50):
        data = b"%d" % number + bytes(1_000)
        router.publish(TOPIC, data, 0)
        ids.append(message_id(data))
    sent(router, "mallory")
    got = 0
    for _ in range(100):
        router.receive("mallory", rpc(want=[{"message_ids": ids}]).SerializeToString(), 0)
        got += len(sent(router, "mallory").publish)
    assert got == 3 * 50


def test_what_is_sent_for_iwant_in_a_heartbeat_is_bounded() -> None:
    options = GossipOptions(wanted_bytes_per_heartbeat=5_000)
    router = leaf("mallory", options=options)
    ids = []
    for number in range(50):
        data = b"%d" % number + bytes(1_000)
        router.publish(TOPIC, data, 0)
        ids.append(message_id(data))
    sent(router, "mallory")
    want = rpc(want=[{"message_ids": ids}]).SerializeToString()
    router.receive("mallory", want, 0)
    assert len(sent(router, "mallory").publish) == 4
    router.on_heartbeat(1_000)
    sent(router, "mallory")
    router.receive("mallory", want, 1_000)
    assert len(sent(router, "mallory").publish) == 4


def test_a_flood_of_graft_is_answered_a_few_times_and_blamed() -> None:
    router = leaf("mallory")
    router.receive("mallory", rpc(prune=[{"topic": TOPIC}]).SerializeToString(), 0)
    graft = rpc(graft=[{"topic": TOPIC}] * 1_000).SerializeToString()
    sent(router, "mallory")
    for _ in range(1_000):
        router.receive("mallory", graft, 10)
    assert len(sent(router, "mallory").control.prune) == 20
    assert router.mesh(TOPIC) == frozenset()
    (blamed,) = events(router)
    assert isinstance(blamed, Blamed) and "GRAFT" in blamed.reason


IDS = [bytes([number]) * 32 for number in range(20)]
FLOODS = {
    "IHAVE": rpc(have=[{"topic": TOPIC, "message_ids": IDS}]).SerializeToString(),
    "IHAVE of another topic": rpc(have=[{"topic": "other"}]).SerializeToString(),
    "IWANT": rpc(want=[{"message_ids": IDS}]).SerializeToString(),
    "GRAFT": rpc(graft=[{"topic": TOPIC}]).SerializeToString(),
    "GRAFT of another topic": rpc(graft=[{"topic": "other"}]).SerializeToString(),
    "PRUNE": rpc(prune=[{"topic": TOPIC, "backoff_s": 60}]).SerializeToString(),
    "subscription": subscribed(TOPIC),
    "nothing": b"",
    "a message of another topic": published(b"x", "other"),
    "500 in each": rpc(want=[{"message_ids": IDS[:1]}] * 500).SerializeToString(),
    "messages without a topic": published(b"", "") * 5_000,
    "giant lists of ids": rpc(
        have=[{"topic": TOPIC, "message_ids": IDS * 1_400}]
    ).SerializeToString(),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_is_blamed_within_twenty_seconds(kind: str) -> None:
    """2,000 small RPCs a second, or 20 MiB; it is blamed after so many already at once."""
    router = leaf("mallory", "bob")
    size = len(FLOODS[kind])
    each = 2_000 if size < 1_000 else 20 * 1_024 * 1_024 // size
    for beat in range(20):
        for _ in range(each):
            router.receive("mallory", FLOODS[kind], 1_000 * beat)
            if blamed := [event for event in events(router) if isinstance(event, Blamed)]:
                assert blamed[0].peer == "mallory" and blamed[0].reason
                assert router.peers["bob"].faults == 0
                return
        router.on_heartbeat(1_000 * beat + 1_000)
    raise AssertionError("nobody is blamed")


def test_what_honest_peers_send_at_most_is_no_fault() -> None:
    """Eight shards for half a minute: an IHAVE of 5,000 ids and an IWANT for each in a second, now
    and then two of the peer's heartbeats in one of ours, 500 messages, each of them twice."""
    topics = [f"/waku/2/rs/42/{number}" for number in range(8)]
    router = leaf("bob", options=GossipOptions(ids_per_heartbeat=5_000))
    for topic in topics:
        router.subscribe(topic)
        router.receive("bob", subscribed(topic), 0)
    seen = [bytes([number]) * 32 for number in range(250)] * 20
    for beat in range(30):
        for topic in topics * (2 if beat % 7 == 0 else 1):
            have = rpc(have=[{"topic": topic, "message_ids": seen}])
            for one in seen[:250]:
                router.seen.add(one, 1_000 * beat)
            router.receive("bob", have.SerializeToString(), 1_000 * beat)
            want = rpc(want=[{"message_ids": seen[:500]}])
            router.receive("bob", want.SerializeToString(), 1_000 * beat)
            if beat == 0:
                graft = rpc(graft=[{"topic": topic}], prune=[{"topic": "left"}])
                router.receive("bob", graft.SerializeToString(), 1_000 * beat)
        for number in range(500):
            message = published(b"%d %d" % (beat, number), topics[number % 8])
            for _ in range(2):
                router.receive("bob", message, 1_000 * beat)
        router.on_heartbeat(1_000 * beat + 1_000)
    assert not [event for event in events(router) if isinstance(event, Blamed)]
    assert router.peers["bob"].faults < GossipOptions().faults / 2


def test_one_that_follows_the_same_hundred_topics_is_in_all_meshes_at_once() -> None:
    router = leaf("bob")
    topics = [f"topic {number}" for number in range(100)]
    grafts = rpc(graft=[{"topic": topic} for topic in topics])
    for topic in topics:
        router.subscribe(topic)
    router.receive("bob", grafts.SerializeToString(), 0)
    assert all("bob" in router.mesh(topic) for topic in topics)
    assert not router.peers["bob"].faults


def test_topics_of_strangers_are_neither_joined_nor_kept_without_end() -> None:
    router = leaf("mallory")
    many = GossipRpc()
    for number in range(10_000):
        many.subscriptions.add(subscribe=True, topic=f"topic {number}")
        many.control.graft.add(topic=f"topic {number}")
        many.control.prune.add(topic=f"topic {number}", backoff_s=1 << 60)
    router.receive("mallory", many.SerializeToString(), 0)
    peer = router.peers["mallory"]
    assert len(peer.topics) == 256 and not peer.backoff_until_ms
    assert not sent(router, "mallory").control.prune


def test_a_backoff_without_end_ends() -> None:
    router = leaf("a")
    router.receive("a", rpc(prune=[{"topic": TOPIC, "backoff_s": 1 << 60}]).SerializeToString(), 0)
    router.on_heartbeat(599_000)
    assert router.mesh(TOPIC) == frozenset()
    router.on_heartbeat(600_000)
    assert router.mesh(TOPIC) == {"a"}


def test_a_peer_that_does_not_read_costs_a_bounded_queue_and_says_so() -> None:
    router = leaf("slow", "fast", options=SMALL)
    for number in range(50):
        router.publish(TOPIC, b"%d" % number + bytes(1_000), 0)
        sent(router, "fast")
    assert [e for e in events(router) if isinstance(e, QueueFull)] == [QueueFull("slow")]
    assert router.peers["slow"].outgoing_bytes <= 10_000
    assert not router.is_congested(TOPIC), "the other one reads"
    router.gone("fast")
    assert router.is_congested(TOPIC)
    sent(router, "slow")
    assert not router.is_congested(TOPIC)


def test_messages_and_ids_that_are_kept_are_bounded() -> None:
    options = GossipOptions(cache_bytes=20_000, seen_ids=100, seen_ms=5_000)
    router = leaf("a", options=options)
    for number in range(1_000):
        router.receive("a", published(b"%d" % number + bytes(1_000)), 0)
    assert router.cache.size_bytes <= 20_000
    assert len(router.seen) == 100
    for beat in range(1, 8):
        router.on_heartbeat(1_000 * beat)
    assert router.cache.size_bytes == len(router.seen) == 0


@pytest.mark.parametrize("wrong", [{"mesh_low": 0}, {"queue_bytes": -1}])
def test_options_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        GossipOptions(**wrong)
    with pytest.raises(ValueError, match="between `mesh_low` and `mesh_high`"):
        GossipOptions(mesh_size=9)
