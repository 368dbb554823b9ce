"""Encryption of what a channel puts on the wire (LIP 173, Encryption).

The channel imposes no scheme: it is given a pair of async functions from bytes to bytes. By default
the whole SDS message is encrypted, ids and bloom filter included, and a receiver tries to decrypt
all that arrives: so a scheme must be authenticated and carry its own nonce and key id.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..sds.errors import ReliableChannelError


class DecryptionFailed(ReliableChannelError):
    """These bytes are not for us, or were tampered with: which of the two is unknown."""


@runtime_checkable
class Encryption(Protocol):
    """What a channel needs of a scheme; `EncryptionPair` makes one from two functions."""

    async def encrypt(self, content: bytes) -> bytes:
        """Encrypt a message. What it raises makes the message `send_failed`; it never goes out in
        clear."""
        ...

    async def decrypt(self, payload: bytes) -> bytes:
        """Open a message.

        Raises:
            DecryptionFailed: it is dropped, silently but counted, as shared topics carry what
                is for others.
        """
        ...


@runtime_checkable
class SharesKey(Protocol):
    """An encryption whose key can be part of an invitation."""

    def key_text(self) -> str:
        """Return the value of `encryption=` that makes an equal one: `scheme:hex`, and optionally a
        dot and more hex. It is a secret, and names no file."""
        ...


@dataclass(frozen=True, slots=True)
class EncryptionPair:
    """An encryption from two async functions; `open_` raises `DecryptionFailed` for what it cannot
    open."""

    seal: Callable[[bytes], Awaitable[bytes]]
    open_: Callable[[bytes], Awaitable[bytes]]

    async def encrypt(self, content: bytes) -> bytes:
        """Encrypt a message."""
        return await self.seal(content)

    async def decrypt(self, payload: bytes) -> bytes:
        """Open a message."""
        return await self.open_(payload)
