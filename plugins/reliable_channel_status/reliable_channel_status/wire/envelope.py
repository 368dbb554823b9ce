"""Envelope of 26/WAKU2-PAYLOAD version 1, with padding, signature, and AES-256-GCM or ECIES.

The plaintext has flags, the length of the payload (little-endian), and the payload. After the
payload come random padding to a multiple of 256 bytes and a signature over all bytes. The envelope
does not say which encryption it uses.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from . import ecies
from .keys import SIGNATURE_BYTES, PrivateKey, PublicKey, SymmetricKey, recover

PADDING_BYTES: Final = 256
"""Multiple to which the plaintext's length is padded. A plaintext of an exact multiple gets a whole
block of padding."""
MAX_PAYLOAD_BYTES: Final = 256**3 - 1
"""Maximum size of a payload, because two bits tell the size of its length field."""
IV_BYTES: Final = 12
TAG_BYTES: Final = 16

_SIZE_MASK: Final = 0b011
_SIGNED: Final = 0b100

Random = Callable[[int], bytes]
"""Function that returns the given number of unpredictable random bytes."""


class EnvelopeError(Exception):
    """Base class of the errors of an envelope that cannot be opened."""


class NotForThisKey(EnvelopeError):
    """Error that the envelope was encrypted with another key, or changed on the way. An envelope
    for another key cannot be distinguished from a changed envelope."""


class MalformedEnvelope(EnvelopeError):
    """Error that an envelope could be decrypted, but its content is not version 1."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Decrypted content of an envelope."""

    payload: bytes
    signer: PublicKey | None
    """Signer of the envelope, or None if it is unsigned. The author of the content also signs the
    content, apart from the envelope."""


def seal_symmetric(
    payload: bytes,
    key: SymmetricKey,
    signer: PrivateKey | None = None,
    *,
    random: Random = os.urandom,
) -> bytes:
    """Encrypt an envelope for all owners of a symmetric key. `seal_symmetric` returns ciphertext,
    tag and iv.

    Raises:
        ValueError: the payload has 16 MiB or more.
    """
    iv = random(IV_BYTES)
    plain = pack(payload, signer, random=random)
    return AESGCM(key.reveal()).encrypt(iv, plain, None) + iv


def open_symmetric(sealed: bytes, key: SymmetricKey) -> Opened:
    """Decrypt an envelope that was encrypted with the key.

    Raises:
        NotForThisKey: it was not, or is cut short, or was changed.
        MalformedEnvelope: it was, and is not version 1.
    """
    if len(sealed) <= IV_BYTES + TAG_BYTES:
        raise NotForThisKey(f"the encrypted payload has {len(sealed)} bytes, too few")
    try:
        plain = AESGCM(key.reveal()).decrypt(sealed[-IV_BYTES:], sealed[:-IV_BYTES], None)
    except InvalidTag:
        raise NotForThisKey(
            "AES-GCM cannot decrypt the payload: the key is wrong, or bytes were changed"
        ) from None
    return unpack(plain)


def seal_ecies(
    payload: bytes,
    receiver: PublicKey,
    signer: PrivateKey | None = None,
    *,
    random: Random = os.urandom,
) -> bytes:
    """Encrypt an envelope for one receiver.

    Raises:
        ValueError: the payload has 16 MiB or more.
    """
    return ecies.encrypt(pack(payload, signer, random=random), receiver, random=random)


def open_ecies(sealed: bytes, key: PrivateKey) -> Opened:
    """Decrypt an envelope for the public half of the key.

    Raises:
        NotForThisKey: it was not, or is cut short, or was changed.
        MalformedEnvelope: it was, and is not version 1.
    """
    plain = ecies.decrypt(sealed, key)
    if plain is None:
        raise NotForThisKey(
            "ECIES cannot decrypt the payload: the key is wrong, or bytes were changed"
        )
    return unpack(plain)


def pack(payload: bytes, signer: PrivateKey | None = None, *, random: Random = os.urandom) -> bytes:
    """Return the plaintext of an envelope.

    Raises:
        ValueError: the payload has 16 MiB or more.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"a payload must have at most {MAX_PAYLOAD_BYTES} bytes (got {len(payload)})"
        )
    size_bytes = max(1, -(-len(payload).bit_length() // 8))
    flags = size_bytes | (0 if signer is None else _SIGNED)
    head = bytes([flags]) + len(payload).to_bytes(size_bytes, "little") + payload
    length = len(head) + (0 if signer is None else SIGNATURE_BYTES)
    plain = head + random(PADDING_BYTES - length % PADDING_BYTES)
    # The flag stands before the signature is made, so that nobody can cut it off unnoticed.
    return plain if signer is None else plain + signer.sign(plain)


def unpack(plain: bytes) -> Opened:
    """Read the payload and the signer from an envelope's plaintext. Like go-waku, `unpack` accepts
    any padding, even none.

    Raises:
        MalformedEnvelope: a length that does not fit, or an invalid signature.
    """
    if not plain:
        raise MalformedEnvelope("the decrypted payload is empty")
    flags, body, signer = plain[0], plain, None
    if flags & _SIGNED:
        body, signature = plain[:-SIGNATURE_BYTES], plain[-SIGNATURE_BYTES:]
        if len(body) <= 1:
            raise MalformedEnvelope(f"the payload has {len(plain)} bytes, too few for a signature")
        signer = recover(body, signature)
        if signer is None:
            raise MalformedEnvelope("the signature of the payload is invalid")
    start = 1 + (flags & _SIZE_MASK)
    end = start + int.from_bytes(body[1:start], "little")
    if len(body) < end:
        raise MalformedEnvelope(
            f"the payload announces {end - start} bytes but holds {len(body) - start}"
        )
    return Opened(body[start:end], signer)
