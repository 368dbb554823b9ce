"""The private key of a participant, which does not show itself."""

from typing import NoReturn, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .did_key import PUBLIC_KEY_BYTES, did_of

PRIVATE_KEY_BYTES = PUBLIC_KEY_BYTES


class SigningKey:
    """A private key of Ed25519 that its `repr` and `str` do not show, and that is not pickled.

    Raises:
        ValueError: the key does not have 32 bytes.
    """

    __slots__ = ("_private", "did")

    did: str
    """The public key, which may be published: `did:key:z6Mk…`."""

    def __init__(self, key: bytes) -> None:
        key = bytes(memoryview(key))  # refuses text and numbers
        if len(key) != PRIVATE_KEY_BYTES:
            raise ValueError(f"a key has {PRIVATE_KEY_BYTES} bytes, this one has {len(key)}")
        self._private = Ed25519PrivateKey.from_private_bytes(key)
        self.did = did_of(self._private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the operating system's random source."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Return the key of a text of `reveal().hex()`. White space does not matter.

        Raises:
            ValueError: other than 64 hexadecimal digits.
        """
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise ValueError(
                f"a key in hex has {2 * PRIVATE_KEY_BYTES} digits of 0-9 and a-f"
            ) from None
        return cls(key)

    def reveal(self) -> bytes:
        """Return the key itself, to be stored."""
        return self._private.private_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return the 64 bytes of a signature."""
        return self._private.sign(data)

    def __repr__(self) -> str:
        return f"SigningKey({self.did})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SigningKey is not pickled or copied; reveal() gives the key to store")
