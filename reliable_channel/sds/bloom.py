"""The bloom filter of received message ids (LIP 109, Participant state), in js-waku's layout of
bytes.

Bit `i` lives in 64-bit word `i // 64` at offset `i % 64`; words are serialised big-endian. The
filter is kept in that layout all the time, so that sending it is a copy.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .nim_hash import positions


@dataclass(frozen=True, slots=True)
class BloomParameters:
    """The size of a filter; two participants can read each other's only if theirs are equal.

    Raises:
        ValueError: a capacity below 1, or an error rate outside 0 to 1.
    """

    capacity: int = 10_000
    error_rate: float = 0.001

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ValueError(f"bloom filter capacity is {self.capacity}; it must be at least 1")
        if not 0 < self.error_rate < 1:
            raise ValueError(
                f"bloom filter error rate is {self.error_rate}; it must lie between 0 and 1"
            )

    @property
    def bits_per_element(self) -> int:
        """Bits an id takes: 15 by default."""
        return math.ceil(-math.log(self.error_rate) / math.log(2) ** 2)

    @property
    def hash_count(self) -> int:
        """Bits that an id sets: 10 by default."""
        return max(1, round(math.log(2) * self.bits_per_element))

    @property
    def layout(self) -> "BloomLayout":
        """The layout of a filter of this size."""
        return BloomLayout(self.capacity * self.bits_per_element, self.hash_count)


@dataclass(frozen=True, slots=True)
class BloomLayout:
    """Where ids lie in the bytes of a filter with `bit_count` bits and `hash_count` bits an id."""

    bit_count: int
    hash_count: int

    @property
    def byte_count(self) -> int:
        """The size on the wire: 18,752 by default."""
        return 8 * (1 + self.bit_count // 64)

    def probes(self, message_id: str) -> "Probes":
        """The (byte, mask) pairs of an id: constant for a layout, so that they can be kept."""
        return tuple(
            ((i >> 6 << 3) + 7 - (i >> 3 & 7), 1 << (i & 7))
            for i in positions(message_id, self.hash_count, self.bit_count)
        )


Probes = tuple[tuple[int, int], ...]


def contains(data: bytes | bytearray, probes: Probes) -> bool:
    """Whether each bit of `probes` is set in the filter `data`."""
    for byte, mask in probes:
        if not data[byte] & mask:
            return False
    return True


def fill(data: bytes) -> float:
    """The share of bits that are set, 0 to 1."""
    return int.from_bytes(data).bit_count() / (8 * len(data)) if data else 0.0


class BloomFilter:
    """One filter of one size."""

    __slots__ = ("data", "layout")

    def __init__(self, layout: BloomLayout) -> None:
        self.layout = layout
        self.data = bytearray(layout.byte_count)

    def insert(self, message_id: str) -> None:
        """Set the bits of an id."""
        self.insert_probes(self.layout.probes(message_id))

    def insert_probes(self, probes: Probes) -> None:
        """Set the bits of an id whose probes are known."""
        data = self.data
        for byte, mask in probes:
            data[byte] |= mask

    def __contains__(self, message_id: str) -> bool:
        return contains(self.data, self.layout.probes(message_id))

    def __bytes__(self) -> bytes:
        return bytes(self.data)


class RollingBloomFilter:
    """A filter that always holds the newest ids, at least half its capacity and at most all of it.

    DIVERGES: js-waku never rolls its filter, so that after some 30,000 messages it acknowledges
    whatever it is asked for (the specification: "SHOULD be rolled over and recomputed once it
    reaches a predefined capacity"). Two generations: each id goes into the current filter and, once
    that is half full, into the next one too, which takes over when the current one is full.
    Constant cost a message and nothing to recompute; up to the capacity the bytes are those of a
    plain filter.
    """

    def __init__(self, parameters: BloomParameters, message_ids: Iterable[str] = ()) -> None:
        self.parameters = parameters
        self.layout = parameters.layout
        self.rollovers = 0
        self._current, self._next = BloomFilter(self.layout), BloomFilter(self.layout)
        self._count = 0
        for message_id in message_ids:
            self.insert(message_id)

    def __len__(self) -> int:
        """How many ids the filter that is sent holds."""
        return self._count

    def insert(self, message_id: str) -> None:
        """Add an id, and roll over when the capacity is reached."""
        capacity = self.parameters.capacity
        if self._count >= capacity:
            self._current, self._next = self._next, BloomFilter(self.layout)
            self._count -= (capacity + 1) // 2
            self.rollovers += 1
        probes = self.layout.probes(message_id)
        self._current.insert_probes(probes)
        if self._count >= (capacity + 1) // 2:
            self._next.insert_probes(probes)
        self._count += 1

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._current

    def __bytes__(self) -> bytes:
        return bytes(self._current)
