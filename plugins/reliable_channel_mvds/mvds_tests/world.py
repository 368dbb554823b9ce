"""Nodes in virtual time, and a network between them that loses, repeats and delays."""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from reliable_channel.spi import Recorder, Row, Tables, Value
from reliable_channel_mvds import (
    SEED,
    Event,
    GroupId,
    MessageReceived,
    MvdsNode,
    NodeOptions,
    PeerId,
    WireProfile,
)

GROUP = GroupId(b"g" * 32)
START_MS = 1_700_000_000_000


@dataclass
class Disk:
    """What was written so far, as the channel's stores keep it."""

    tables: dict[str, dict[Value, Row]] = field(default_factory=dict)

    def write(self, node: MvdsNode) -> None:
        for (table, key), row in node.changes().rows.items():
            rows = self.tables.setdefault(table.name, {})
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = row

    def read(self) -> Tables:
        return {name: list(rows.values()) for name, rows in self.tables.items()}


class World:
    """Nodes by name; what happens at each; and all payloads that were sent, with their time."""

    def __init__(
        self,
        *names: str,
        seed: int = 7,
        loss: float = 0.0,
        repeat: float = 0.0,
        delay_ms: tuple[int, int] = (20, 200),
        options: NodeOptions | None = None,
        profile: WireProfile = SEED,
        group: GroupId = GROUP,
    ) -> None:
        self.random, self.loss, self.repeat, self.delay_ms = Random(seed), loss, repeat, delay_ms
        self.options, self.profile, self.now_ms = options or NodeOptions(), profile, START_MS
        self.disks = {name: Disk() for name in names}
        self.events: dict[str, list[Event]] = {name: [] for name in names}
        self.sent: list[tuple[int, str, str, bytes]] = []
        self.nodes = {name: self._new_node(name) for name in names}
        self._flying: list[tuple[int, int, str, str, bytes]] = []
        for name, node in self.nodes.items():
            for other in names:
                if other != name:
                    node.add_peer(group, PeerId(other.encode()))
            self.step(name)

    def append(self, name: str, body: bytes, group: GroupId = GROUP) -> bytes:
        message_id = self.nodes[name].append(group, body, self.now_ms)
        self.step(name)
        return message_id

    def restart(self, name: str) -> None:
        """Kill a node and begin again with what was written."""
        self.nodes[name] = self._new_node(name)
        self.nodes[name].restore(self.disks[name].read(), self.now_ms)
        self.step(name)

    def receive(self, name: str, sender: str, data: bytes) -> None:
        self.nodes[name].receive(PeerId(sender.encode()), data, self.now_ms)
        self.step(name)

    def run(self, limit_ms: int = 600_000) -> None:
        """Until nothing is under way and nobody wants to send, or for so long."""
        end_ms = self.now_ms + limit_ms
        while (next_ms := self._next_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            while self._flying and self._flying[0][0] <= self.now_ms:
                _, _, sender, name, data = heappop(self._flying)
                self.receive(name, sender, data)
            for name, node in self.nodes.items():
                deadline_ms = node.next_deadline_ms()
                if deadline_ms is not None and deadline_ms <= self.now_ms:
                    node.on_deadline(self.now_ms)
                    self.step(name)

    @property
    def is_quiet(self) -> bool:
        return self._next_ms() is None

    def bodies(self, name: str) -> list[bytes]:
        return [e.body for e in self.events[name] if isinstance(e, MessageReceived)]

    def step(self, name: str) -> None:
        node = self.nodes[name]
        self.disks[name].write(node)
        self.events[name] += node.events()
        for outgoing in node.outgoing():
            receiver = outgoing.peer_id.decode()
            self.sent.append((self.now_ms, name, receiver, outgoing.data))
            copies = 2 if self.random.random() < self.repeat else 1
            for _ in range(copies):
                if self.random.random() >= self.loss:
                    at_ms = self.now_ms + self.random.randint(*self.delay_ms)
                    heappush(self._flying, (at_ms, len(self.sent), name, receiver, outgoing.data))

    def _new_node(self, name: str) -> MvdsNode:
        return MvdsNode(
            PeerId(name.encode()),
            now_ms=self.now_ms,
            random=self.random.random,
            options=self.options,
            profile=self.profile,
            recorder=Recorder(),
        )

    def _next_ms(self) -> int | None:
        deadlines = [node.next_deadline_ms() for node in self.nodes.values()]
        if self._flying:
            deadlines.append(self._flying[0][0])
        return min((ms for ms in deadlines if ms is not None), default=None)
