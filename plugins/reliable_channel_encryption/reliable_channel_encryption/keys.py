"""Secret keys that `repr` does not show, and a key ring for rotation."""

import secrets
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final, NoReturn, Self
from unicodedata import normalize

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .nonces import MAX_MESSAGES, NonceLedger

KEY_BYTES: Final = 32
"""Length of a key of AES-256-GCM or ChaCha20-Poly1305 (bytes)."""

KEY_ID_BYTES: Final = 8
KEY_ID_DOMAIN: Final = b"reliable-channel key id"

MIN_SALT_BYTES: Final = 16
"""Minimum length of a salt (NIST SP 800-132, 5.1) (bytes)."""

SCRYPT_COST: Final = 2**17
SCRYPT_BLOCK_SIZE: Final = 8
SCRYPT_PARALLELISM: Final = 1
"""Cost of scrypt (RFC 7914) as OWASP recommends, 128 MiB and a few tenths of a second per guess.
The cost is not an option, because another cost would derive another key."""


class Secret:
    """Key of 32 bytes, which `repr` and `str` do not show and which cannot be pickled.

    A `Secret` counts its encrypted messages, so all channels with one key must share one object.

    Raises:
        ValueError: the key does not have 32 bytes.
    """

    __slots__ = ("_key", "_nonces", "id")

    id: bytes
    """Id of the key in messages, 8 bytes of a hash of the key."""

    def __init__(self, key: bytes) -> None:
        self._key = bytes(memoryview(key))  # refuses text and numbers
        if len(self._key) != KEY_BYTES:
            raise ValueError(f"a key must have {KEY_BYTES} bytes (got {len(self._key)})")
        self.id = sha256(KEY_ID_DOMAIN + self._key).digest()[:KEY_ID_BYTES]
        self._nonces = NonceLedger()

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the operating system's random source."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Return the key in the hex text of `reveal().hex()`. White space in the hex text is
        ignored.

        Raises:
            ValueError: other than 64 hexadecimal digits.
        """
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise ValueError(
                f"a key in hex must have {2 * KEY_BYTES} digits of 0-9 and a-f: write the key "
                "without spaces and without 0x"
            ) from None
        return cls(key)

    @classmethod
    def from_password(cls, password: str, salt: bytes) -> Self:
        """Return the key that scrypt derives from a password. Equal passwords and salts give equal
        keys.

        The derivation is slow (128 MiB), because any program with a message can try passwords. If a
        key can be stored, use `generate` instead. The password is normalised (NFC), so that
        different keyboards give the same key.

        Args:
            password: what the participants know.
            salt: at least 16 random bytes, equal for all participants. It need not be secret.

        Raises:
            ValueError: an empty password, or a salt that is too short.
        """
        if not password:
            raise ValueError("the password is empty")
        if len(salt) < MIN_SALT_BYTES:
            raise ValueError(f"a salt must have at least {MIN_SALT_BYTES} bytes (got {len(salt)})")
        scrypt = Scrypt(salt, KEY_BYTES, SCRYPT_COST, SCRYPT_BLOCK_SIZE, SCRYPT_PARALLELISM)
        return cls(scrypt.derive(normalize("NFC", password).encode()))

    def reveal(self) -> bytes:
        """Return the bytes of the key, to store or pass on."""
        return self._key

    @property
    def sealed(self) -> int:
        """Number of messages that this object has encrypted."""
        return self._nonces.drawn

    def new_nonce(
        self, random: Callable[[int], bytes], *, max_messages: int = MAX_MESSAGES
    ) -> bytes:
        """Return a nonce that this object has not returned recently, and count one message.

        Raises:
            KeyExhausted: `max_messages` were encrypted.
            NonceRefused: the random source repeats itself or gives the wrong length.
        """
        return self._nonces.draw(random, max_messages=max_messages)

    def __repr__(self) -> str:
        return f"Secret(id={self.id.hex()})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Secret cannot be pickled or copied; reveal() returns the key for storage"
        )


class Keyring:
    """Key ring with the key that encrypts, and other keys that only decrypt.

    Raises:
        ValueError: a key is there twice.
    """

    __slots__ = ("current", "older")

    def __init__(self, current: Secret, *older: Secret) -> None:
        self.current = current
        self.older = older
        if len({secret.id for secret in self}) != 1 + len(older):
            raise ValueError(f"the keyring {self!r} holds a key twice")

    def __iter__(self) -> Iterator[Secret]:
        yield self.current
        yield from self.older

    def __repr__(self) -> str:
        return f"Keyring({', '.join(map(repr, self))})"
