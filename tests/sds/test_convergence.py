"""All participants end with the same log, whatever the network does.

Nobody has a Store here: what is lost comes back by retries, sync messages and SDS-R alone.
"""

from dataclasses import dataclass

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from reliable_channel.sds import RepairOptions
from reliable_channel.sds.events import (
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    OutgoingKind,
)

from .world import MINUTE, SECOND, Weather, World, beyond_limits, promises_broken

NAMES = ("alice", "bob", "carol", "dave", "erin", "frank")
HOURS_UNTIL_QUIET = 3


@dataclass(frozen=True)
class Turn:
    """Somebody writes, after a pause; `away` participants are cut off from then on."""

    who: int
    pause_ms: int
    away: frozenset[int] | None


@dataclass(frozen=True)
class Story:
    seed: int
    size: int
    weather: Weather
    turns: tuple[Turn, ...]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    size = draw(st.integers(2, 6))
    who = st.integers(0, size - 1)
    pauses = st.sampled_from([0, 5, 150, 2 * SECOND, 40 * SECOND, 7 * MINUTE])
    away = st.none() | st.none() | st.frozensets(who, max_size=size - 1)
    turns = draw(st.lists(st.builds(Turn, who, pauses, away), min_size=1, max_size=40))
    weather = Weather(
        loss=draw(st.sampled_from([0.0, 0.1, 0.3, 0.6, 0.9])),
        duplication=draw(st.sampled_from([0.0, 0.3])),
        latency_ms=draw(st.sampled_from([(200, 200), (1, 1_000), (1, 40_000)])),
    )
    return Story(draw(st.integers(0, 2**32)), size, weather, tuple(turns))


def tell(story: Story) -> World:
    """Play a story, let the network recover, and wait until all is quiet."""
    world = World(NAMES[: story.size], seed=story.seed, weather=story.weather)
    for number, turn in enumerate(story.turns):
        world.run(turn.pause_ms)
        world[NAMES[turn.who]].send(b"message %d" % number)
        if turn.away is not None:
            world.islands = [{NAMES[who] for who in turn.away}]
    world.calm()
    assert world.run(HOURS_UNTIL_QUIET * 60 * MINUTE, until=world.is_quiet), promises_broken(world)
    world.run(5 * MINUTE)
    return world


@settings(max_examples=20, deadline=None, derandomize=True)
@given(stories())
def test_all_end_with_the_same_log(story: Story) -> None:
    note(f"seed {story.seed}")
    assert promises_broken(tell(story)) == []


@pytest.mark.parametrize("size", [2, 6])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_forty_percent_loss(size: int, seed: int) -> None:
    turns = tuple(Turn(i % size, 700, None) for i in range(60))
    story = Story(seed, size, Weather(0.4, 0.2, (20, 2_000)), turns)
    world = tell(story)
    assert promises_broken(world) == []
    assert len(world["alice"].core.log) == 60


def test_a_partition_longer_than_the_loss_timeout_heals() -> None:
    # SDS-R guide, testing scenario 6: the window of all requests expires while nobody can answer.
    # js-waku asks once (D18) and then never again.
    world = World(["alice", "bob", "carol"], seed=4)
    world["alice"].send(b"one")
    world.run(SECOND)
    world.weather = Weather(loss=1.0)
    world["alice"].send(b"lost on the way to carol")
    world.weather = Weather()
    world["bob"].core.receive(
        world["alice"].broadcasts(OutgoingKind.CONTENT)[-1].data, world.now_ms
    )
    world["bob"].settle()
    world["bob"].send(b"refers to it")
    world.run(SECOND)
    assert len(world["carol"].core.incoming_buffer.parked) == 1
    world.islands = [{"carol"}]
    world.run(60 * MINUTE)
    assert [event.message_id for event in world["carol"].seen(MessageLost)]
    assert len(world["carol"].core.log) == 2
    world.calm()
    assert world.run(25 * MINUTE, until=world.is_quiet)
    assert promises_broken(world) == []
    late = world["carol"].seen(MessageReceived)[-1]
    assert late.content == b"lost on the way to carol"
    assert late.position == 1


def test_a_newcomer_learns_the_whole_log_from_the_others() -> None:
    world = World(["alice", "bob", "carol"])
    world.islands = [{"carol"}]
    for number in range(30):
        world.run(SECOND)
        world["alice"].send(b"%d" % number)
    world.run(MINUTE)
    assert len(world["carol"].core.log) == 0
    world.calm()
    assert world.run(10 * MINUTE, until=world.is_quiet)
    assert promises_broken(world) == []
    assert [e.content for e in world["carol"].core.log] == [b"%d" % n for n in range(30)]


def test_a_chain_of_references_is_repaired_link_by_link() -> None:
    # With two entries a message (LIP 109 recommends that), a gap shows only its newest end.
    world = World(["alice", "bob"], causal_history_size=2, repair=RepairOptions(t_min_ms=5_000))
    world.islands = [{"bob"}]
    for number in range(12):
        world.run(10)
        world["alice"].send(b"%d" % number)
    for message_id in list(world["alice"].core.outgoing_buffer.entries):
        world["alice"].core.outgoing_buffer.remove([message_id])  # nobody retries them
    world.calm()
    assert world.run(60 * MINUTE, until=lambda: len(world["bob"].core.log) == 12)
    assert world["alice"].core.log.digest() == world["bob"].core.log.digest()


def test_two_partitions_that_both_wrote_agree_on_one_order() -> None:
    world = World(["alice", "bob", "carol", "dave"], seed=9)
    world.islands = [{"alice", "bob"}, {"carol", "dave"}]
    for number in range(10):
        world["alice" if number % 2 else "carol"].send(b"%d" % number)
        world.run(20 * SECOND)
    assert world["alice"].core.log.digest() != world["carol"].core.log.digest()
    world.calm()
    assert world.run(30 * MINUTE, until=world.is_quiet)
    assert promises_broken(world) == []
    assert [int(entry.content) for entry in world["dave"].core.log] == list(range(10))


def test_equal_seeds_make_equal_worlds() -> None:
    story = Story(
        7, 4, Weather(0.3, 0.2, (1, 5_000)), tuple(Turn(i % 4, 500, None) for i in range(20))
    )
    first, second = tell(story), tell(story)
    assert first.now_ms == second.now_ms
    assert [d.history for d in first.drivers.values()] == [
        d.history for d in second.drivers.values()
    ]


def test_a_quiet_channel_acknowledges_everything_and_stays_within_limits() -> None:
    world = World(["alice", "bob", "carol"], seed=2)
    for number in range(20):
        world["alice"].send(b"%d" % number)
        world.run(100)
    world.run(2 * MINUTE)
    assert {e.message_id for e in world["alice"].seen(MessageAcknowledged)} == set(
        world["alice"].sent
    )
    for driver in world.drivers.values():
        assert beyond_limits(driver.core) == []
