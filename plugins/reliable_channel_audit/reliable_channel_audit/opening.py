"""Decryption of payloads in Spark's worker processes, each of which makes its own encryption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from reliable_channel.spi import DecryptionFailed, Encryption, make_encryption, process_registry

EncryptionFactory = Callable[[], Encryption]
"""Function that makes an encryption in a worker process. The function must be picklable, but its
result need not be."""


@dataclass(frozen=True, slots=True)
class NamedEncryption:
    """Encryption that is given by a URL, as in `ReliableChannel(encryption=url)` and
    `--encryption`. Worker processes need the encryption's plugin and its key file."""

    url: str
    channel_id: str
    sender_id: str = ""

    def __call__(self) -> Encryption:
        """Make it.

        Raises:
            PluginError: a plugin failed, or two know the scheme.
            ValueError: no plugin knows the scheme, or the one that does refuses the rest.
        """
        return make_encryption(process_registry(), self.url, self.channel_id, self.sender_id)


@dataclass(frozen=True, slots=True)
class Unopened:
    """Reason why a payload could not be decrypted."""

    why: str


def opened(encryption: Encryption, sealed: Sequence[bytes | None]) -> list[bytes | Unopened | None]:
    """Return the decrypted payloads in order, with the reason in place of those that fail. For a
    payload None, the result is also None.

    The function runs an event loop of its own, so the caller must not run in one.
    """

    async def open_all() -> list[bytes | Unopened | None]:
        return [None if each is None else await _opened(encryption, each) for each in sealed]

    return anyio.run(open_all)


async def _opened(encryption: Encryption, sealed: bytes) -> bytes | Unopened:
    try:
        content: object = await encryption.decrypt(sealed)
    except DecryptionFailed as error:
        return Unopened(f"not for this key, or tampered with: {error}")
    except Exception as error:  # given code: whatever it raises is this payload's failure
        return Unopened(f"the encryption failed: {error!r}")
    if isinstance(content, bytes):
        return content
    return Unopened(f"the encryption gave {type(content).__name__}, not bytes")
