"""Encryption with a key that all participants share.

An envelope is 38 bytes longer than the message in it, and has the following parts.

    version    1 byte    1
    algorithm  1 byte    1 AES-256-GCM, 2 ChaCha20-Poly1305
    key id     8 bytes   sha256("reliable-channel key id" + key), its beginning
    nonce     12 bytes   random
    encrypted               as long as the message, then a tag of 16 bytes

The first four parts and the context are authenticated as associated data (RFC 5116). The first
three parts select the cipher and the key, so other messages are recognized quickly.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Final, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from reliable_channel.spi import DecryptionFailed

from .keys import KEY_ID_BYTES, Keyring, Secret
from .nonces import MAX_MESSAGES, NONCE_BYTES

Algorithm = Literal["aes-256-gcm", "chacha20-poly1305"]

VERSION: Final = 1
ALGORITHM_BYTES: Final[Mapping[Algorithm, int]] = {"aes-256-gcm": 1, "chacha20-poly1305": 2}
CIPHERS: Final[Mapping[Algorithm, type[AESGCM] | type[ChaCha20Poly1305]]] = {
    "aes-256-gcm": AESGCM,
    "chacha20-poly1305": ChaCha20Poly1305,
}
PREFIX_BYTES: Final = 2 + KEY_ID_BYTES
HEADER_BYTES: Final = PREFIX_BYTES + NONCE_BYTES
TAG_BYTES: Final = 16
OVERHEAD_BYTES: Final = HEADER_BYTES + TAG_BYTES


class SymmetricEncryption:
    """Encryption with the current key of a key ring, for the argument `encryption=` of a channel.
    All keys of the ring can decrypt messages.

    Encryption runs in the event loop, because it takes only microseconds.

    Args:
        keys: the participants' keys.
        algorithm: what to encrypt with. Both are opened. AES-256-GCM is the faster one where the
            processor has instructions for it, ChaCha20-Poly1305 elsewhere.
        random: where nonces come from. Given a length, it gives that many random bytes.
        context: what a message belongs to, such as the channel id. It does not travel, and what was
            encrypted in another context is not opened, even if the key is the same.
        max_messages: how many messages each key may encrypt here, at most 2^32. That limit of the
            algorithms holds for all participants that encrypt with a key together, and over
            restarts. Give each of many, or of those that restart often, a part of it.

    Raises:
        ValueError: an unknown algorithm, or a limit outside 1 to 2^32.
    """

    def __init__(
        self,
        keys: Keyring,
        *,
        algorithm: Algorithm = "aes-256-gcm",
        random: Callable[[int], bytes] = secrets.token_bytes,
        context: bytes = b"",
        max_messages: int = MAX_MESSAGES,
    ) -> None:
        if algorithm not in CIPHERS:
            raise ValueError(
                f"algorithm is {algorithm!r}; known algorithms are {', '.join(CIPHERS)}"
            )
        if not 1 <= max_messages <= MAX_MESSAGES:
            raise ValueError(f"`max_messages` must be 1 to {MAX_MESSAGES} (got {max_messages})")
        self.algorithm: Final = algorithm
        self._random = random
        self._context = context
        self._max_messages = max_messages
        self.rotate(keys)

    @property
    def keys(self) -> Keyring:
        """Key ring that is used now."""
        return self._keys

    def rotate(self, keys: Keyring) -> None:
        """Use the given keys from the next message on. The channel stays open during the
        rotation."""
        self._keys = keys
        self._prefix = _prefix(self.algorithm, keys.current)
        self._ciphers = {
            _prefix(algorithm, secret): cipher(secret.reveal())
            for secret in keys
            for algorithm, cipher in CIPHERS.items()
        }

    async def encrypt(self, content: bytes) -> bytes:
        """Encrypt a message with the current key.

        Raises:
            KeyExhausted: the key encrypted as many messages as it may.
            NonceRefused: the random source is broken.
        """
        nonce = self._keys.current.new_nonce(self._random, max_messages=self._max_messages)
        header = self._prefix + nonce
        cipher = self._ciphers[self._prefix]
        return header + cipher.encrypt(nonce, content, header + self._context)

    async def decrypt(self, payload: bytes) -> bytes:
        """Decrypt a message with the key that it names.

        Raises:
            DecryptionFailed: it is not an envelope, or is encrypted with a key or in a context that
                is not ours, or was tampered with.
        """
        cipher = self._ciphers.get(payload[:PREFIX_BYTES])
        if cipher is None:
            raise DecryptionFailed(
                "the payload is not an encrypted message with a known version, algorithm and key"
            )
        if len(payload) < OVERHEAD_BYTES:
            raise DecryptionFailed(
                f"the payload has {len(payload)} bytes, too few for an encrypted message"
            )
        header = payload[:HEADER_BYTES]
        try:
            return cipher.decrypt(
                header[PREFIX_BYTES:], payload[HEADER_BYTES:], header + self._context
            )
        except InvalidTag:
            raise DecryptionFailed(
                "the message was changed, or encrypted in another context"
            ) from None

    def key_text(self) -> str:
        """Return the current key and the context as a value of `encryption=`. The returned text is
        a secret."""
        key, context = self._keys.current.reveal(), self._context
        return f"{self.algorithm}:{key.hex()}.{context.hex()}"

    def __repr__(self) -> str:
        return f"SymmetricEncryption({self._keys!r}, algorithm={self.algorithm!r})"


def _prefix(algorithm: Algorithm, secret: Secret) -> bytes:
    return bytes((VERSION, ALGORITHM_BYTES[algorithm])) + secret.id
