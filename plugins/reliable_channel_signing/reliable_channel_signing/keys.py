"""Private key of a participant, which `repr` does not show."""

from typing import NoReturn, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .did_key import PUBLIC_KEY_BYTES, did_of

PRIVATE_KEY_BYTES = PUBLIC_KEY_BYTES


class SigningKey:
    """Private key of Ed25519, which `repr` and `str` do not show and which cannot be pickled.

    Raises:
        ValueError: the key does not have 32 bytes.
    """

    __slots__ = ("_private", "did")

    did: str
    """Public key as `did:key:z6Mk…`, which may be published."""

    def __init__(self, key: bytes) -> None:
        key = bytes(memoryview(key))  # refuses text and numbers
        if len(key) != PRIVATE_KEY_BYTES:
            raise ValueError(f"a key must have {PRIVATE_KEY_BYTES} bytes (got {len(key)})")
        self._private = Ed25519PrivateKey.from_private_bytes(key)
        self.did = did_of(self._private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the operating system's random source."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Return the private key in the hex text of `reveal().hex()`. White space in the hex text
        is ignored.

        Raises:
            ValueError: other than 64 hexadecimal digits.
        """
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise ValueError(
                f"a key in hex must have {2 * PRIVATE_KEY_BYTES} digits of 0-9 and a-f: write the "
                "key without spaces and without 0x"
            ) from None
        return cls(key)

    def reveal(self) -> bytes:
        """Return the bytes of the private key, for storing."""
        return self._private.private_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return the signature of the data (64 bytes)."""
        return self._private.sign(data)

    def __repr__(self) -> str:
        return f"SigningKey({self.did})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SigningKey cannot be pickled or copied; reveal() returns the key for storage"
        )
