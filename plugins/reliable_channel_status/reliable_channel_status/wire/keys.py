"""Keys of secp256k1 and of AES for Status messages. `repr` of a private key does not show the key.

Points, Diffie-Hellman and recoverable signatures come from libsecp256k1 (`coincurve`).
"""

import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NoReturn, Self

import coincurve
from Crypto.Hash import keccak

from .diffie_hellman import shared_x

KEY_BYTES: Final = 32
COMPRESSED_BYTES: Final = 33
UNCOMPRESSED_BYTES: Final = 65
SIGNATURE_BYTES: Final = 65
"""Size of a signature, which consists of r, s and v (bytes). The last byte, v, is 0 or 1 in
implementations, and 27 or 28 in the specification."""

_V_OFFSET: Final = 27

_MULTIBASE: Final = "zQ3"
"""What base58btc makes of the multicodec number of secp256k1 (e7 01) and 33 bytes."""
_MULTIBASE_LENGTH: Final = 49
_MULTICODEC: Final = b"\xe7\x01"
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def keccak256(data: bytes) -> bytes:
    """Return the Keccak-256 hash of data, whose padding differs from SHA3-256."""
    return keccak.new(digest_bits=256, data=data).digest()


@dataclass(frozen=True)
class PublicKey:
    """Public key, which is a point of secp256k1. Public keys are equal if their points are equal.

    Raises:
        ValueError: 33 or 65 bytes that are no point, or another number of bytes.
    """

    uncompressed: bytes
    """Byte 04 and both coordinates of the point. The constructor expands a compressed key."""

    def __post_init__(self) -> None:
        data = bytes(memoryview(self.uncompressed))
        if len(data) not in (COMPRESSED_BYTES, UNCOMPRESSED_BYTES):
            raise ValueError(f"a public key must have 33 or 65 bytes (got {len(data)})")
        try:
            point = coincurve.PublicKey(data)
        except ValueError:
            raise ValueError(f"{data.hex()} is not a point on the curve secp256k1") from None
        object.__setattr__(self, "uncompressed", point.format(compressed=False))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the public key in a text, which is hex, with or without `0x`, or `zQ3…`.

        Raises:
            ValueError: it is none.
        """
        if text.startswith(_MULTIBASE):
            return cls(_from_multibase(text))
        try:
            data = bytes.fromhex(text.removeprefix("0x"))
        except ValueError:
            raise ValueError(
                f"{text[:150]!r} is not a public key in hex, nor in the form zQ3…"
            ) from None
        return cls(data)

    @cached_property
    def compressed(self) -> bytes:
        """Byte 02 or 03 and the x coordinate of the point."""
        return bytes([2 + self.uncompressed[-1] % 2]) + self.uncompressed[1:COMPRESSED_BYTES]

    @cached_property
    def hex(self) -> str:
        """Public key as `0x04…`, by which Status names a user, also in mentions."""
        return f"0x{self.uncompressed.hex()}"

    @property
    def multibase(self) -> str:
        """Public key as `zQ3sh…`, which clients show for users and communities, also in links."""
        number, digits = int.from_bytes(_MULTICODEC + self.compressed), ""
        while number:
            number, digit = divmod(number, 58)
            digits = _BASE58[digit] + digits
        return f"z{digits}"

    def __str__(self) -> str:
        return self.hex

    def __repr__(self) -> str:
        return f"PublicKey(0x{self.compressed.hex()})"


def _from_multibase(text: str) -> bytes:
    number = 0
    if len(text) == _MULTIBASE_LENGTH and all(digit in _BASE58 for digit in text):
        for digit in text[1:]:
            number = number * 58 + _BASE58.index(digit)
    data = number.to_bytes(_MULTIBASE_LENGTH)[-len(_MULTICODEC) - COMPRESSED_BYTES :]
    if not data.startswith(_MULTICODEC):
        raise ValueError(
            f"{text[:150]!r} is not a public key: zQ3… must have {_MULTIBASE_LENGTH} letters"
        )
    return data[len(_MULTICODEC) :]


def recover(data: bytes, signature: bytes) -> PublicKey | None:
    """Return the public key that signed `data`. If the signature is invalid, `recover` returns
    None.

    Most signatures match some key for any data, so compare the result with the expected key.
    """
    if len(signature) != SIGNATURE_BYTES:
        return None
    v = signature[-1]
    if v >= _V_OFFSET:
        v -= _V_OFFSET
    if v > 1:  # 2 and 3 need an r that nobody finds
        return None
    try:
        point = coincurve.PublicKey.from_signature_and_message(
            signature[:-1] + bytes([v]), keccak256(data), hasher=None
        )
    except Exception:  # coincurve raises a bare Exception for an r that is no coordinate
        return None
    return PublicKey(point.format(compressed=False))


class PrivateKey:
    """Private key of secp256k1, which `repr` and `str` do not show and which cannot be pickled.

    Raises:
        ValueError: other than 32 bytes, or no number between 1 and the curve's order.
    """

    __slots__ = ("_signing", "public_key")

    public_key: PublicKey
    """Public key that belongs to the private key."""

    def __init__(self, key: bytes) -> None:
        key = bytes(memoryview(key))  # refuses text and numbers
        if len(key) != KEY_BYTES:
            raise ValueError(f"a private key must have {KEY_BYTES} bytes (got {len(key)})")
        try:
            self._signing = coincurve.PrivateKey(key)
        except ValueError:
            raise ValueError(
                "a private key must lie between 1 and the order of secp256k1"
            ) from None
        self.public_key = PublicKey(self._signing.public_key.format(compressed=False))

    @classmethod
    def generate(cls) -> Self:
        """Return a new private key from the operating system's random source."""
        while True:
            try:
                return cls(secrets.token_bytes(KEY_BYTES))
            except ValueError:  # once in 2^128 tries
                continue

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Return the private key from the hex text of `reveal().hex()`. White space in the hex text
        is ignored.

        Raises:
            ValueError: other than 64 hexadecimal digits, or no key.
        """
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise ValueError(
                f"a key in hex must have {2 * KEY_BYTES} digits of 0-9 and a-f: write the key "
                "without spaces and without 0x"
            ) from None
        return cls(key)

    def reveal(self) -> bytes:
        """Return the bytes of the private key, for storing."""
        return self._signing.secret

    def sign(self, data: bytes) -> bytes:
        """Return the 65 bytes r, s and v of a signature over Keccak-256 of `data`. The same data
        always gets the same signature (RFC 6979)."""
        return self._signing.sign_recoverable(keccak256(data), hasher=None)

    def shared_secret(self, public_key: PublicKey) -> bytes:
        """Return the x coordinate of the point that a private and a public key share. The caller
        passes the shared 32 bytes through a KDF."""
        return shared_x(self._signing.secret, public_key.uncompressed)

    def __repr__(self) -> str:
        return f"PrivateKey(of {self.public_key!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a PrivateKey cannot be pickled or copied; reveal() returns the key for storage"
        )


class SymmetricKey:
    """AES-256 key, which `repr` and `str` do not show and which cannot be pickled.

    Raises:
        ValueError: the key does not have 32 bytes, or all are zero, which go-waku refuses.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = bytes(memoryview(key))  # refuses text and numbers
        if len(self._key) != KEY_BYTES:
            raise ValueError(f"a key must have {KEY_BYTES} bytes (got {len(self._key)})")
        if not any(self._key):
            raise ValueError("a key of zero bytes only is not a usable key")

    def reveal(self) -> bytes:
        """Return the bytes of the AES-256 key."""
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymmetricKey):
            return NotImplemented
        return secrets.compare_digest(self._key, other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return "SymmetricKey(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SymmetricKey cannot be pickled or copied; reveal() returns the key for storage"
        )
