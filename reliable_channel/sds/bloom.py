"""Bloom filter of received message ids (LIP 109, Participant state).

Bit `i` of a filter is in the 64-bit word `i // 64` at offset `i % 64`. Each peer family has its own
byte order, header and hash. This module has the form of js-waku, and `dialects/nim.py` the form of
nim-sds. A filter stays in its wire form, so sending the filter is a copy.

The hash is that of js-waku, Nim's MurmurHash3 (`nim_hashn`, golden vectors `hashn`). `h` is
MurmurHash3 x86 32 with seed 0, as a signed number. Position `i` of an id in a filter of `m` bits is
`(|h(id)| + i * |h(id + " b")|) % m`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Protocol

import mmh3

from .declared import Bound, Doc, Fits, Unit, check

HashPair = tuple[int, int]
"""Pair `|h(id)|` and `|h(id + " b")|`, which determines the bits of an id in a filter of any
size."""

_C1, _C2, _MASK = 0xCC9E2D51, 0x1B873593, 0xFFFFFFFF


def positions(item: str, hash_count: int, bit_count: int) -> list[int]:
    """Return the `hash_count` bit positions of `item` in a filter of `bit_count` bits."""
    return spread(hash_pair(item), hash_count, bit_count)


def hash_pair(item: str) -> HashPair:
    """Return the hashes that determine the positions of `item`."""
    if item.isascii():
        return abs(mmh3.hash(item, 0, True)), abs(mmh3.hash(item + " b", 0, True))
    return abs(bloom_hash(item)), abs(bloom_hash(item + " b"))


def spread(pair: HashPair, hash_count: int, bit_count: int) -> list[int]:
    """Return the bit positions that a pair of hashes determines."""
    first, step = pair
    if first < 0 or step < 0:
        first, step = remainder(first, bit_count), remainder(step, bit_count)
        return [abs(first + n * step) % bit_count for n in range(hash_count)]
    step %= bit_count
    return [(first + n * step) % bit_count for n in range(hash_count)]


def remainder(dividend: int, divisor: int) -> int:
    """Return the remainder as Nim's `mod` computes it, with the sign of the dividend. Nim's `abs`
    of the lowest 64-bit number stays negative."""
    return dividend % divisor if dividend >= 0 else -(-dividend % divisor)


def bloom_hash(item: str) -> int:
    """Return the signed 32-bit hash of `item`. Non-ASCII text is hashed as in js-waku."""
    if item.isascii():
        return mmh3.hash(item, 0, True)
    return _hash_utf16_units(item)


def _hash_utf16_units(item: str) -> int:
    """Hash the first UTF-16 unit of each code point where Nim would take UTF-8 bytes.

    A defect of js-waku that its filters carry on the wire: units of up to 16 bits are OR-ed into
    the word after shifts of 8, and the number of units is mixed in as the length.
    """
    units = [
        ord(char) if ord(char) < 0x10000 else 0xD800 + ((ord(char) - 0x10000) >> 10)
        for char in item
    ]
    h = 0
    whole = len(units) - len(units) % 4
    for start in range(0, whole, 4):
        word = 0
        for unit in reversed(units[start : start + 4]):
            word = (word << 8 | unit) & _MASK
        h ^= _scramble(word)
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & _MASK
    word = 0
    for unit in reversed(units[whole:]):
        word = (word << 8 | unit) & _MASK
    h ^= _scramble(word)
    h ^= len(units)
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - 0x100000000 if h & 0x80000000 else h


def _scramble(word: int) -> int:
    word = word * _C1 & _MASK
    return ((word << 15 | word >> 17) & _MASK) * _C2 & _MASK


MIN_ERROR_RATE: Final = 1e-9


def _is_error_rate(value: object) -> bool:
    return isinstance(value, float) and MIN_ERROR_RATE <= value < 1


@dataclass(frozen=True, slots=True)
class BloomParameters:
    """Size of a bloom filter, as the number of ids and the share of false positives. Two
    participants can read each other's filters only if the sizes are equal.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    capacity: Annotated[
        int,
        Bound(1, 50_000),
        Unit("messages"),
        Doc("Messages that a bloom filter holds. Must be equal for all participants."),
    ] = 10_000
    error_rate: Annotated[
        float,
        Fits(f"a number from {MIN_ERROR_RATE} to below 1", _is_error_rate),
        Doc("Share of false positives of a full bloom filter. Must be equal for all participants."),
    ] = 0.001

    def __post_init__(self) -> None:
        check(self)

    @property
    def bits_per_element(self) -> int:
        """Bits of the filter for each message id (15 by default)."""
        return math.ceil(-math.log(self.error_rate) / math.log(2) ** 2)

    @property
    def hash_count(self) -> int:
        """Number of bits that a message id sets (10 by default)."""
        return max(1, round(math.log(2) * self.bits_per_element))

    @property
    def bit_count(self) -> int:
        """Size of a filter (bits), which is 150,000 by default."""
        return self.capacity * self.bits_per_element

    @property
    def layout(self) -> "BloomLayout":
        """Layout of a bloom filter of this size in the form of js-waku."""
        return self.layout_in(SPEC_BLOOM)

    def layout_in(self, form: "BloomForm") -> "BloomLayout":
        """Return the layout of a bloom filter of this size."""
        return BloomLayout(self.bit_count, self.hash_count, form)


