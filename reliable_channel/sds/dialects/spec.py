"""Wire format of the SDS specification, as js-waku uses it (LIP 109, Wire protocol).

Protobuf writes fields by ascending number, and a repeated field as consecutive entries. A message
may therefore be joined from encoded pieces. One `join` copies its causal history and bloom filter,
which are nearly all of it. Protobuf would copy them four times.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from google.protobuf.message import DecodeError

from ..message import (
    FINGERPRINT_BYTES,
    HistoryEntry,
    LazyHistory,
    ListedIds,
    LogRoot,
    Message,
    Reconciling,
)
from . import sds_pb2
from .codec import (
    MAX_MESSAGE_BYTES,
    VARINTS,
    CodecError,
    KnownEntries,
    check_counts,
    check_ids,
    field_2_is_varint,
    first_field,
    varint,
)

_MESSAGE_ID: Final = attrgetter("message_id")
_CAUSAL_ENTRY_TAG: Final = b"\x5a"  # field 11, and so on
_FILTER_TAG: Final = b"\x62"
_REQUEST_TAG: Final = b"\x6a"
_CONTENT_TAG: Final = b"\xa2\x01"
MAX_LAMPORT_TIMESTAMP: Final = 2**64 - 1


def _encoded(entry: HistoryEntry, tag: bytes = _CAUSAL_ENTRY_TAG) -> bytes:
    """One reference, as protobuf writes it, in less time."""
    message_id, hint, sender_id = entry.message_id.encode(), entry.retrieval_hint, entry.sender_id
    pieces = [b"\n", VARINTS[len(message_id)], message_id] if message_id else []
    if hint is not None:
        pieces += (b"\x12", VARINTS[len(hint)], hint)
    if sender_id is not None:
        sender = sender_id.encode()
        pieces += (b"\x1a", VARINTS[len(sender)], sender)
    value = b"".join(pieces)
    return b"".join((tag, VARINTS[len(value)], value))


class SpecCodec:
    """Stateless encoder and decoder of messages in the `spec` dialect."""

    encode_causal_entry = staticmethod(_encoded)
    """Encode one entry of a causal history, with its tag and length."""

    def recognises(self, data: bytes) -> bool:
        """Return True if field 2 of the message is absent or not a number."""
        return not field_2_is_varint(data)

    def decode(self, data: bytes, known: KnownEntries | None = None) -> Message:
        """Decode one message of the `spec` dialect. Causal history entries that are `known` need no
        decoding.

        Raises:
            CodecError: not protobuf, text that is not UTF-8, neither Lamport timestamp nor content,
                or a field beyond its limit.
        """
        known_ids: Sequence[str] = ()
        rest, words = data, None
        if (
            known is not None
            and len(data) <= MAX_MESSAGE_BYTES  # `parse` refuses a longer one
            and (place := first_field(data, _CAUSAL_ENTRY_TAG[0])) is not None
        ):
            known_ids, end = known.common(data, *place)
            words, end = _filter_at(data, end)
            rest = data[: place[0]] + data[end:]
        raw = self.parse(rest, len(known_ids))
        has = raw.HasField
        ids = [*known_ids, *map(_MESSAGE_ID, raw.causal_history)]

        def entry(place: int) -> HistoryEntry:
            if (later := place - len(known_ids)) >= 0:
                return _entry(raw.causal_history[later])
            return _entry(sds_pb2.Message.FromString(data).causal_history[place])

        return Message(
            raw.sender_id,
            raw.message_id,
            raw.channel_id,
            raw.lamport_timestamp if has("lamport_timestamp") else None,
            LazyHistory(ids, entry, known=len(known_ids)) if ids else (),
            raw.bloom_filter if has("bloom_filter") else words,
            tuple(map(_entry, raw.repair_request)) if raw.repair_request else (),
            raw.content if has("content") else None,
            raw.signature if has("signature") else None,
            _root(raw.log_root) if has("log_root") else None,
            _reconciling(raw.reconciling) if has("reconciling") else None,
        )

    def parse(self, data: bytes, known_entries: int = 0) -> sds_pb2.Message:
        """Return the parsed protobuf message, for code that needs a few of its fields. The first
        `known_entries` entries of the causal history are left out.

        Raises:
            CodecError: as `decode`.
        """
        if len(data) > MAX_MESSAGE_BYTES:
            raise CodecError(
                f"the message has {len(data)} bytes; the spec dialect decodes at most "
                f"{MAX_MESSAGE_BYTES}"
            )
        try:
            raw = sds_pb2.Message.FromString(data)
        except DecodeError as error:
            raise CodecError(f"the bytes are not an SDS message: {error}") from error
        check_counts(known_entries + len(raw.causal_history) + len(raw.repair_request))
        if not (raw.HasField("lamport_timestamp") or raw.content):
            raise CodecError(
                "the message has neither lamport_timestamp nor content, which no kind of SDS "
                "message allows"
            )
        check_ids(raw)
        return raw

    def encode(self, message: Message) -> bytes:
        """Encode a message as js-waku does, with its fields in ascending order.

        Raises:
            CodecError: a Lamport timestamp outside 0 to 2^64 - 1.
        """
        history = b"".join(map(self.encode_causal_entry, message.causal_history))
        return self.assemble(message, history)

    def assemble(
        self,
        message: Message,
        causal_history: bytes | memoryview,
        words: bytes | bytearray | None = None,
    ) -> bytes:
        """Encode `message` with a causal history that is already encoded, and with `words` as its
        bloom filter.

        Raises:
            CodecError: a Lamport timestamp outside 0 to 2^64 - 1.
        """
        lamport = message.lamport_timestamp
        if lamport is not None and not 0 <= lamport <= MAX_LAMPORT_TIMESTAMP:
            raise CodecError(f"lamport_timestamp {lamport} does not fit an unsigned 64-bit integer")
        head = sds_pb2.Message(
            sender_id=message.sender_id,
            message_id=message.message_id,
            channel_id=message.channel_id,
            lamport_timestamp=lamport,
        )
        pieces: list[bytes | bytearray | memoryview] = [head.SerializeToString(), causal_history]
        if words is None:
            words = message.bloom_filter
        if words is not None:
            pieces += (_FILTER_TAG, VARINTS[len(words)], words)
        for entry in message.repair_request:
            pieces.append(_encoded(entry, _REQUEST_TAG))
        if (content := message.content) is not None:
            pieces += (_CONTENT_TAG, VARINTS[len(content)], content)
        if message.log_root or message.reconciling or message.signature is not None:
            pieces.append(_extensions(message))
        return b"".join(pieces)


def _filter_at(data: bytes, at: int) -> tuple[bytes | None, int]:
    """The bloom filter that begins at a place, if one does, and where it ends."""
    try:
        if data[at] == _FILTER_TAG[0]:
            length, start = varint(data, at + 1)
            if (end := start + length) <= len(data):
                return data[start:end], end
    except IndexError:
        pass
    return None, at


def _entry(raw: sds_pb2.HistoryEntry) -> HistoryEntry:
    has = raw.HasField
    return HistoryEntry(
        raw.message_id,
        raw.retrieval_hint if has("retrieval_hint") else None,
        raw.sender_id if has("sender_id") else None,
    )


def _root(raw: sds_pb2.LogRoot) -> LogRoot | None:
    """A root; None where it is invalid, which is not a reason to refuse the rest."""
    if len(raw.fingerprint) != FINGERPRINT_BYTES:
        return None
    return LogRoot(raw.start, raw.end, raw.count, raw.fingerprint)


def _raw_root(root: LogRoot) -> sds_pb2.LogRoot:
    return sds_pb2.LogRoot(
        start=root.start, end=root.end, count=root.count, fingerprint=root.fingerprint
    )


def _reconciling(raw: sds_pb2.Reconciling) -> Reconciling:
    check_counts(len(raw.roots) + len(raw.lists) + len(raw.bundle))
    return Reconciling(
        tuple(root for each in raw.roots if (root := _root(each)) is not None),
        tuple(ListedIds(each.start, each.end, each.hashes) for each in raw.lists),
        tuple(raw.bundle),
        raw.packed,
    )


def _raw_reconciling(said: Reconciling) -> sds_pb2.Reconciling:
    return sds_pb2.Reconciling(
        roots=map(_raw_root, said.roots),
        lists=[
            sds_pb2.ListedIds(start=each.start, end=each.end, hashes=each.hashes)
            for each in said.lists
        ],
        bundle=said.bundle,
        packed=said.packed,
    )


def _extensions(message: Message) -> bytes:
    """The fields that the specification does not have."""
    root, reconciling = message.log_root, message.reconciling
    return sds_pb2.Message(
        log_root=None if root is None else _raw_root(root),
        reconciling=None if reconciling is None else _raw_reconciling(reconciling),
        signature=message.signature,
    ).SerializeToString()
