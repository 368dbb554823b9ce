"""Wire format of nim-sds (0.3.0, logos-messaging/nim-sds), with other field numbers than LIP 109.

This codec hides the differences of nim-sds. Lamport timestamps are seconds on the wire and
milliseconds in a `Message`. Message id, Lamport timestamp, channel id and content are required, and
written even if empty. An empty field counts as absent, so a sync message has empty content.
nim-sds has no ephemeral messages. Fields of number 0, which protobuf forbids, are skipped.

nim-sds accepts any bytes as an id. In this package an id is text, for the log, the journals and the
`spec` dialect. A byte that is not UTF-8 becomes a private-use character, and is encoded as that
byte again.

A bloom filter of nim-sds is a protobuf message that contains the size of the filter. Bits have the
same places as in js-waku, but in little-endian words, and use another hash. nim-sds makes a larger
filter when the first filter is full, so a reader takes the size from the filter.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError

from ..bloom import BloomFilterError, BloomForm, BloomLayout, BloomParameters, HashPair
from ..message import HistoryEntry, Message
from . import nim_sds_pb2
from .codec import VARINTS, CodecError, check_counts, check_ids, field_2_is_varint, parsed
from .farmhash import fingerprint64

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

MAX_CONTENT_BYTES: Final = 1024 * 1024
"""Maximum content length of a sent message in nim-sds (bytes). nim-sds limits only sent content."""
MAX_NIM_MESSAGE_BYTES: Final = 2 * MAX_CONTENT_BYTES
"""Maximum length of a message (bytes), which covers the largest content and all other fields. A
longer message is refused without decoding."""
MAX_LAMPORT_S: Final = 2**63 - 1
"""Maximum timestamp, because nim-sds reads a signed number. A larger timestamp ends the process of
every peer."""
_REQUIRED: Final = ("message_id", "lamport_timestamp", "channel_id", "content")
_ENTRIES: Final = (
    nim_sds_pb2.Message.CAUSAL_HISTORY_FIELD_NUMBER,
    nim_sds_pb2.Message.REPAIR_REQUEST_FIELD_NUMBER,
)
_WORDS_TAG: Final = bytes([nim_sds_pb2.BloomFilter.WORDS_FIELD_NUMBER << 3 | 2])
MAX_HASH_COUNT: Final = 64
"""Maximum number of hashes of a filter. An error rate of 10^-12 needs 40 hashes, and more hashes
only cost time."""
_ESCAPES: Final = 0x10FE00
"""Byte `b` stands as U+10FE00 + b, in the last private-use plane."""
_SURROGATES: Final = 0xDC00
"""Where Python's `surrogateescape` puts it."""
_ESCAPE: Final = {_SURROGATES + byte: _ESCAPES + byte for byte in range(0x80, 0x100)}
_UNESCAPE: Final = {after: before for before, after in _ESCAPE.items()}


def text(data: bytes) -> str:
    """Decode an id from bytes to text.

    Raises:
        ValueError: it holds the UTF-8 of a character that stands for a byte, so that two ids would
            become one.
    """
    try:
        decoded = data.decode()
    except UnicodeDecodeError:
        decoded = data.decode("utf-8", "surrogateescape")
    if decoded.isascii():
        return decoded
    escaped = decoded.translate(_ESCAPE)
    if raw(escaped) != data:
        raise ValueError("an id holds a private-use character from U+10FE80 to U+10FEFF")
    return escaped


def raw(text: str) -> bytes:
    """Encode an id from text to bytes."""
    if text.isascii():
        return text.encode()
    return text.translate(_UNESCAPE).encode("utf-8", "surrogateescape")


def string_hash(text: str) -> int:
    """Return Nim's `hash` of a string, as a signed 64-bit number."""
    fingerprint = fingerprint64(raw(text))
    return fingerprint - (1 << 64) if fingerprint >> 63 else fingerprint


def magnitude(number: int) -> int:
    """Return the absolute value as Nim computes it, without overflow checks. The lowest 64-bit
    number stays negative."""
    return number if number == -(1 << 63) else abs(number)


class NimBloomForm:
    """Bloom filters of nim-sds, with little-endian words and their parameters."""

    byte_flip = 0

    def hash_pair(self, message_id: str) -> HashPair:
        """Return the FarmHash values (64 bits) of a message id."""
        return magnitude(string_hash(message_id)), magnitude(string_hash(message_id + " b"))

    def write(self, parameters: BloomParameters, words: bytes) -> bytes:
        """Encode the words and the parameters of a filter."""
        # Joined, because each write of the state takes this form, and protobuf copies more slowly.
        rest = nim_sds_pb2.BloomFilter(
            capacity=parameters.capacity,
            error_rate_ppm=int(parameters.error_rate * 1_000_000),
            hash_count=parameters.hash_count,
            bit_count=parameters.bit_count,
        )
        return b"".join((_WORDS_TAG, VARINTS[len(words)], words, rest.SerializeToString()))

    def read(self, field: bytes, parameters: BloomParameters) -> tuple[BloomLayout, bytes]:
        """Return the layout and the words that a received filter contains.

        Raises:
            BloomFilterError: not protobuf, a field is absent, or sizes that do not fit each other.
        """
        try:
            raw = parsed(nim_sds_pb2.BloomFilter, field)
        except DecodeError as error:
            raise BloomFilterError(
                f"the bytes are not a bloom filter of nim-sds: {error}"
            ) from error
        if len(raw.ListFields()) < len(raw.DESCRIPTOR.fields):
            raise BloomFilterError("the bloom filter of nim-sds lacks a field")
        layout = BloomLayout(raw.bit_count, raw.hash_count, self)
        if not (
            0 < layout.bit_count
            and 0 < layout.hash_count <= MAX_HASH_COUNT
            and len(raw.words) == layout.byte_count
        ):
            raise BloomFilterError(
                f"the bloom filter of nim-sds has {len(raw.words)} bytes, which do not match its "
                f"{layout.bit_count} bits, or sets too many bits for each id ({layout.hash_count})"
            )
        return layout, raw.words


