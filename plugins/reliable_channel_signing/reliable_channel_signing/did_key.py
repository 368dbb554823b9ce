"""Public keys as `did:key` of the W3C Credentials Community Group, such as `did:key:z6Mk…`.

The text consists of `did:key:`, the letter `z` for base58btc, and the encoded bytes. The encoded
bytes are the multicodec number of Ed25519 (ed 01) and the key (32 bytes). Each key has only one
such text, so two ids are equal exactly if their keys are equal.
"""

from typing import Final

PUBLIC_KEY_BYTES: Final = 32
"""Length of a public key in bytes (RFC 8032, 5.1.5)."""
_PREFIX: Final = "did:key:z"
_ED25519: Final = b"\xed\x01"
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = {digit: value for value, digit in enumerate(_BASE58)}
_ID_LENGTH: Final = 56
"""Of every such text: 34 bytes that begin with ed 01 take 47 digits of base 58."""

_SIGN_BIT: Final = 1 << 255
_FIELD_PRIME: Final = 2**255 - 19
_SMALL_ORDER: Final = frozenset(
    {
        0,
        1,
        _FIELD_PRIME - 1,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
    }
)
"""The y coordinates of the eight points of small order. Under such a "key" anybody can sign, and
OpenSSL verifies it."""


def did_of(public_key: bytes) -> str:
    """Return the `did:key` of an Ed25519 public key.

    Raises:
        ValueError: the bytes are not a public key.
    """
    _check(public_key)
    number = int.from_bytes(_ED25519 + public_key)
    digits = ""
    while number:
        number, digit = divmod(number, 58)
        digits = _BASE58[digit] + digits
    return _PREFIX + digits


def public_key_of(did: str) -> bytes:
    """Return the Ed25519 public key in a `did:key`.

    Raises:
        ValueError: the text is not a `did:key` of Ed25519.
    """
    if not did.startswith(_PREFIX) or len(did) != _ID_LENGTH:
        raise ValueError(
            f"{did[:100]!r} is not a did:key of Ed25519, which begins with did:key:z6Mk"
        )
    number = 0
    for digit in did[len(_PREFIX) :]:
        if digit not in _DIGITS:
            raise ValueError(f"{did!r} holds {digit!r}, which is not a base58 character")
        number = number * 58 + _DIGITS[digit]
    size_bytes = len(_ED25519) + PUBLIC_KEY_BYTES
    data = number.to_bytes(size_bytes + 1).removeprefix(b"\0")
    if len(data) != size_bytes or not data.startswith(_ED25519):
        raise ValueError(f"{did!r} is not a did:key of Ed25519, which begins with did:key:z6Mk")
    public_key = data[len(_ED25519) :]
    _check(public_key)
    return public_key


def _check(public_key: bytes) -> None:
    if len(public_key) != PUBLIC_KEY_BYTES:
        raise ValueError(
            f"a public key of Ed25519 must have {PUBLIC_KEY_BYTES} bytes (got {len(public_key)})"
        )
    y = int.from_bytes(public_key, "little") & ~_SIGN_BIT
    if y >= _FIELD_PRIME or y in _SMALL_ORDER:
        raise ValueError(
            f"{public_key.hex()} is not a usable public key: the bytes are not a point on the "
            "curve, or a point for which signatures can be forged"
        )
