"""Identity scheme `v4`, with signatures over Keccak-256 by secp256k1 keys.

The scheme signs node records (EIP-778) and trees in the DNS (EIP-1459).
"""

from __future__ import annotations

from typing import Final

from Crypto.Hash import keccak
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from waku.libp2p import InvalidInput, KeyType, PrivateKey, PublicKey

__all__ = ["SIGNATURE_BYTES", "is_signed", "keccak_256", "public_key", "sign"]

SIGNATURE_BYTES: Final = 64
"""Size of a signature (bytes), which consists of `r` and `s` of 32 bytes each."""
KEY_BYTES: Final = 33
"""Size of a compressed public key (bytes)."""

# The digest has 32 bytes, as one of SHA-256; OpenSSL asks for no more.
_DIGEST: Final = utils.Prehashed(hashes.SHA256())


def keccak_256(data: bytes) -> bytes:
    """Return the hash of Ethereum, the form of Keccak before SHA-3."""
    return keccak.new(digest_bits=256, data=data).digest()


def public_key(data: bytes) -> PublicKey:
    """Decode a compressed secp256k1 public key.

    Raises:
        InvalidInput: not a point of the curve.
    """
    _point(data)
    return PublicKey.of(KeyType.SECP256K1, data)


def is_signed(key: bytes, content: bytes, signature: bytes) -> bool:
    """Return True if the owner of the compressed key signed the content.

    Raises:
        InvalidInput: the key is not a point of the curve, or the signature has another length.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise InvalidInput(f"a signature must have {SIGNATURE_BYTES} bytes (got {len(signature)})")
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    try:
        _point(key).verify(utils.encode_dss_signature(r, s), keccak_256(content), ec.ECDSA(_DIGEST))
    except InvalidSignature:
        return False
    return True


def sign(key: PrivateKey, content: bytes) -> bytes:
    """Sign content with a secp256k1 key.

    Raises:
        InvalidInput: the key is of another type.
    """
    r, s = utils.decode_dss_signature(key.sign_digest(keccak_256(content)))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _point(data: bytes) -> ec.EllipticCurvePublicKey:
    if len(data) != KEY_BYTES:
        raise InvalidInput(f"a compressed key must have {KEY_BYTES} bytes (got {len(data)})")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), data)
    except ValueError as error:
        raise InvalidInput(f"the compressed key is not a point on the curve: {error}") from error
