"""Identity keys, and the peer ids that are derived from them.

The specification is https://github.com/libp2p/specs/blob/master/peer-ids/peer-ids.md.

A host's own key is an Ed25519 key or a secp256k1 key (the kind of Waku nodes). Signatures of RSA
and ECDSA peers can be verified, too. The package `cryptography` (OpenSSL) implements the
cryptography.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from hashlib import sha256
from typing import Final, cast

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from waku import _base58

from . import varint
from .errors import InvalidInput

__all__ = ["KeyType", "PeerId", "PrivateKey", "PublicKey"]

_TYPE_FIELD: Final = 0x08
_DATA_FIELD: Final = 0x12
MAX_KEY_BYTES: Final = 4_096
"""Maximum size of an encoded public key (bytes). An RSA key of 8,192 bits has about 1,100 bytes."""
MAX_RSA_BITS: Final = 8_192
"""Maximum size of an RSA key (bits), as in go-libp2p, because longer keys take longer to verify."""
MIN_RSA_BITS: Final = 2_048

_IDENTITY: Final = b"\x00"
_SHA2_256: Final = b"\x12\x20"
_INLINE_BYTES: Final = 42
"""Keys of at most this many bytes stand in the peer id itself."""
_CID_LIBP2P_KEY: Final = b"\x01\x72"
"""CID version 1, multicodec `libp2p-key`."""

_SECP256K1_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

_Key = rsa.RSAPublicKey | ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey


class KeyType(IntEnum):
    """Type of a key, as in libp2p's `crypto.proto`."""

    RSA = 0
    ED25519 = 1
    SECP256K1 = 2
    ECDSA = 3


@dataclass(frozen=True, slots=True)
class PeerId:
    """Peer id, which is the multihash of the peer's public key.

    Raises:
        InvalidInput: neither an identity multihash of a key nor a SHA-256 multihash.
    """

    multihash: bytes

    def __post_init__(self) -> None:
        data = self.multihash
        if data[:2] == _SHA2_256 and len(data) == 34:
            return
        fits = 2 < len(data) <= _INLINE_BYTES + 2 and data[1] == len(data) - 2
        if not fits or data[:1] != _IDENTITY:
            raise InvalidInput(f"{data[:48].hex()} is not the multihash of a peer id")
        _parse_key(data[2:])

    @classmethod
    def parse(cls, text: str) -> PeerId:
        """Parse a peer id in the form `16Uiu2…`, `12D3Koo…`, `Qm…`, or as a CID (`bafz…`).

        Raises:
            InvalidInput: the text has another form.
        """
        if text.startswith("b"):
            return cls(_from_cid(text))
        try:
            return cls(_base58.decode(text))
        except ValueError as error:
            raise InvalidInput(str(error)) from error

    def __str__(self) -> str:
        return _base58.encode(self.multihash)

    def __repr__(self) -> str:
        return f"PeerId({str(self)!r})"


