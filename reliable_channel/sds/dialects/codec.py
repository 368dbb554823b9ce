"""What the codecs of all dialects share: their contract and their limits."""

from collections.abc import Sequence
from typing import Final, Protocol

from ..message import HistoryEntry, Message

MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""A longer message is refused undecoded; Waku itself carries no more than 150 KiB."""
MAX_HISTORY_ENTRIES: Final = 10_000
"""Two bytes on the wire are enough for an entry, so their number has a separate limit."""
MAX_BUNDLED_MESSAGES: Final = 512
"""Whole messages of one bundle; what follows them is not read."""
MAX_ID_BYTES: Final = 1024


class CodecError(ValueError):
    """Bytes that are no SDS message, or a message that cannot be written: the text says what and
    why."""


class Codec(Protocol):
    """Encodes and decodes messages in one dialect. Stateless."""

    def recognises(self, data: bytes) -> bool:
        """Return True if this looks like a message in this dialect and not in another one."""
        ...

    def decode(self, data: bytes) -> Message:
        """Read one message.

        Raises:
            CodecError: it is none, or a field is beyond its limit.
        """
        ...

    def encode(self, message: Message) -> bytes:
        """Write one message.

        Raises:
            CodecError: the dialect cannot express it.
        """
        ...

    def assemble(self, message: Message, causal_history: bytes) -> bytes:
        """Write `message` with an already encoded causal history.

        Raises:
            CodecError: the dialect cannot express it.
        """
        ...

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Write one entry of a causal history, tag and length included."""
        ...


class KnownEntries(Protocol):
    """Entries of causal histories whose encoded form is known (`causal_history.py`)."""

    def common(self, data: bytes, start: int, end_of_first: int) -> tuple[Sequence[str], int]:
        """The ids of the encoded entries from `start` on that are known, and where they end;
        `end_of_first` is the end of the first entry."""
        ...


def check_counts(entries: int) -> None:
    """Refuse too many entries of histories, or parts of a reconciliation, before anything is made
    of them: half a million fit into a message of 1 MiB.

    Raises:
        CodecError: too many.
    """
    if entries > MAX_HISTORY_ENTRIES:
        raise CodecError(
            f"{entries} history entries or parts; at most {MAX_HISTORY_ENTRIES} are read"
        )


class HasIds(Protocol):
    """A message, decoded or not."""

    @property
    def sender_id(self) -> str:
        """Its sender."""

    @property
    def message_id(self) -> str:
        """Its own id."""

    @property
    def channel_id(self) -> str:
        """Where it belongs."""


def check_ids(message: HasIds) -> None:
    """Refuse ids that are too long to work with.

    Raises:
        CodecError: too long an id.
    """
    for name in ("sender_id", "message_id", "channel_id"):
        if len(getattr(message, name)) > MAX_ID_BYTES:
            raise CodecError(f"{name} is longer than {MAX_ID_BYTES} characters")