class BloomFilterError(ValueError):
    """A received bloom filter cannot be read. The text of the error gives the reason."""


class BloomForm(Protocol):
    """Form of the bloom filters of a peer family."""

    byte_flip: int
    """Number that is XORed with a byte's index, 7 for big-endian and 0 for little-endian words."""

    def hash_pair(self, message_id: str, /) -> HashPair:
        """Return the hashes that determine the bits of a message id."""
        ...

    def write(self, parameters: BloomParameters, words: bytes) -> bytes:
        """Return the message field that holds the words of a filter."""
        ...

    def read(self, field: bytes, parameters: BloomParameters) -> tuple["BloomLayout", bytes]:
        """Return the layout and the words of a received filter, if own filters have `parameters`.

        Raises:
            BloomFilterError: it cannot be read.
        """
        ...


class SpecBloomForm:
    """Bloom filters of js-waku, with big-endian words and no header, so all filters need one
    size."""

    byte_flip = 7
    hash_pair = staticmethod(hash_pair)
    """Return the MurmurHash3 values (32 bits) of a message id."""

    def write(self, parameters: BloomParameters, words: bytes) -> bytes:
        """Return the words of a filter unchanged."""
        return words

    def read(self, field: bytes, parameters: BloomParameters) -> tuple["BloomLayout", bytes]:
        """Return the words of a received filter. The words do not contain their layout, so the
        layout of own filters is assumed.

        Raises:
            BloomFilterError: the length shows that it is not.
        """
        layout = parameters.layout_in(self)
        if len(field) != layout.byte_count:
            raise BloomFilterError(
                f"the bloom filter has {len(field)} bytes, but filters of this channel have "
                f"{layout.byte_count}"
            )
        return layout, field


SPEC_BLOOM: Final[BloomForm] = SpecBloomForm()


