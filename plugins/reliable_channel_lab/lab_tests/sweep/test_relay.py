"""The relay network: connected, passes on, loses less than its hops, cut by partitions."""

from dataclasses import dataclass, field
from random import Random

import pytest

from reliable_channel_lab.sim.network import Packet, packet
from reliable_channel_lab.sim.relay import RelayNetwork, mesh
from reliable_channel_lab.sim.scenario import Conditions, Latency, Partition
from reliable_channel_lab.sim.timeline import Timeline


@dataclass
class Listener:
    number: int
    timeline: Timeline
    heard_at_ms: list[int] = field(default_factory=list)

    def hear(self, arrived: Packet) -> None:
        self.heard_at_ms.append(self.timeline.now_ms)


def network(count: int, conditions: Conditions) -> tuple[RelayNetwork, list[Listener], Timeline]:
    timeline = Timeline(0)
    relay = RelayNetwork(timeline, conditions, 1)
    listeners = [Listener(number, timeline) for number in range(count)]
    relay.stations += listeners
    return relay, listeners, timeline


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_a_mesh_is_connected_and_has_its_degree(count: int) -> None:
    neighbours = mesh(list(range(count)), 6, Random(1))
    reached, todo = {0}, [0]
    while todo:
        new = set(neighbours[todo.pop()]) - reached
        reached |= new
        todo += new
    assert len(reached) == count
    ends = sum(map(len, neighbours.values()))
    assert ends == min(6 * count, count * (count - 1)) // 2 * 2
    assert all(number not in others for number, others in neighbours.items())


def test_everybody_but_the_sender_hears_once_and_later_over_more_hops() -> None:
    relay, listeners, timeline = network(200, Conditions(Latency(10, 10)))
    relay.broadcast(5, packet(b"x", 0))
    timeline.run_until(10_000)
    heard = [listener.heard_at_ms for listener in listeners]
    assert heard[5] == []
    assert all(len(times) == 1 for number, times in enumerate(heard) if number != 5)
    hops = {times[0] // 10 for times in heard if times}
    assert hops == set(range(1, max(hops) + 1))
    assert max(hops) >= 3


def test_other_ways_make_good_what_a_hop_lost() -> None:
    relay, listeners, timeline = network(100, Conditions(Latency(10, 30), loss=0.3))
    for _ in range(20):
        relay.broadcast(0, packet(b"x", 0))
    timeline.run_until(10_000)
    missed = 20 * 99 - sum(len(listener.heard_at_ms) for listener in listeners)
    assert 0 < missed / (20 * 99) < 0.1


def test_a_partition_cuts_all_ways_into_the_island_or_out() -> None:
    relay, listeners, timeline = network(20, Conditions(Latency(1, 5)))
    island = tuple(range(10))
    relay.partitions.append(Partition(0, 1, island, "in"))
    relay.broadcast(15, packet(b"x", 0))
    timeline.run_until(1_000)
    assert not any(listeners[number].heard_at_ms for number in island)
    relay.broadcast(0, packet(b"y", 0))
    timeline.run_until(2_000)
    assert all(listeners[number].heard_at_ms for number in range(10, 20) if number != 15)
