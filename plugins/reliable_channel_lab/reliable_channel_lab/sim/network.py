"""Simulated network in which each copy of a message is delayed or lost separately."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Final, Protocol

from reliable_channel.sds.events import OutgoingKind

from .scenario import Conditions, Latency, Partition
from .timeline import Timeline

STORE: Final = -1
"""Number that stands for Store, which receives like a participant outside all islands."""


@dataclass(frozen=True, slots=True, eq=False)
class Packet:
    """Message on the network, with its hash and timestamp. All receivers of a broadcast share one
    `Packet` object."""

    data: bytes
    message_hash: bytes
    timestamp_ms: int
    """Time when the message was sent, by the sender's clock. Store returns messages in order of
    their senders' timestamps."""
    kind: OutgoingKind

    @property
    def is_stored(self) -> bool:
        """True if Store keeps the message, because it is not marked as ephemeral."""
        return not self.kind.is_of_the_moment


def packet(data: bytes, timestamp_ms: int, kind: OutgoingKind = OutgoingKind.CONTENT) -> Packet:
    """Return a packet that contains the given bytes. As in Waku, the hash of a packet depends on
    its timestamp."""
    digest = sha256(timestamp_ms.to_bytes(8, signed=True) + data).digest()
    return Packet(data, digest, timestamp_ms, kind)


class Station(Protocol):
    number: int

    def hear(self, arrived: Packet) -> None: ...


def draw_ms(latency: Latency, random: Random) -> int:
    """Return a random duration from a distribution (ms). `draw_ms` only multiplies floats, because
    powers can differ between machines."""
    share = uniform = random.random()
    for _ in range(latency.skew - 1):
        share *= uniform
    return latency.min_ms + int(share * (latency.max_ms - latency.min_ms + 1))


class Network:
    """Network that passes each broadcast to all participants except the sender."""

    def __init__(self, timeline: Timeline, conditions: Conditions, random: Random) -> None:
        self.conditions = conditions
        self.partitions: list[Partition] = []
        """Those that hold now."""
        self.stations: list[Station] = []
        self._timeline = timeline
        self._random = random

    def broadcast(self, sender: int, sent: Packet) -> None:
        """Pass a message to all participants except its sender, under the present conditions."""
        conditions, random, at = self.conditions, self._random, self._timeline.at
        loss, duplication = conditions.loss, conditions.duplication
        now_ms = self._timeline.now_ms
        for station in self._in_reach(sender):
            copies = 1 + (duplication > 0 and random.random() < duplication)
            for _ in range(copies):
                if not loss or random.random() >= loss:
                    at(now_ms + draw_ms(conditions.latency, random), station.hear, sent)

    def _in_reach(self, sender: int) -> Sequence[Station]:
        others = [station for station in self.stations if station.number != sender]
        for partition in self.partitions:
            others = [station for station in others if not partition.cuts(sender, station.number)]
        return others
