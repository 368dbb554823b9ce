"""String hash of js-waku (Nim's MurmurHash3), and the bloom filter positions that a pair of hashes
determines.

The sources are js-waku's function `nim_hashn` and the golden vectors `hashn`. `h` is MurmurHash3
x86 32 with seed 0, as a signed number. Position `i` of an id in a filter of `m` bits is `(|h(id)| +
i * |h(id + " b")|) % m`.
"""

import mmh3

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
