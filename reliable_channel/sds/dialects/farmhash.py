"""FarmHash Fingerprint64, the string hash of Nim 2.2, which nim-sds uses for filters and timers.

The source is `farmhashna::Hash64` of google/farmhash, whose names this module keeps. The hash is in
this package because the only library with it has no wheels for macOS and ARM Linux. An id of 64
characters takes 3 microseconds to hash, a longer id 8.
"""

from struct import unpack_from
from typing import Final

_MASK: Final = (1 << 64) - 1
_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F


def fingerprint64(data: bytes) -> int:
    """Return the unsigned 64-bit fingerprint of `data`."""
    length = len(data)
    if length <= 16:
        return _hash_up_to_16(data, length)
    if length <= 32:
        return _hash_17_to_32(data, length)
    if length <= 64:
        return _hash_33_to_64(data, length)
    return _hash_above_64(data, length)


def _hash_up_to_16(data: bytes, length: int) -> int:
    mul = _K2 + length * 2 & _MASK
    if length >= 8:
        a = _fetch64(data, 0) + _K2 & _MASK
        b = _fetch64(data, length - 8)
        c = _rotate(b, 37) * mul + a & _MASK
        d = (_rotate(a, 25) + b) * mul & _MASK
        return _mix(c, d, mul)
    if length >= 4:
        low, high = unpack_from("<I", data)[0], unpack_from("<I", data, length - 4)[0]
        return _mix(length + (low << 3), high, mul)
    if length:
        y = data[0] + (data[length >> 1] << 8)
        z = length + (data[-1] << 2)
        return _shift_mix(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK
    return _K2


def _hash_17_to_32(data: bytes, length: int) -> int:
    mul = _K2 + length * 2 & _MASK
    a, b = unpack_from("<2Q", data)
    d, c = unpack_from("<2Q", data, length - 16)
    a, c, d = a * _K1 & _MASK, c * mul & _MASK, d * _K2 & _MASK
    return _mix(
        _rotate(a + b & _MASK, 43) + _rotate(c, 30) + d & _MASK,
        a + _rotate(b + _K2 & _MASK, 18) + c & _MASK,
        mul,
    )


def _hash_33_to_64(data: bytes, length: int) -> int:
    mul = _K2 + length * 2 & _MASK
    a, b, e, f = unpack_from("<4Q", data)
    g, h, d, c = unpack_from("<4Q", data, length - 32)
    a, c, d = a * _K2 & _MASK, c * mul & _MASK, d * _K2 & _MASK
    y = _rotate(a + b & _MASK, 43) + _rotate(c, 30) + d & _MASK
    z = _mix(y, a + _rotate(b + _K2 & _MASK, 18) + c & _MASK, mul)
    e, g, h = e * mul & _MASK, (y + g) * mul & _MASK, (z + h) * mul & _MASK
    return _mix(
        _rotate(e + f & _MASK, 43) + _rotate(g, 30) + h & _MASK,
        e + _rotate(f + a & _MASK, 18) + g & _MASK,
        mul,
    )


def _hash_above_64(data: bytes, length: int) -> int:
    # The state is v, w, x, y and z: 56 bytes; each round takes 64 bytes of input.
    x, y = 81, 81 * _K1 + 113 & _MASK
    z = _shift_mix(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v = w = (0, 0)
    x = x * _K2 + _fetch64(data, 0) & _MASK
    for start in range(0, (length - 1) // 64 * 64, 64):
        s = unpack_from("<8Q", data, start)
        x = _rotate(x + y + v[0] + s[1] & _MASK, 37) * _K1 & _MASK ^ w[1]
        y = _rotate(y + v[1] + s[6] & _MASK, 42) * _K1 + v[0] + s[5] & _MASK
        z = _rotate(z + w[0] & _MASK, 33) * _K1 & _MASK
        v = _weak_hash(s[:4], v[1] * _K1, x + w[0])
        w = _weak_hash(s[4:], z + w[1], y + s[2])
        z, x = x, z
    # The last 64 bytes, which overlap the round before unless the length is a multiple of 64.
    mul = _K1 + ((z & 0xFF) << 1)
    s = unpack_from("<8Q", data, length - 64)
    w0 = w[0] + (length - 1 & 63)
    v0 = v[0] + w0
    w = (w0 + v0 & _MASK, w[1])
    x = _rotate(x + y + v0 + s[1] & _MASK, 37) * mul & _MASK ^ w[1] * 9 & _MASK
    y = _rotate(y + v[1] + s[6] & _MASK, 42) * mul + v0 * 9 + s[5] & _MASK
    z = _rotate(z + w[0] & _MASK, 33) * mul & _MASK
    v = _weak_hash(s[:4], v[1] * mul, x + w[0])
    w = _weak_hash(s[4:], z + w[1], y + s[2])
    z, x = x, z
    return _mix(
        _mix(v[0], w[0], mul) + _shift_mix(y) * _K0 + z & _MASK,
        _mix(v[1], w[1], mul) + x & _MASK,
        mul,
    )


def _weak_hash(s: tuple[int, ...], a: int, b: int) -> tuple[int, int]:
    """`WeakHashLen32WithSeeds`, over four words."""
    a = a + s[0] & _MASK
    c = a
    b = _rotate(b + a + s[3] & _MASK, 21)
    a = a + s[1] + s[2] & _MASK
    return a + s[3] & _MASK, b + _rotate(a, 44) + c & _MASK


def _mix(u: int, v: int, mul: int) -> int:
    """`HashLen16`."""
    a = _shift_mix((u ^ v) * mul & _MASK)
    return _shift_mix((v ^ a) * mul & _MASK) * mul & _MASK


def _fetch64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotate(value: int, by: int) -> int:
    return (value >> by | value << 64 - by) & _MASK


def _shift_mix(value: int) -> int:
    return value ^ value >> 47
