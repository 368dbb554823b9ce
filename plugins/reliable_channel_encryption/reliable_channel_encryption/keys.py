"""Keys: a secret that does not show itself, and a ring of them for rotation."""

import secrets
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final, NoReturn, Self
from unicodedata import normalize

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .nonces import MAX_MESSAGES, NonceLedger

KEY_BYTES: Final = 32
"""The key of AES-256-GCM and of ChaCha20-Poly1305."""

KEY_ID_BYTES: Final = 8
KEY_ID_DOMAIN: Final = b"reliable-channel key id"

MIN_SALT_BYTES: Final = 16
"""Minimum length of a salt (NIST SP 800-132, 5.1)."""

SCRYPT_COST: Final = 2**17
SCRYPT_BLOCK_SIZE: Final = 8
SCRYPT_PARALLELISM: Final = 1
"""RFC 7914 with the cost that OWASP's cheat sheet of password storage asks for: 128 MiB and a few
tenths of a second a guess. Other figures would be other keys, so they are no options."""


class Secret:
    """A key of 32 bytes that its `repr` and `str` do not show, and that is not pickled.

    It counts what was encrypted with it, so share one object among the channels that share the key.

    Raises:
        ValueError: the key does not have 32 bytes.
    """

    __slots__ = ("_key", "_nonces", "id")

    id: bytes
    """8 bytes of a hash of the key: names it on the wire, and is equal wherever the key is."""

    def __init__(self, key: bytes) -> None:
        self._key = bytes(memoryview(key))  # refuses text and numbers
        if len(self._key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, this one has {len(self._key)}")
        self.id = sha256(KEY_ID_DOMAIN + self._key).digest()[:KEY_ID_BYTES]
        self._nonces = NonceLedger()

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the operating system's random source."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Return the key of a text of `reveal().hex()`. White space does not matter.

        Raises:
            ValueError: other than 64 hexadecimal digits.
        """
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise ValueError(f"a key in hex has {2 * KEY_BYTES} digits of 0-9 and a-f") from None
        return cls(key)

    @classmethod
    def from_password(cls, password: str, salt: bytes) -> Self:
        """Return the key that scrypt derives from a password. Equal password and salt make an equal
        key.

        It takes a few tenths of a second and 128 MiB on purpose: every program that saw a message
        can try passwords on it at that price. Prefer `generate` wherever a key can be stored.
        Unicode is normalised (NFC), so that it does not matter which keyboard typed an accent.

        Args:
            password: what the participants know.
            salt: at least 16 random bytes, equal for all participants. It need not be secret.

        Raises:
            ValueError: an empty password, or a salt that is too short.
        """
        if not password:
            raise ValueError("the password is empty")
        if len(salt) < MIN_SALT_BYTES:
            raise ValueError(f"a salt has at least {MIN_SALT_BYTES} bytes, this one {len(salt)}")
        scrypt = Scrypt(salt, KEY_BYTES, SCRYPT_COST, SCRYPT_BLOCK_SIZE, SCRYPT_PARALLELISM)
        return cls(scrypt.derive(normalize("NFC", password).encode()))

    def reveal(self) -> bytes:
        """Return the key itself, to be stored or handed over."""
        return self._key

    @property
    def sealed(self) -> int:
        """Number of messages encrypted with this object."""
        return self._nonces.drawn

    def new_nonce(
        self, random: Callable[[int], bytes], *, max_messages: int = MAX_MESSAGES
    ) -> bytes:
        """Return a nonce that this object has not recently returned, counted as one message.

        Raises:
            KeyExhausted: `max_messages` were encrypted.
            NonceRefused: the random source repeats itself or gives the wrong length.
        """
        return self._nonces.draw(random, max_messages=max_messages)

    def __repr__(self) -> str:
        return f"Secret(id={self.id.hex()})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled or copied; reveal() gives the key to be stored")


class Keyring:
    """The key to encrypt with, and older or coming ones that are only opened with.

    Raises:
        ValueError: a key is there twice.
    """

    __slots__ = ("current", "older")

    def __init__(self, current: Secret, *older: Secret) -> None:
        self.current = current
        self.older = older
        if len({secret.id for secret in self}) != 1 + len(older):
            raise ValueError(f"a key is twice in {self!r}")

    def __iter__(self) -> Iterator[Secret]:
        yield self.current
        yield from self.older

    def __repr__(self) -> str:
        return f"Keyring({', '.join(map(repr, self))})"
