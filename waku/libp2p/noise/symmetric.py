"""Cipher state and symmetric state of the Noise specification (sections 5.1 and 5.2).

The specification is https://noiseprotocol.org/noise.html.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from struct import Struct
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from ..errors import HandshakeFailed, PeerViolation

__all__ = ["TAG_BYTES", "CipherState", "SymmetricState"]

TAG_BYTES: Final = 16
_MAX_NONCE: Final = 2**64 - 1
"""Reserved by the specification; a connection is over long before."""
_NONCE: Final = Struct("<4xQ")
"""ChaChaPoly: 32 bits of zeros, then the counter, little-endian (section 12.3)."""


class CipherState:
    """Cipher key and its message counter, which grows with each message."""

    def __init__(self, key: bytes) -> None:
        self._cipher = ChaCha20Poly1305(key)
        self._counter = 0

    def encrypt(self, plaintext: bytes, associated_data: bytes | None = None) -> bytes:
        return self._cipher.encrypt(self._next_nonce(), plaintext, associated_data)

    def decrypt(self, ciphertext: bytes, associated_data: bytes | None = None) -> bytes:
        """Decrypt a message and check that it is authentic.

        Raises:
            PeerViolation: the ciphertext is not what the holder of the key encrypted next.
        """
        nonce = self._next_nonce()
        try:
            return self._cipher.decrypt(nonce, ciphertext, associated_data)
        except InvalidTag:
            raise PeerViolation("the authentication of a noise message failed") from None

    def _next_nonce(self) -> bytes:
        if self._counter == _MAX_NONCE:
            raise PeerViolation("the noise counter is used up; open a new connection")
        nonce = _NONCE.pack(self._counter)
        self._counter += 1
        return nonce


class SymmetricState:
    """Chaining key and handshake hash (section 5.2)."""

    def __init__(self, protocol_name: bytes) -> None:
        name = protocol_name
        self.handshake_hash = name.ljust(32, b"\0") if len(name) <= 32 else sha256(name).digest()
        self._chaining_key = self.handshake_hash
        self._cipher: CipherState | None = None

    def mix_key(self, material: bytes) -> None:
        """Mix a shared secret into the chaining key."""
        self._chaining_key, key = _hkdf(self._chaining_key, material)
        self._cipher = CipherState(key)

    def mix_hash(self, data: bytes) -> None:
        """Mix sent or received bytes into the handshake hash."""
        self.handshake_hash = sha256(self.handshake_hash + data).digest()

    def encrypt_and_hash(self, plaintext: bytes) -> bytes:
        """Encrypt the data if there is a key, and mix the result into the handshake hash."""
        sealed = plaintext
        if self._cipher is not None:
            sealed = self._cipher.encrypt(plaintext, self.handshake_hash)
        self.mix_hash(sealed)
        return sealed

    def decrypt_and_hash(self, data: bytes) -> bytes:
        """Decrypt the data if there is a key, and mix the received bytes into the handshake hash.

        Raises:
            HandshakeFailed: the data fail authentication.
        """
        opened = data
        if self._cipher is not None:
            try:
                opened = self._cipher.decrypt(data, self.handshake_hash)
            except PeerViolation as error:
                raise HandshakeFailed(f"the noise handshake failed: {error}") from error
        self.mix_hash(data)
        return opened

    def split(self) -> tuple[CipherState, CipherState]:
        """Return the ciphers for the initiator's messages and for the responder's messages."""
        first, second = _hkdf(self._chaining_key, b"")
        return CipherState(first), CipherState(second)


def _hkdf(chaining_key: bytes, material: bytes) -> tuple[bytes, bytes]:
    extracted = hmac.digest(chaining_key, material, "sha256")
    first = hmac.digest(extracted, b"\x01", "sha256")
    return first, hmac.digest(extracted, first + b"\x02", "sha256")
