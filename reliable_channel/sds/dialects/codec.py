"""Interface and limits of the codecs of all dialects, and protobuf fields read without a schema.

The fields show the dialect of a message, and fields of number 0 are skipped. Each loop over fields
has a limit on its steps, because Python is slow.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from google.protobuf.message import DecodeError

from ..message import HistoryEntry, Message

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtobufMessage

_M = TypeVar("_M", bound="ProtobufMessage")

_MAX_SNIFFED_FIELDS: Final = 100
"""Fields that are looked through for the one that names the dialect. All known peers write fields
by ascending number, so that it is the first or the second; a longer search is work for nothing."""
_MAX_CLEANED_FIELDS: Final = 1_000
"""Fields that are looked through for those of number 0, entries of histories included."""
_LAST_TAG_OF_FIELD_0: Final = 7
"""Its tag with each wire type is 0 to 7; an overlong one stays, as nim-sds refuses it."""
_VARINT: Final = 0
_FIXED_64: Final = 1
_LENGTH_DELIMITED: Final = 2
_FIXED_32: Final = 5
_DELIMITED_TAGS: Final = frozenset(range(_LENGTH_DELIMITED, 0x80, 8))
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


class _Field(NamedTuple):
    number: int
    wire_type: int
    start: int
    value_start: int
    end: int


def field_2_is_varint(data: bytes) -> bool:
    """Return True if the first field 2 of a protobuf message is a number. In nim-sds the second
    field is the Lamport timestamp, and in the specification the message id."""
    try:
        # As good as always it comes right after a short field 1.
        if data[0] == 0x0A and data[1] < 0x80 and (tag := data[2 + data[1]]) in (0x10, 0x12):
            return tag == 0x10
        return _wire_type_of_field_2(data) == _VARINT
    except IndexError:
        return False


def first_field(data: bytes, tag: int) -> tuple[int, int] | None:
    """Return start and end of the first length-delimited field whose tag has one byte. Return None
    if there is no such field, or if a field before it is not a number."""
    at = 0
    try:
        for _ in range(_MAX_SNIFFED_FIELDS):
            found, value = data[at], data[at + 1]
            if found in _DELIMITED_TAGS:
                start, end = at, at + 2
                if value > 0x7F:
                    value, end = varint(data, at + 1)
                at = end + value
                if found == tag:
                    return start, at
            elif found & 7 == _VARINT and found < 0x80:
                at += 2
                if value > 0x7F:
                    _, at = varint(data, at - 1)
            else:
                break
    except IndexError:
        pass
    return None


def leading_values(data: bytes, tag: int, most: int) -> tuple[bytes, ...]:
    """Return the values of the leading length-delimited fields whose tag has one byte. Stop at an
    incomplete field, and after `most` values."""
    values, at = list[bytes](), 0
    try:
        while len(values) < most and data[at] == tag:
            length, start = varint(data, at + 1)
            at = start + length
            if at > len(data):
                break
            values.append(data[start:at])
    except IndexError:
        pass
    return tuple(values)


def parsed(kind: type[_M], data: bytes, nested: Collection[int] = ()) -> _M:
    """Parse a message as nim-sds does, which skips fields of number 0.

    Raises:
        DecodeError: it is not protobuf, even without such fields.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        try:
            cleaned = without_field_0(data, nested)
        except IndexError:
            cleaned = data
        if cleaned == data:
            raise
        return kind.FromString(cleaned)


def without_field_0(data: bytes, nested: Collection[int]) -> bytes:
    """Return the message without fields of number 0. Protobuf forbids fields of number 0, and
    nim-sds skips them.

    Messages in the fields `nested` are also returned without such fields.

    Raises:
        IndexError: the data end within a field, have a group, or have too many fields.
    """
    return _cleaned(data, nested, iter(range(_MAX_CLEANED_FIELDS)))


def _cleaned(data: bytes, nested: Collection[int], allowed: Iterator[int]) -> bytes:
    kept, at = bytearray(), 0
    while at < len(data):
        if next(allowed, None) is None:
            raise IndexError(f"the message has more than {_MAX_CLEANED_FIELDS} fields")
        field = _field(data, at)
        at = field.end
        if field.end > len(data):
            raise IndexError("the data of the message end within a field")
        if field.number in nested and field.wire_type == _LENGTH_DELIMITED:
            # Field numbers of entries have a tag of one byte.
            value = _cleaned(data[field.value_start : field.end], (), allowed)
            kept += data[field.start : field.start + 1] + VARINTS[len(value)] + value
        elif data[field.start] > _LAST_TAG_OF_FIELD_0:
            kept += data[field.start : field.end]
    return bytes(kept)


def _wire_type_of_field_2(data: bytes) -> int | None:
    at = 0
    for _ in range(_MAX_SNIFFED_FIELDS):
        tag, _ = varint(data, at)
        if tag >> 3 == 2:
            return tag & 7
        at = _field(data, at).end
    return None


def _field(data: bytes, start: int) -> _Field:
    """The field at `start`.

    Raises:
        IndexError: the data end before its value starts, or it is a group.
    """
    tag, value_start = varint(data, start)
    number, wire_type = tag >> 3, tag & 7
    if wire_type == _VARINT:
        _, end = varint(data, value_start)
    elif wire_type == _LENGTH_DELIMITED:
        length, value_start = varint(data, value_start)
        end = value_start + length
    elif wire_type in (_FIXED_32, _FIXED_64):
        end = value_start + (4 if wire_type == _FIXED_32 else 8)
    else:
        raise IndexError(f"the message has a field of the unknown wire type {wire_type}")
    return _Field(number, wire_type, start, value_start, end)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, and its end.

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
    raise IndexError("a number in the message has more than 10 bytes")


class _Varints(dict[int, bytes]):
    """Varints by their number. Those of one byte are kept, because most lengths have one."""

    def __missing__(self, number: int) -> bytes:
        written = bytearray()
        while number > 0x7F:
            written.append(number & 0x7F | 0x80)
            number >>= 7
        written.append(number)
        return bytes(written)


VARINTS: Final = _Varints({number: bytes([number]) for number in range(0x80)})
