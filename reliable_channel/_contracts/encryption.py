"""Encryption of what a channel puts on the wire (LIP 173, Encryption).

The channel imposes no scheme: it is given a pair of async functions from bytes to bytes. By default
the whole SDS message is encrypted, ids and bloom filter included. A receiver tries to decrypt each
message, so a scheme must be authenticated and carry its nonce and key id.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..sds.errors import ReliableChannelError


class DecryptionFailed(ReliableChannelError):
    """The bytes are for another channel, or were changed. The reason is unknown."""


@runtime_checkable
class Encryption(Protocol):
    """Interface of an encryption scheme. `EncryptionPair` builds one from two functions."""

    async def encrypt(self, content: bytes) -> bytes:
        """Encrypt a message. After an error the message is `send_failed` and never published in
        clear."""
        ...

    async def decrypt(self, payload: bytes) -> bytes:
        """Decrypt a received message.

        Raises:
            DecryptionFailed: the message is dropped and counted, because shared topics
                carry messages of others.
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
    """Encryption from two async functions. `open_` raises `DecryptionFailed` for foreign
    messages."""

    seal: Callable[[bytes], Awaitable[bytes]]
    open_: Callable[[bytes], Awaitable[bytes]]

    async def encrypt(self, content: bytes) -> bytes:
        """Encrypt a message with the first function."""
        return await self.seal(content)

    async def decrypt(self, payload: bytes) -> bytes:
        """Open a message with the second function."""
        return await self.open_(payload)
