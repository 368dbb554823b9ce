"""Simulated Store with queries by hash and by time, which may be slow, away or lying."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from random import Random
from typing import Final

from reliable_channel.engine.store_queries import ByHash, Query

from .network import STORE, Packet, draw_ms, packet
from .scenario import StoreConditions
from .timeline import Timeline

MAX_SKEW_MS: Final = 20_000
"""Maximum difference between a message's timestamp and Store's time, as in nwaku's archive."""


class StoreAwayError(Exception):
    """Store does not answer the query."""


class Store:
    """Store that receives all messages of the network, and returns them in answer to queries."""

    number = STORE

    def __init__(self, timeline: Timeline, conditions: StoreConditions, random: Random) -> None:
        self.conditions = conditions
        self.is_away = False
        self._timeline = timeline
        self._random = random
        self._by_hash: dict[bytes, Packet] = {}
        self._by_time: list[tuple[int, bytes]] = []

    def hear(self, arrived: Packet) -> None:
        skew_ms = abs(arrived.timestamp_ms - self._timeline.now_ms)
        if self.is_away or not arrived.is_stored or skew_ms > MAX_SKEW_MS:
            return
        if arrived.message_hash in self._by_hash:
            return
        if self.conditions.loss and self._random.random() < self.conditions.loss:
            return
        self._by_hash[arrived.message_hash] = arrived
        insort(self._by_time, (arrived.timestamp_ms, arrived.message_hash))

    def has(self, message_hash: bytes) -> bool:
        """Return True if Store has the message with a hash."""
        return message_hash in self._by_hash

    def delay_ms(self) -> int:
        """Return the time that Store needs for its next answer (ms)."""
        return draw_ms(self.conditions.answer, self._random)

    def answer(self, query: Query) -> Sequence[Packet]:
        """Return Store's answer to a query.

        Raises:
            StoreAwayError: it is away, or does not answer queries of this kind.
        """
        if self.is_away or (self.conditions.refuses_hashes and isinstance(query, ByHash)):
            raise StoreAwayError
        if self.conditions.lies and self._random.random() < self.conditions.lies:
            return self._lie()
        if isinstance(query, ByHash):
            held = self._by_hash
            return [held[digest] for digest in query.hashes if digest in held]
        first = bisect_left(self._by_time, (query.start_ms, b""))
        end = bisect_left(self._by_time, (query.end_ms + 1, b""))
        return [self._by_hash[digest] for _, digest in self._by_time[first:end]]

    def _lie(self) -> Sequence[Packet]:
        """Nothing, some other messages, or those with a byte changed."""
        choices = [digest for _, digest in self._by_time]
        count = min(len(choices), int(self._random.random() * 4))
        others = [
            self._by_hash[choices[int(self._random.random() * len(choices))]] for _ in range(count)
        ]
        if self._random.random() < 0.5:
            return others
        return [self._garbled(other) for other in others]

    def _garbled(self, true: Packet) -> Packet:
        at = int(self._random.random() * 2)  # what stands there is how to read the rest
        changed = bytes([true.data[at] ^ 0x40])
        return packet(true.data[:at] + changed + true.data[at + 1 :], true.timestamp_ms)
