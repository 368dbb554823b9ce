"""Relay network, in which nodes forward each message once, over separate hops.

The mesh of nodes is a ring with random chords, so all nodes are connected. A node has on average
`degree` neighbours (GossipSub's D is 6). A message reaches a node over the fastest path on which no
copy is lost. If a hop loses a copy, another path mostly delivers the message.
"""

from heapq import heappop, heappush
from random import Random
from typing import Final

from .network import Network, Packet, draw_ms
from .scenario import Conditions
from .timeline import Timeline

DEGREE: Final = 6


class RelayNetwork(Network):
    """Relay network in which messages pass several hops. The conditions of the scenario apply to
    each hop of the relay network. A partition cuts the hops between its two sides."""

    def __init__(self, timeline: Timeline, conditions: Conditions, seed: int) -> None:
        super().__init__(timeline, conditions, Random(f"{seed} relay"))
        self._neighbours: dict[int, list[int]] = {}

    def broadcast(self, sender: int, sent: Packet) -> None:
        """Flood the mesh with a message from the sender's node."""
        by_number = {station.number: station for station in self.stations}
        if len(self._neighbours) != len(by_number):
            self._neighbours = mesh(list(by_number), DEGREE, self._random)
        for number, at_ms in self._arrivals(sender).items():
            if number != sender:
                self._timeline.at(at_ms, by_number[number].hear, sent)

    def _arrivals(self, sender: int) -> dict[int, int]:
        """When the message first comes to each node that it reaches."""
        conditions, random = self.conditions, self._random
        arrived: dict[int, int] = {}
        on_the_way = [(self._timeline.now_ms, sender)]
        while on_the_way:
            at_ms, number = heappop(on_the_way)
            if number in arrived:
                continue
            arrived[number] = at_ms
            for other in self._neighbours[number]:
                if other in arrived or any(each.cuts(number, other) for each in self.partitions):
                    continue
                if not conditions.loss or random.random() >= conditions.loss:
                    heappush(on_the_way, (at_ms + draw_ms(conditions.latency, random), other))
        return arrived


def mesh(numbers: list[int], degree: int, random: Random) -> dict[int, list[int]]:
    """Return the neighbours of each node in a ring with chords up to the mean degree."""
    count = len(numbers)
    edges = {frozenset((numbers[i - 1], numbers[i])) for i in range(count)} if count > 1 else set()
    edges = {edge for edge in edges if len(edge) == 2}
    wanted = min(count * degree // 2, count * (count - 1) // 2)
    while len(edges) < wanted:
        one, other = (numbers[int(random.random() * count)] for _ in range(2))
        if one != other:
            edges.add(frozenset((one, other)))
    neighbours: dict[int, set[int]] = {number: set() for number in numbers}
    for one, other in edges:
        neighbours[one].add(other)
        neighbours[other].add(one)
    return {number: sorted(others) for number, others in neighbours.items()}
