"""Messages that the channel's key cannot decrypt, and the probable cause."""

from typing import Final

from .._contracts.encryption import DecryptionFailed, Encryption
from ..sds.dialects.codec import Codec, CodecError
from ..sds.ids import RecentSet

WARNED_AT: Final = 3
"""Number of undecryptable messages in a row before a warning, because anyone can publish one. With
a wrong key, all further messages fail too."""
KNOWN: Final = 1000
"""Number of remembered message hashes, because a Store may return a message again."""


class Unopened:
    """Messages that the key of the channel cannot decrypt.

    A message in the other order of encryption is recognised, but not delivered. In the order
    `encrypt-then-sds` a stranger can forge senders and references.
    """

    def __init__(
        self, encryption: Encryption, codec: Codec, *, contents_alone: bool, is_shared: bool
    ) -> None:
        self._encryption = encryption
        self._codec = codec
        self._contents_alone = contents_alone
        self._is_shared = is_shared
        """True if other channels may use the content topic, with other keys."""
        self._known = RecentSet[bytes](KNOWN)
        self._count = 0
        self._in_a_row = 0
        """Messages that did not open since the last one that did."""
        self._in_other_order = 0
        self._was_warned_of = False
        self.has_opened = False
        """True if the key opened any message."""

    def note_opened(self) -> None:
        """Note that a message was decrypted, so the key is the right key."""
        self.has_opened = True
        self._in_a_row = self._in_other_order = 0

    async def note(self, message_hash: bytes, payload: bytes) -> bool:
        """Note a payload that cannot be decrypted. Return True if a log record about it is due
        now."""
        if not self._known.add(message_hash):
            return False
        is_in_other_order = await self._opens_in_other_order(payload)
        # Where contents alone are encrypted, a payload that cannot be read may be anything.
        counts = is_in_other_order or not self._contents_alone
        self._in_other_order += is_in_other_order
        return self._add(counts)

    def note_content(self, message_id: str) -> bool:
        """Note a message whose content cannot be decrypted. Return True if a log record about it is
        due now."""
        return self._add(self._known.add(message_id.encode()))

    async def try_open(self, message_hash: bytes, payload: bytes) -> None:
        """Decrypt a message as the channel would, and note a failure."""
        try:
            if not self._contents_alone:
                await self._encryption.decrypt(payload)
            elif content := self._codec.decode(payload).content:
                await self._encryption.decrypt(content)
            else:
                return  # nothing in it is encrypted
        except DecryptionFailed:
            if self._contents_alone:
                self.note_content(message_hash.hex())
            else:
                await self.note(message_hash, payload)
        except CodecError:
            await self.note(message_hash, payload)
        else:
            self.note_opened()

    @property
    def warning(self) -> str | None:
        """Return the current problem and its solution, or None.

        One message in the other order is enough for a warning, because its sender has the key.
        """
        is_certain = self._in_other_order or self._in_a_row >= WARNED_AT
        return self.found if is_certain else None

    @property
    def found(self) -> str | None:
        """Return the latest problem and its solution, or None if every message was decrypted."""
        if not self._count or (self._is_shared and self.has_opened):
            return None
        if self._in_other_order:
            order = "sds-then-encrypt" if self._contents_alone else "encrypt-then-sds"
            return (
                f"messages in another order of encryption: {self._in_other_order}; give "
                f"`encryption_order={order!r}`, as their senders do"
            )
        others = ", or other channels use this content topic" if self._is_shared else ""
        return (
            f"messages that do not open with the key of this channel: {self._count}; their senders "
            f"use another key{others}. Compare `encryption` of all participants"
        )

    def _add(self, counts: bool) -> bool:
        """Count a message; return True if the log should say so now, once."""
        self._count += counts
        self._in_a_row += counts
        if self._was_warned_of or self._in_a_row < WARNED_AT or self.warning is None:
            return False
        self._was_warned_of = True
        return True

    async def _opens_in_other_order(self, payload: bytes) -> bool:
        try:
            if self._contents_alone:
                self._codec.decode(await self._encryption.decrypt(payload))
            elif content := self._codec.decode(payload).content:
                await self._encryption.decrypt(content)
            else:
                return False  # nothing in it proves that its sender has the key
        except (CodecError, DecryptionFailed):
            return False
        return True