@dataclass(frozen=True)
class PublicKey:
    """Public key of a peer, with the bytes exactly as the peer sent them.

    The peer id is the hash of these bytes (T13), so the key is never encoded again.
    """

    encoded: bytes
    """Encoded message `PublicKey` of `crypto.proto`, with type and data."""

    @classmethod
    def of(cls, type: KeyType, data: bytes) -> PublicKey:
        """Return the public key with the given type and data."""
        return cls(_encode_key(type, data))

    @cached_property
    def _parts(self) -> tuple[KeyType, bytes]:
        return _parse_key(self.encoded)

    @property
    def type(self) -> KeyType:
        """Type of the public key.

        Raises:
            InvalidInput: the encoded bytes are not a key.
        """
        return self._parts[0]

    @property
    def data(self) -> bytes:
        """Bytes of the key, which are 32 (Ed25519), 33 (secp256k1), or DER for RSA and ECDSA.

        Raises:
            InvalidInput: the encoded bytes are not a key.
        """
        return self._parts[1]

    @cached_property
    def peer_id(self) -> PeerId:
        """Peer id that belongs to this key."""
        if len(self.encoded) <= _INLINE_BYTES:
            return PeerId(_IDENTITY + bytes([len(self.encoded)]) + self.encoded)
        return PeerId(_SHA2_256 + sha256(self.encoded).digest())

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Check that the owner of the key made a signature.

        Raises:
            InvalidInput: the encoded bytes are not a key that this package can use.
        """
        key = self._loaded
        try:
            if isinstance(key, ed25519.Ed25519PublicKey):
                key.verify(signature, message)
            elif isinstance(key, rsa.RSAPublicKey):
                key.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
            else:
                key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    @cached_property
    def _loaded(self) -> _Key:
        try:
            key = _load(self.type, self.data)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise InvalidInput(f"the {self.type.name} key cannot be used: {error}") from error
        if isinstance(key, rsa.RSAPublicKey) and not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
            raise InvalidInput(
                f"an RSA key must have {MIN_RSA_BITS} to {MAX_RSA_BITS} bits (got {key.key_size})"
            )
        return key


class PrivateKey:
    """Private identity key of type Ed25519 or secp256k1.

    The `repr` of a key does not show the secret.
    """

    def __init__(self, type: KeyType, secret: bytes) -> None:
        """Args:
            type: `ED25519` or `SECP256K1`.
            secret: 32 random bytes; of Ed25519 the seed.

        Raises:
            InvalidInput: another type, another length, or zero or more than the curve's order.
        """
        if len(secret) != 32:
            raise InvalidInput(f"a secret must have 32 bytes (got {len(secret)})")
        self._secret = secret
        self.type = type
        self._key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey
        match type:
            case KeyType.ED25519:
                self._key = ed25519.Ed25519PrivateKey.from_private_bytes(secret)
                data = self._key.public_key().public_bytes_raw()
            case KeyType.SECP256K1:
                number = int.from_bytes(secret, "big")
                if not 0 < number < _SECP256K1_ORDER:
                    raise InvalidInput(
                        "the secp256k1 secret is not between 1 and the curve's order"
                    )
                self._key = ec.derive_private_key(number, ec.SECP256K1())
                data = self._key.public_key().public_bytes(
                    serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
                )
            case _:
                raise InvalidInput(f"own keys are ED25519 or SECP256K1 (got {type.name})")
        self.public_key: Final = PublicKey.of(type, data)

    def __repr__(self) -> str:
        return f"<PrivateKey of {self.peer_id}>"

    @property
    def peer_id(self) -> PeerId:
        """Peer id that belongs to this key."""
        return self.public_key.peer_id

    def sign(self, message: bytes) -> bytes:
        """Sign a message, so that `PublicKey.verify` accepts the signature."""
        if isinstance(self._key, ed25519.Ed25519PrivateKey):
            return self._key.sign(message)
        return _low_s(
            self._key.sign(message, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        )

    def sign_digest(self, digest: bytes) -> bytes:
        """Sign a 32-byte digest with a secp256k1 key, and return the signature as DER.

        Raises:
            InvalidInput: the key is of another type.
        """
        if isinstance(self._key, ed25519.Ed25519PrivateKey):
            raise InvalidInput("an Ed25519 key signs messages, not digests")
        algorithm = ec.ECDSA(utils.Prehashed(hashes.SHA256()), deterministic_signing=True)
        return _low_s(self._key.sign(digest, algorithm))

    def encode(self) -> bytes:
        """Return the message `PrivateKey` of `crypto.proto`, as go-libp2p and nim-libp2p store it
        in files."""
        secret = self._secret
        if self.type is KeyType.ED25519:
            secret += self.public_key.data
        return _encode_key(self.type, secret)

    @classmethod
    def parse(cls, encoded: bytes) -> PrivateKey:
        """Parse the bytes that `encode` returns.

        Raises:
            InvalidInput: the bytes are not such a key.
        """
        type, data = _parse_key(encoded)
        if type is KeyType.ED25519 and len(data) == 64:
            data = data[:32]
        return cls(type, data)


def _low_s(signature: bytes) -> bytes:
    """Return the signature with the smaller of its two possible S (T1).

    OpenSSL gives either; js-libp2p takes this one alone, and would refuse every other connection.
    """
    r, s = utils.decode_dss_signature(signature)
    return utils.encode_dss_signature(r, min(s, _SECP256K1_ORDER - s))


def _load(type: KeyType, data: bytes) -> _Key:
    match type:
        case KeyType.ED25519:
            return ed25519.Ed25519PublicKey.from_public_bytes(data)
        case KeyType.SECP256K1:
            return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), data)
        case KeyType.RSA:
            return cast("rsa.RSAPublicKey", _load_der(data, rsa.RSAPublicKey))
        case KeyType.ECDSA:
            key = cast("ec.EllipticCurvePublicKey", _load_der(data, ec.EllipticCurvePublicKey))
            if not isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1 | ec.SECP521R1):
                raise ValueError(f"the curve {key.curve.name} is not supported for keys of peers")
            return key


def _load_der(data: bytes, kind: type[_Key]) -> _Key:
    key = serialization.load_der_public_key(data)
    if not isinstance(key, kind):
        raise ValueError(f"the data of a {kind.__name__} hold another kind of key")
    return key


def _encode_key(type: KeyType, data: bytes) -> bytes:
    # Written even when 0 (RSA), as protobuf 2 has it (T13).
    return bytes([_TYPE_FIELD, type, _DATA_FIELD]) + varint.prefixed(data)


def _parse_key(encoded: bytes) -> tuple[KeyType, bytes]:
    if len(encoded) > MAX_KEY_BYTES:
        raise InvalidInput(f"the key has {len(encoded)} bytes; at most {MAX_KEY_BYTES} are allowed")
    if len(encoded) < 4 or encoded[0] != _TYPE_FIELD or encoded[2] != _DATA_FIELD:
        raise InvalidInput("the bytes are not a libp2p key; expected are a key type and then data")
    try:
        type = KeyType(encoded[1])
    except ValueError:
        raise InvalidInput(f"the key has the unknown type {encoded[1]}") from None
    header = varint.decode(encoded, 3)
    if header is None or header[0] != len(encoded) - header[1]:
        raise InvalidInput("the key data do not end where the message ends")
    return type, encoded[header[1] :]


def _from_cid(text: str) -> bytes:
    body = text[1:].upper()
    try:
        data = base64.b32decode(body + "=" * (-len(body) % 8))
    except ValueError:
        raise InvalidInput(f"{text[:100]!r} is not base32") from None
    if not data.startswith(_CID_LIBP2P_KEY):
        raise InvalidInput(f"{text[:100]!r} is not the CID of a libp2p key")
    return data[len(_CID_LIBP2P_KEY) :]