@dataclass(frozen=True, slots=True)
class BloomLayout:
    """Positions of ids in a bloom filter with `bit_count` bits and `hash_count` bits for each
    id."""

    bit_count: int
    hash_count: int
    form: BloomForm = SPEC_BLOOM

    @property
    def byte_count(self) -> int:
        """Size of the words of a filter (bytes), which is 18,752 by default."""
        return 8 * (1 + self.bit_count // 64)

    def probes(self, message_id: str) -> "Probes":
        """Return the byte index and bit mask of each bit of a message id."""
        return self.probes_of(self.form.hash_pair(message_id))

    def probes_of(self, pair: HashPair) -> "Probes":
        """Return the byte index and bit mask of each bit of an id with known hashes."""
        flip = self.form.byte_flip
        positions = spread(pair, self.hash_count, self.bit_count)
        return [(i >> 3 ^ flip, 1 << (i & 7)) for i in positions]

    def holds(self, words: bytes, pair: HashPair) -> bool:
        """Return True if each bit of a message id is set. The first bit excludes most absent ids,
        so the other bits are computed only if needed."""
        bit_count, flip = self.bit_count, self.form.byte_flip
        first, step = remainder(pair[0], bit_count), remainder(pair[1], bit_count)
        for n in range(self.hash_count):
            i = abs(first + n * step) % bit_count
            if not words[i >> 3 ^ flip] >> (i & 7) & 1:
                return False
        return True

    def fill(self, words: bytes) -> float:
        """Return the share of bits of a filter that are set, from 0 to 1."""
        return min(1.0, set_bits(words) / self.bit_count)


def set_bits(words: bytes) -> int:
    """Return the number of bits of a filter that are set."""
    return int.from_bytes(words).bit_count()


Probes = Sequence[tuple[int, int]]


def contains(data: bytes | bytearray, probes: Probes) -> bool:
    """Return True if each bit of `probes` is set in the filter `data`."""
    for byte, mask in probes:
        if not data[byte] & mask:
            return False
    return True


class BloomFilter:
    """Bloom filter of message ids, of one size."""

    __slots__ = ("data", "layout")

    def __init__(self, layout: BloomLayout) -> None:
        self.layout = layout
        self.data = bytearray(layout.byte_count)

    def insert(self, message_id: str) -> None:
        """Set the bits of a message id."""
        self.add(self.layout.form.hash_pair(message_id))

    def add(self, pair: HashPair) -> None:
        """Set the bits of an id with known hashes."""
        data, layout, (first, step) = self.data, self.layout, pair
        flip, count, size = layout.form.byte_flip, layout.hash_count, layout.bit_count
        if first < 0 or step <= 0:
            places: Iterable[int] = spread(pair, count, size)
        else:
            places = range(first, first + count * step, step)
        for place in places:
            i = place % size
            data[i >> 3 ^ flip] |= 1 << (i & 7)

    def __contains__(self, message_id: str) -> bool:
        return contains(self.data, self.layout.probes(message_id))

    def __bytes__(self) -> bytes:
        return bytes(self.data)


class RollingBloomFilter:
    """Bloom filter of the newest ids, at least half its capacity and at most its whole capacity.

    DIVERGES: js-waku never rolls its filter, so after about 30,000 messages it acknowledges every
    id. The specification says "SHOULD be rolled over and recomputed once it reaches a predefined
    capacity". This class keeps two generations of filters. Each id goes into the current filter
    and, after that is half full, also into the next filter. The next filter replaces the current
    filter when that is full. The cost of a message is constant, and no filter is recomputed. Up to
    the capacity, the bytes equal the bytes of a plain filter.
    """

    def __init__(
        self,
        parameters: BloomParameters,
        message_ids: Iterable[str] = (),
        *,
        form: BloomForm = SPEC_BLOOM,
    ) -> None:
        self.parameters = parameters
        self.layout = parameters.layout_in(form)
        self.rollovers = 0
        self.sent, self._next = BloomFilter(self.layout), BloomFilter(self.layout)
        """Filter that messages carry, which the next `insert` changes, and the filter after it."""
        self._count = 0
        for message_id in message_ids:
            self.insert(message_id)

    def __len__(self) -> int:
        """How many ids the filter that is sent holds."""
        return self._count

    def insert(self, message_id: str) -> None:
        """Add a message id, and use the next filter when the capacity is reached."""
        capacity = self.parameters.capacity
        if self._count >= capacity:
            self.sent, self._next = self._next, BloomFilter(self.layout)
            self._count -= (capacity + 1) // 2
            self.rollovers += 1
        pair = self.layout.form.hash_pair(message_id)
        self.sent.add(pair)
        if self._count >= (capacity + 1) // 2:
            self._next.add(pair)
        self._count += 1

    def __contains__(self, message_id: str) -> bool:
        return message_id in self.sent

    def __bytes__(self) -> bytes:
        return self.layout.form.write(self.parameters, bytes(self.sent.data))