NIM_BLOOM: Final[BloomForm] = NimBloomForm()


class NimCodec:
    """Stateless encoder and decoder of messages in the `nim` dialect."""

    def recognises(self, data: bytes) -> bool:
        """Return True if field 2 of the message is a number."""
        return field_2_is_varint(data)

    def decode(self, data: bytes) -> Message:
        """Decode one message of the `nim` dialect.

        Raises:
            CodecError: not protobuf, a required field is absent, a Lamport timestamp of 2^63 or
                more, or a field beyond its limit.
        """
        if len(data) > MAX_NIM_MESSAGE_BYTES:
            raise CodecError(
                f"the message has {len(data)} bytes; the nim dialect decodes at most "
                f"{MAX_NIM_MESSAGE_BYTES}"
            )
        try:
            message = _message(parsed(nim_sds_pb2.Message, data, _ENTRIES))
        except CodecError:
            raise
        except (DecodeError, ValueError) as error:
            raise CodecError(f"the bytes are not a message of nim-sds: {error}") from error
        check_ids(message)
        return message

    def encode(self, message: Message) -> bytes:
        """Encode a message as nim-sds does, with its fields in ascending order.

        Raises:
            CodecError: an ephemeral message, or a Lamport timestamp other than a whole second from
                0 to 2^63 - 1.
        """
        causal_history = nim_sds_pb2.Message()
        _fill(causal_history.causal_history, message.causal_history)
        return self.assemble(message, causal_history.SerializeToString())

    def assemble(self, message: Message, causal_history: bytes) -> bytes:
        """Encode `message` with a causal history that is already encoded.

        Raises:
            CodecError: an ephemeral message, or a Lamport timestamp other than a whole second from
                0 to 2^63 - 1.
        """
        head = nim_sds_pb2.Message(
            message_id=raw(message.message_id),
            lamport_timestamp=_seconds(message.lamport_timestamp),
        )
        tail = nim_sds_pb2.Message(
            channel_id=raw(message.channel_id),
            content=message.content or b"",
            bloom_filter=message.bloom_filter or b"",
            sender_id=raw(message.sender_id) if message.sender_id else None,
            signature=message.signature,
        )
        _fill(tail.repair_request, message.repair_request)
        return head.SerializeToString() + causal_history + tail.SerializeToString()

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Encode one entry of a causal history, with its tag and length."""
        message = nim_sds_pb2.Message()
        _fill(message.causal_history, (entry,))
        return message.SerializeToString()


def _seconds(lamport_timestamp: int | None) -> int:
    if lamport_timestamp is None:
        raise CodecError("the message has no lamport_timestamp; nim-sds has no ephemeral messages")
    seconds, rest = divmod(lamport_timestamp, 1000)
    if rest or not 0 <= seconds <= MAX_LAMPORT_S:
        raise CodecError(
            f"lamport_timestamp {lamport_timestamp} ms must be a whole number of seconds from 0 "
            "to 2^63 - 1: nim-sds counts seconds"
        )
    return seconds


def _message(message: nim_sds_pb2.Message) -> Message:
    for name in _REQUIRED:
        if not message.HasField(name):
            raise CodecError(f"the field {name} is absent; nim-sds requires it")
    check_counts(len(message.causal_history) + len(message.repair_request))
    if message.lamport_timestamp > MAX_LAMPORT_S:
        raise CodecError(
            f"lamport_timestamp {message.lamport_timestamp} s is 2^63 or more; nim-sds allows less"
        )
    return Message(
        text(message.sender_id),
        text(message.message_id),
        text(message.channel_id),
        message.lamport_timestamp * 1000,
        tuple(map(_entry, message.causal_history)),
        message.bloom_filter or None,
        tuple(map(_entry, message.repair_request)),
        message.content or None,
        message.signature if message.HasField("signature") else None,
    )


def _entry(entry: nim_sds_pb2.HistoryEntry) -> HistoryEntry:
    if not entry.HasField("message_id"):
        raise CodecError("a history entry has no message_id, which nim-sds requires")
    return HistoryEntry(
        text(entry.message_id), entry.retrieval_hint or None, text(entry.sender_id) or None
    )


def _fill(
    target: "RepeatedCompositeFieldContainer[nim_sds_pb2.HistoryEntry]",
    entries: Iterable[HistoryEntry],
) -> None:
    for entry in entries:
        written = target.add()
        written.message_id = raw(entry.message_id)
        if entry.retrieval_hint:
            written.retrieval_hint = entry.retrieval_hint
        if entry.sender_id:
            written.sender_id = raw(entry.sender_id)
