"""Nodes in a lossy network: everybody gets everything once, and then it is quiet."""

from collections import Counter
from dataclasses import replace

import pytest

from mvds_tests.world import World
from reliable_channel_mvds import (
    GROUP_OFFERS,
    LATER,
    SEED,
    MessageAcknowledged,
    Mode,
    NodeOptions,
    PeerId,
    WireProfile,
)

FAST = NodeOptions(epoch_ms=50, first_interval=10, longest_interval=80)
each_mode = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.value)


@each_mode
@pytest.mark.parametrize("profile", [SEED, GROUP_OFFERS, LATER], ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(3))
def test_two_nodes_with_loss_and_repetition(mode: Mode, profile: WireProfile, seed: int) -> None:
    options = replace(FAST, mode=mode)
    world = World("a", "b", seed=seed, loss=0.4, repeat=0.2, options=options, profile=profile)
    for number in range(100):
        world.append("a", b"from a %d" % number)
        world.append("b", b"from b %d" % number)
        world.run(limit_ms=20)
    world.run()
    assert world.is_quiet
    assert Counter(world.bodies("a")) == Counter(b"from b %d" % n for n in range(100))
    assert Counter(world.bodies("b")) == Counter(b"from a %d" % n for n in range(100))
    for name in "ab":
        acknowledged = [e for e in world.events[name] if isinstance(e, MessageAcknowledged)]
        assert len({e.message_id for e in acknowledged}) == len(acknowledged) == 100
        assert world.nodes[name].statistics().records == 0


@each_mode
@pytest.mark.parametrize("seed", range(3))
def test_a_group_with_loss_and_restarts(mode: Mode, seed: int) -> None:
    """What is killed and begins again from what was written has lost and repeated nothing."""
    names = "abcd"
    world = World(*names, seed=seed, loss=0.3, options=replace(FAST, mode=mode))
    for number in range(40):
        for name in names:
            world.append(name, f"{name}{number}".encode())
        world.run(limit_ms=100)
        world.restart(world.random.choice(names))
    world.run()
    assert world.is_quiet
    for name in names:
        others = [f"{n}{i}".encode() for n in names if n != name for i in range(40)]
        assert Counter(world.bodies(name)) == Counter(others)


@each_mode
def test_modes_may_be_mixed(mode: Mode) -> None:
    world = World("a", "b", loss=0.3, options=FAST)
    for number in range(20):
        body = b"%d" % number
        from_a = Mode.BATCH if number % 2 else Mode.INTERACTIVE
        world.nodes["a"].append(b"g" * 32, body, world.now_ms, mode=from_a)  # type: ignore[arg-type]
        world.nodes["b"].append(b"g" * 32, body + b"b", world.now_ms, mode=mode)  # type: ignore[arg-type]
    world.run()
    assert len(world.bodies("a")) == len(world.bodies("b")) == 20


def test_messages_are_relayed_along_a_chain() -> None:
    """a knows b, b knows c and c knows d: all have it in the end."""
    world = World("a", "b", "c", "d", loss=0.2, options=FAST)
    for apart in ("ac", "ad", "bd"):
        first, second = apart
        world.nodes[first].remove_peer(b"g" * 32, PeerId(second.encode()))  # type: ignore[arg-type]
        world.nodes[second].remove_peer(b"g" * 32, PeerId(first.encode()))  # type: ignore[arg-type]
    world.append("a", b"pass it on")
    world.append("d", b"and back")
    world.run()
    assert world.is_quiet
    assert [sorted(world.bodies(name)) for name in "abcd"] == [
        [b"and back"],
        [b"and back", b"pass it on"],
        [b"and back", b"pass it on"],
        [b"pass it on"],
    ]


def test_one_payload_to_a_peer_in_an_epoch() -> None:
    world = World("a", "b", "c", loss=0.3, options=FAST)
    for number in range(200):
        world.append("abc"[number % 3], b"%d" % number)
        world.run(limit_ms=7)
    world.run()
    epochs = Counter((ms // FAST.epoch_ms, *between) for ms, *between, _ in world.sent)
    assert set(epochs.values()) == {1}
    assert all(data for *_, data in world.sent)  # and never an empty one


def test_the_same_run_again_is_the_same() -> None:
    def run() -> list[tuple[int, str, str, bytes]]:
        world = World("a", "b", seed=5, loss=0.3, options=FAST)
        for number in range(50):
            world.append("a", b"%d" % number)
            world.run(limit_ms=30)
        world.run()
        return world.sent

    assert run() == run()
