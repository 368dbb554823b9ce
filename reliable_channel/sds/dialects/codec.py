"""Interface and limits of the codecs of all dialects."""

from collections.abc import Sequence
from typing import Final, Protocol

from ..message import HistoryEntry, Message

MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""Maximum length of an encoded message (bytes). A longer message is refused without decoding. Waku
carries at most 150 KiB in a message."""
MAX_HISTORY_ENTRIES: Final = 10_000
"""Maximum number of causal history entries, because an entry needs only two bytes on the wire."""
MAX_BUNDLED_MESSAGES: Final = 512
"""Maximum number of messages in one bundle. A receiver ignores further messages of the bundle."""
MAX_ID_BYTES: Final = 1024


class CodecError(ValueError):
    """The bytes are no SDS message, or a message cannot be encoded. The text of the error gives the
    reason."""


class Codec(Protocol):
    """Stateless encoder and decoder of messages in one dialect."""

    def recognises(self, data: bytes) -> bool:
        """Return True if the bytes look like a message in this dialect and not in another
        dialect."""
        ...

    def decode(self, data: bytes) -> Message:
        """Decode one message of the dialect.

        Raises:
            CodecError: it has another form, or a field is beyond its limit.
        """
        ...

    def encode(self, message: Message) -> bytes:
        """Encode one message in the dialect.

        Raises:
            CodecError: the dialect cannot express it.
        """
        ...

    def assemble(self, message: Message, causal_history: bytes) -> bytes:
        """Encode `message` with a causal history that is already encoded.

        Raises:
            CodecError: the dialect cannot express it.
        """
        ...

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Encode one entry of a causal history, with its tag and length."""
        ...


class KnownEntries(Protocol):
    """Causal history entries whose encoded form is known (`causal_history.py`)."""

    def common(self, data: bytes, start: int, end_of_first: int) -> tuple[Sequence[str], int]:
        """Return the ids of known encoded entries from `start` on, and the end of these entries in
        `data`. `end_of_first` is the end of the first encoded entry."""
        ...


def check_counts(entries: int) -> None:
    """Refuse a message with too many history entries or reconciliation parts before they are
    decoded. Half a million entries fit into a message of 1 MiB.

    Raises:
        CodecError: too many.
    """
    if entries > MAX_HISTORY_ENTRIES:
        raise CodecError(
            f"the message has {entries} history entries or parts; a channel reads at most "
            f"{MAX_HISTORY_ENTRIES}"
        )


class HasIds(Protocol):
    """Message of any dialect, decoded or not decoded."""

    @property
    def sender_id(self) -> str:
        """Sender id that the message contains."""

    @property
    def message_id(self) -> str:
        """Message id that the message contains."""

    @property
    def channel_id(self) -> str:
        """Channel id that the message contains."""


def check_ids(message: HasIds) -> None:
    """Refuse a message whose ids are too long.

    Raises:
        CodecError: too long an id.
    """
    if max(len(message.sender_id), len(message.message_id), len(message.channel_id)) > MAX_ID_BYTES:
        names = ("sender_id", "message_id", "channel_id")
        name = next(name for name in names if len(getattr(message, name)) > MAX_ID_BYTES)
        raise CodecError(f"{name} is longer than {MAX_ID_BYTES} characters")
