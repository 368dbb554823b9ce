"""Keys of secp256k1 and of AES. `repr` does not show private keys.

Points, Diffie-Hellman and the recoverable signatures by which Status identifies an author come from
libsecp256k1 (`coincurve`).
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
"""Size of a signature: r, s and v. v is 0 or 1, or 27 or 28 in the specification."""

_V_OFFSET: Final = 27

_MULTIBASE: Final = "zQ3"
"""What base58btc makes of the multicodec number of secp256k1 (e7 01) and 33 bytes."""
_MULTIBASE_LENGTH: Final = 49
_MULTICODEC: Final = b"\xe7\x01"
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def keccak256(data: bytes) -> bytes:
    """Return Keccak-256, whose padding differs from SHA3-256."""
    return keccak.new(digest_bits=256, data=data).digest()


@dataclass(frozen=True)
class PublicKey:
    """Point of secp256k1. Equal keys are equal points.

    Raises:
        ValueError: 33 or 65 bytes that are no point, or another number of bytes.
    """

    uncompressed: bytes
    """Bytes 04 and both coordinates. A compressed key is expanded."""

    def __post_init__(self) -> None:
        data = bytes(memoryview(self.uncompressed))
        if len(data) not in (COMPRESSED_BYTES, UNCOMPRESSED_BYTES):
            raise ValueError(f"a public key has 33 or 65 bytes, this one {len(data)}")
        try:
            point = coincurve.PublicKey(data)
        except ValueError:
            raise ValueError(f"{data.hex()} is no point of secp256k1") from None
        object.__setattr__(self, "uncompressed", point.format(compressed=False))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the key of a text: hex, compressed or not, with or without `0x`, or `zQ3…`.

        Raises:
            ValueError: it is none.
        """
        if text.startswith(_MULTIBASE):
            return cls(_from_multibase(text))
        try:
            data = bytes.fromhex(text.removeprefix("0x"))
        except ValueError:
            raise ValueError(f"{text[:150]!r} is no public key in hex, nor zQ3…") from None
        return cls(data)

    @cached_property
    def compressed(self) -> bytes:
        """Bytes 02 or 03 and one coordinate."""
        return bytes([2 + self.uncompressed[-1] % 2]) + self.uncompressed[1:COMPRESSED_BYTES]

    @cached_property
    def hex(self) -> str:
        """Notation `0x04…`, by which Status names a user, also in mentions."""
        return f"0x{self.uncompressed.hex()}"

    @property
    def multibase(self) -> str:
        """Notation `zQ3sh…`, in which clients show keys of users and communities, also in links."""
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
        raise ValueError(f"{text[:150]!r} is no public key: zQ3… has {_MULTIBASE_LENGTH} letters")
    return data[len(_MULTICODEC) :]


def recover(data: bytes, signature: bytes) -> PublicKey | None:
    """Recover the signer of `data`. Return None if the signature is invalid.

    Most signatures match some key, for any data: compare it with the key that you expect.
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
    """Private key of secp256k1 that `repr` and `str` do not show, and that is not pickled.

    Raises:
        ValueError: other than 32 bytes, or no number between 1 and the curve's order.
    """

    __slots__ = ("_signing", "public_key")

    public_key: PublicKey
    """Public key, by which others know this one."""

    def __init__(self, key: bytes) -> None:
        key = bytes(memoryview(key))  # refuses text and numbers
        if len(key) != KEY_BYTES:
            raise ValueError(f"a private key has {KEY_BYTES} bytes, this one has {len(key)}")
        try:
            self._signing = coincurve.PrivateKey(key)
        except ValueError:
            raise ValueError("a private key lies between 1 and the order of secp256k1") from None
        self.public_key = PublicKey(self._signing.public_key.format(compressed=False))

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the operating system's random source."""
        while True:
            try:
                return cls(secrets.token_bytes(KEY_BYTES))
            except ValueError:  # once in 2^128 tries
                continue

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Return the key from the hex text of `reveal().hex()`. White space is ignored.

        Raises:
            ValueError: other than 64 hexadecimal digits, or no key.
        """
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise ValueError(f"a key in hex has {2 * KEY_BYTES} digits of 0-9 and a-f") from None
        return cls(key)

    def reveal(self) -> bytes:
        """Return the bytes of the key, for storing."""
        return self._signing.secret

    def sign(self, data: bytes) -> bytes:
        """Return the 65 bytes r, s and v over Keccak-256 of `data`, with v as implementations write
        it: 0 or 1. The same data gives the same signature (RFC 6979)."""
        return self._signing.sign_recoverable(keccak256(data), hasher=None)

    def shared_secret(self, public_key: PublicKey) -> bytes:
        """Return the x coordinate of the point that both keys share. Pass these 32 bytes through a
        KDF."""
        return shared_x(self._signing.secret, public_key.uncompressed)

    def __repr__(self) -> str:
        return f"PrivateKey(of {self.public_key!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateKey is not pickled or copied; reveal() gives the key to store")


class SymmetricKey:
    """AES-256 key that `repr` and `str` do not show, and that is not pickled.

    Raises:
        ValueError: the key does not have 32 bytes, or all are zero, which go-waku refuses.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = bytes(memoryview(key))  # refuses text and numbers
        if len(self._key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, this one has {len(self._key)}")
        if not any(self._key):
            raise ValueError("a key of zeros is none")

    def reveal(self) -> bytes:
        """Return the bytes of the key."""
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
        raise TypeError("a SymmetricKey is not pickled or copied; reveal() gives the key to store")
