"""What the codecs of all dialects share: their contract, their limits, and how a message's dialect
is told."""

from collections.abc import Sized
from typing import Final, Protocol

from ..message import HistoryEntry, Message

MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""A longer message is refused undecoded; Waku itself carries no more than 150 KiB."""
MAX_HISTORY_ENTRIES: Final = 10_000
"""Two bytes on the wire are enough for an entry, so their number has a limit of its own."""
MAX_ID_BYTES: Final = 1024
_MAX_SNIFFED_FIELDS: Final = 100
"""Fields that are looked through for the one that tells the dialect. All known peers write fields
by ascending number, so that it is the first or the second; a longer search is work for nothing."""


class CodecError(ValueError):
    """Bytes that are no SDS message, or a message that cannot be written: the text says what and
    why."""


class Codec(Protocol):
    """Encodes and decodes messages in one dialect. Stateless."""

    def recognises(self, data: bytes) -> bool:
        """Whether this looks like a message in this dialect and not in another one."""
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
        """Write `message` with an already encoded causal history in place of its own.

        Raises:
            CodecError: the dialect cannot express it.
        """
        ...

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Write one entry of a causal history, tag and length included."""
        ...


def check_counts(causal_history: Sized, repair_request: Sized) -> None:
    """Refuse too many history entries before anything is made of them: half a million fit into a
    message of 1 MiB.

    Raises:
        CodecError: too many.
    """
    entries = len(causal_history) + len(repair_request)
    if entries > MAX_HISTORY_ENTRIES:
        raise CodecError(f"{entries} history entries; at most {MAX_HISTORY_ENTRIES} are read")


class HasIds(Protocol):
    """A message, decoded or not."""

    @property
    def sender_id(self) -> str:
        """Who sent it."""

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


def field_2_is_varint(data: bytes) -> bool:
    """Whether the first field 2 of a protobuf message is a number: the Lamport timestamp of
    nim-sds, which always writes it, where the specification has the message id, a string."""
    try:
        # As good as always it comes right after a short field 1.
        if data[0] == 0x0A and data[1] < 0x80 and (tag := data[2 + data[1]]) in (0x10, 0x12):
            return tag == 0x10
        return _wire_type_of_field_2(data) == 0
    except IndexError:
        return False


def _wire_type_of_field_2(data: bytes) -> int | None:
    at = 0
    for _ in range(_MAX_SNIFFED_FIELDS):
        tag, at = _varint(data, at)
        wire_type = tag & 7
        if tag >> 3 == 2:
            return wire_type
        if wire_type == 0:
            _, at = _varint(data, at)
        elif wire_type == 2:
            length, at = _varint(data, at)
            at += length
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            break
    return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends.

    Raises:
        IndexError: the data end before it does.
    """
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in range(7, 70, 7):
        at += 1
        value |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return value, at + 1
    raise IndexError("a number of more than 10 bytes")
