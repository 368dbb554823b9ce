"""Routers joined by links with delays, that lose what a test wants, in virtual time."""

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random

from waku.libp2p.gossipsub import Arrived, Blamed, GossipEvent, GossipOptions, Router

TOPIC = "/waku/2/rs/42/0"


class World:
    """Leaves by number; whoever is linked speaks gossipsub."""

    def __init__(self, size: int, seed: int, *, options: GossipOptions | None = None) -> None:
        self.now_ms = 0
        self.random = Random(seed)
        self.loses: Callable[[bytes], bool] = lambda _: False
        """Whether an RPC is lost on its way."""
        self.links: set[frozenset[int]] = set()
        self.arrived: dict[int, list[bytes]] = defaultdict(list)
        self.events: dict[int, list[GossipEvent]] = defaultdict(list)
        self.leaves = [
            Router(random=Random(f"{seed} {number}"), now_ms=0, options=options)
            for number in range(size)
        ]
        for leaf in self.leaves:
            leaf.subscribe(TOPIC)
        self._queue: list[tuple[int, int, int, int, bytes]] = []
        self._order = count()

    def link(self, one: int, other: int) -> None:
        if one != other and frozenset((one, other)) not in self.links:
            self.links.add(frozenset((one, other)))
            self.leaves[one].connected(other)
            self.leaves[other].connected(one)

    def cut(self, one: int, other: int) -> None:
        self.links.discard(frozenset((one, other)))
        self.leaves[one].gone(other)
        self.leaves[other].gone(one)

    def link_at_random(self, degree: int) -> None:
        """A ring, so that nobody is apart, and links across it."""
        size = len(self.leaves)
        for number in range(size):
            self.link(number, (number + 1) % size)
            for other in self.random.sample(range(size), degree // 2):
                self.link(number, other)

    def publish(self, number: int, data: bytes) -> None:
        self.arrived[number].append(data)
        self.leaves[number].publish(TOPIC, data, self.now_ms)

    def run(self, ms: int) -> None:
        """Let time pass, a step of 10 ms at a time."""
        until_ms = self.now_ms + ms
        while self.now_ms < until_ms:
            self._carry()
            self.now_ms += 10
            for leaf in self.leaves:
                if leaf.next_heartbeat_ms <= self.now_ms:
                    leaf.on_heartbeat(self.now_ms)
            while self._queue and self._queue[0][0] <= self.now_ms:
                _, _, sender, receiver, data = heappop(self._queue)
                if frozenset((sender, receiver)) in self.links:
                    self.leaves[receiver].receive(sender, data, self.now_ms)
            for number, leaf in enumerate(self.leaves):
                while (event := leaf.next_event()) is not None:
                    self.events[number].append(event)
                    if isinstance(event, Arrived):
                        self.arrived[number].append(event.data)

    def _carry(self) -> None:
        for sender, leaf in enumerate(self.leaves):
            for receiver in leaf.waiting:
                assert isinstance(receiver, int)
                for data in leaf.take_outgoing(receiver, 1 << 30):
                    if not self.loses(data):
                        at = self.now_ms + self.random.randrange(10, 100)
                        item = (at, next(self._order), sender, receiver, data)
                        heappush(self._queue, item)

    def blamed(self) -> list[Blamed]:
        return [e for events in self.events.values() for e in events if isinstance(e, Blamed)]
