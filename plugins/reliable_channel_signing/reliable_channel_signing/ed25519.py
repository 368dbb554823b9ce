"""Signing and verifying with Ed25519 (RFC 8032), for the argument `signing=` of a channel."""

from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from reliable_channel.spi import NotProven

from .identities import DidKeys, Identities
from .keys import SigningKey

SIGNATURE_BYTES: Final = 64
REMEMBERED_KEYS: Final = 4096
"""Maximum number of cached keys (some hundred bytes each). Beyond the maximum, the least recently
used key is evicted."""


class Ed25519Signer:
    """Signer with one key, which also verifies messages of other participants.

    Args:
        key: the private key of this participant.
        identities: which keys belong to a `sender_id`. Where None, each id is the `did:key` of its
            key, and this participant's is `sender_id` of this object.
    """

    def __init__(self, key: SigningKey, identities: Identities | None = None) -> None:
        self._key = key
        self._identities: Identities = DidKeys() if identities is None else identities

    @property
    def sender_id(self) -> str:
        """`did:key` of the signing key, which is usually the `sender_id` of the channel."""
        return self._key.did

    def sign(self, data: bytes) -> bytes:
        """Return the signature of the bytes."""
        return self._key.sign(data)

    def verify(self, sender_id: str, data: bytes, signature: bytes) -> None:
        """Check that `sender_id` signed `data`.

        Raises:
            NotProven: it did not, or none of its keys is known.
        """
        if len(signature) != SIGNATURE_BYTES:
            raise NotProven(f"a signature must have {SIGNATURE_BYTES} bytes (got {len(signature)})")
        try:
            keys = self._identities.keys_of(sender_id)
        except ValueError as error:
            raise NotProven(str(error)) from error
        if not any(_signed(key, data, signature) for key in keys):
            raise NotProven(f"the signature does not belong to {sender_id[:100]!r} and these bytes")

    def __repr__(self) -> str:
        return f"Ed25519Signer({self._key!r})"


def _signed(public_key: bytes, data: bytes, signature: bytes) -> bool:
    try:
        _loaded(public_key).verify(signature, data)
    except InvalidSignature:
        return False
    return True


@lru_cache(REMEMBERED_KEYS)
def _loaded(public_key: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(public_key)
