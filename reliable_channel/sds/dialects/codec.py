"""Common part of the codecs of all dialects: their interface and their limits."""

from collections.abc import Sequence
from typing import Final, Protocol

from ..message import HistoryEntry, Message

MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""Maximum length of a message. A longer one is refused without decoding. Waku carries at most 150
KiB."""
MAX_HISTORY_ENTRIES: Final = 10_000
"""Maximum number of entries, because an entry needs only two bytes on the wire."""
MAX_BUNDLED_MESSAGES: Final = 512
"""Maximum number of messages in one bundle. Further ones are not read."""
MAX_ID_BYTES: Final = 1024


class CodecError(ValueError):
    """Bytes that are no SDS message, or a message that cannot be encoded. The text gives the
    reason."""


class Codec(Protocol):
    """Stateless encoder and decoder of messages in one dialect."""

    def recognises(self, data: bytes) -> bool:
        """Return True if this looks like a message in this dialect and not in another one."""
        ...

    def decode(self, data: bytes) -> Message:
        """Decode one message.

        Raises:
            CodecError: it has another form, or a field is beyond its limit.
        """
        ...

    def encode(self, message: Message) -> bytes:
        """Encode one message.

        Raises:
            CodecError: the dialect cannot express it.
        """
        ...

    def assemble(self, message: Message, causal_history: bytes) -> bytes:
        """Encode `message` with an already encoded causal history.

        Raises:
            CodecError: the dialect cannot express it.
        """
        ...

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Encode one entry of a causal history, tag and length included."""
        ...


class KnownEntries(Protocol):
    """Entries of causal histories with a known encoded form (`causal_history.py`)."""

    def common(self, data: bytes, start: int, end_of_first: int) -> tuple[Sequence[str], int]:
        """Return the known ids of the encoded entries from `start` on, and the end of these
        entries. `end_of_first` is the end of the first entry."""
        ...


def check_counts(entries: int) -> None:
    """Refuse too many history entries or reconciliation parts before they are decoded. Half a
    million fit into a message of 1 MiB.

    Raises:
        CodecError: too many.
    """
    if entries > MAX_HISTORY_ENTRIES:
        raise CodecError(
            f"{entries} history entries or parts; at most {MAX_HISTORY_ENTRIES} are read"
        )


class HasIds(Protocol):
    """Message of any dialect, decoded or not."""

    @property
    def sender_id(self) -> str:
        """Sender that the message names."""

    @property
    def message_id(self) -> str:
        """Id that the message contains."""

    @property
    def channel_id(self) -> str:
        """Channel that the message names."""


def check_ids(message: HasIds) -> None:
    """Refuse ids that are too long.

    Raises:
        CodecError: too long an id.
    """
    for name in ("sender_id", "message_id", "channel_id"):
        if len(getattr(message, name)) > MAX_ID_BYTES:
            raise CodecError(f"{name} is longer than {MAX_ID_BYTES} characters")
