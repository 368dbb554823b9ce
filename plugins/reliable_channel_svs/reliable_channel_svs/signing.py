"""Signatures of Data packets, and the rules for accepting them.

A `Signer` signs packets. A `Trust` decides which signatures a group accepts. DigestSha256 proves
that a packet arrived whole, but nothing about its author.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .errors import SignatureRefused, TlvError
from .name import NAME, Name
from .tlv import Reader, decode_integer, encode, encode_integer

SIGNATURE_TYPE: Final = 0x1B
KEY_LOCATOR: Final = 0x1C

DIGEST_SHA256: Final = 0
HMAC_SHA256: Final = 4
ED25519: Final = 5


@dataclass(frozen=True, slots=True)
class Signature:
    """Fields of a packet that describe its signature."""

    type: int
    key_name: Name | None
    value: bytes


class Signer(Protocol):
    """Signs the packets of a node."""

    signature_type: int
    key_name: Name | None

    def sign(self, covered: bytes) -> bytes:
        """Return the signature of the covered bytes."""
        ...


class Trust(Protocol):
    """Decides which packets a group accepts."""

    def check(self, name: Name, covered: bytes, signature: Signature) -> None:
        """Check that the group accepts a packet.

        Raises:
            SignatureRefused: it may not.
        """
        ...


class DigestSigner:
    """Signer with DigestSha256, which needs no key."""

    signature_type = DIGEST_SHA256
    key_name: Name | None = None

    def sign(self, covered: bytes) -> bytes:
        """Return the SHA-256 of the covered bytes."""
        return sha256(covered).digest()


class HmacSigner:
    """Signer with HmacWithSha256 and a key that the group shares. `HmacSigner` is also a trust,
    which accepts only signatures with the same key."""

    signature_type = HMAC_SHA256

    def __init__(self, key: bytes, key_name: Name | None = None) -> None:
        self._key = key
        self.key_name = key_name

    def sign(self, covered: bytes) -> bytes:
        """Return the HMAC of the covered bytes."""
        return hmac.digest(self._key, covered, "sha256")

    def check(self, name: Name, covered: bytes, signature: Signature) -> None:
        """Check that a signature was made with the same key.

        Raises:
            SignatureRefused: it was made otherwise.
        """
        if signature.type != HMAC_SHA256:
            raise SignatureRefused(
                f"{name} has a signature of type {signature.type} instead of HmacWithSha256"
            )
        if not hmac.compare_digest(self.sign(covered), signature.value):
            raise SignatureRefused(f"{name} is signed with another key than the group's")


class Ed25519Signer:
    """Signer with Ed25519 and a seed of 32 bytes. `key_name` is the name of the key in packets."""

    signature_type = ED25519

    def __init__(self, seed: bytes, key_name: Name) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.key_name: Name | None = key_name

    def sign(self, covered: bytes) -> bytes:
        """Return the signature of the covered bytes, always equal for equal bytes."""
        return self._key.sign(covered)

    @property
    def public_key(self) -> bytes:
        """Public key (32 bytes) with which other members check signatures."""
        return self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


class AnyTrust:
    """Trust that accepts every packet without a check, as ndnd does without a trust schema."""

    def check(self, name: Name, covered: bytes, signature: Signature) -> None:
        """Accept the packet without any check."""


class DigestTrust:
    """Trust that accepts all packets with a correct DigestSha256, which arrived whole. Anybody can
    make a packet with a correct digest."""

    def check(self, name: Name, covered: bytes, signature: Signature) -> None:
        """Check that a packet has a correct digest of its own bytes.

        Raises:
            SignatureRefused: the packet carries another digest, or another kind of signature.
        """
        if signature.type != DIGEST_SHA256:
            raise SignatureRefused(
                f"{name} has a signature of type {signature.type} instead of DigestSha256"
            )
        if sha256(covered).digest() != signature.value:
            raise SignatureRefused(f"{name} has a digest that does not match its bytes")


class KeyTrust:
    """Trust that accepts packets signed by one of the given Ed25519 keys."""

    def __init__(self, keys: Mapping[Name, bytes]) -> None:
        self._keys = {name: Ed25519PublicKey.from_public_bytes(k) for name, k in keys.items()}

    def check(self, name: Name, covered: bytes, signature: Signature) -> None:
        """Check that the named key signed the packet.

        The packet may name a certificate of the key, which begins with the key's name.

        Raises:
            SignatureRefused: the key is unknown, or did not sign these bytes.
        """
        if signature.type != ED25519 or signature.key_name is None:
            raise SignatureRefused(f"{name} is not signed with Ed25519 and the name of a key")
        locator = signature.key_name
        key = next((k for n, k in self._keys.items() if locator.starts_with(n)), None)
        if key is None:
            raise SignatureRefused(
                f"{name} is signed with the key {locator}, which the group does not know"
            )
        try:
            key.verify(signature.value, covered)
        except InvalidSignature:
            raise SignatureRefused(
                f"{name} has an invalid signature of the key {locator}"
            ) from None


def encode_signature_info(type_: int, signer: Signer) -> bytes:
    """Return the element that describes the signature of a packet."""
    parts = [encode_integer(SIGNATURE_TYPE, signer.signature_type)]
    if signer.key_name is not None:
        parts.append(encode(KEY_LOCATOR, signer.key_name.encode()))
    return encode(type_, *parts)


def decode_signature_info(value: memoryview) -> tuple[int, Name | None]:
    """Return the signature type, and the key name or None if the locator has no name.

    Raises:
        TlvError: the element is malformed.
    """
    reader = Reader(value)
    type_ = decode_integer(reader.take(SIGNATURE_TYPE))
    locator = reader.take_if(KEY_LOCATOR)
    if locator is None:
        return type_, None
    try:
        return type_, Name.from_value(Reader(locator).take(NAME))
    except TlvError:
        return type_, None  # a key digest, which names no key that we could know
