"""The codec of the `spec` dialect. Golden bytes of js-waku are in `tests/vectors`."""

import re
from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import HistoryEntry, Message, MessageKind
from reliable_channel.sds.dialects import CodecError, SpecCodec
from reliable_channel.sds.dialects.codec import MAX_HISTORY_ENTRIES, MAX_ID_BYTES, MAX_MESSAGE_BYTES
from reliable_channel.sds.dialects.spec import MAX_LAMPORT_TIMESTAMP
from reliable_channel.sds.log.log import MessageLog
from reliable_channel.sds.message import LazyHistory, ListedIds, LogEntry, LogRoot, Reconciling
from reliable_channel.sds.references.causal_history import CausalTail

CODEC = SpecCodec()
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BLOB = st.binary(max_size=40)
ENTRIES = st.lists(
    st.builds(HistoryEntry, TEXT, st.none() | BLOB, st.none() | TEXT), max_size=5
).map(tuple)
NUMBERS = st.integers(0, 2**64 - 1)
ROOTS = st.builds(LogRoot, NUMBERS, NUMBERS, NUMBERS, st.binary(min_size=16, max_size=16))
LISTS = st.builds(ListedIds, NUMBERS, NUMBERS, BLOB)
RECONCILING = st.builds(
    Reconciling,
    *(st.lists(each, max_size=3).map(tuple) for each in (ROOTS, LISTS, BLOB)),
)
LAMPORTS = st.integers(0, MAX_LAMPORT_TIMESTAMP)
MESSAGES = st.builds(
    Message,
    TEXT,
    TEXT,
    TEXT,
    lamport_timestamp=st.none() | LAMPORTS,
    causal_history=ENTRIES,
    bloom_filter=st.none() | BLOB,
    repair_request=ENTRIES,
    content=st.none() | BLOB,
    reconciling=st.none() | RECONCILING,
).filter(lambda message: message.kind is not None)


def field(number: int, wire_type: int, body: bytes) -> bytes:
    """One protobuf field, by hand."""
    return varint(number << 3 | wire_type) + body


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def text(number: int, value: bytes) -> bytes:
    return field(number, 2, varint(len(value)) + value)


PLAIN = Message("alice", "m1", "c", 5, content=b"hi")


def known(entries: Collection[HistoryEntry]) -> CausalTail:
    """The tail of a log with these entries."""
    log = MessageLog(100)
    for number, entry in enumerate(entries):
        sender_id = entry.sender_id or ""
        log.insert(LogEntry(entry.message_id, sender_id, number, b"", entry.retrieval_hint))
    return CausalTail(log, 100, 10_000, CODEC.encode_causal_entry)


# -- fields ----------------------------------------------------------------------------------------


@settings(derandomize=True, max_examples=100)
@given(MESSAGES, st.data(), st.binary(max_size=20))
def test_what_is_known_of_a_history_changes_nothing(
    message: Message, data: st.DataObject, behind: bytes
) -> None:
    ours = [e for e in message.causal_history if data.draw(st.booleans())]
    tail = known({e.message_id: e for e in ours if e.sender_id is not None}.values())
    for encoded in (CODEC.encode(message), CODEC.encode(message) + behind):
        try:
            plain = CODEC.decode(encoded)
        except CodecError as error:
            with pytest.raises(CodecError, match=re.escape(str(error)[:20])):
                CODEC.decode(encoded, tail)
        else:
            assert CODEC.decode(encoded, tail) == plain
            assert list(CODEC.decode(encoded, tail).causal_ids) == list(plain.causal_ids)


def test_a_known_history_is_not_decoded() -> None:
    history = tuple(HistoryEntry(f"m{i}", b"hint", "alice") for i in range(50))
    message = replace(PLAIN, causal_history=(*history, HistoryEntry("new")))
    decoded = CODEC.decode(CODEC.encode(message), known(history))
    assert isinstance(decoded.causal_history, LazyHistory)
    assert decoded.causal_history.known == 50
    assert decoded == message


def test_a_filter_behind_a_known_history_is_read_as_any_other() -> None:
    history = tuple(HistoryEntry(f"m{i}", b"hint", "alice") for i in range(3))
    tail = known(history)
    data = CODEC.encode(replace(PLAIN, causal_history=history, bloom_filter=bytes(200)))
    assert CODEC.decode(data, tail).bloom_filter == bytes(200)
    assert CODEC.decode(data + text(12, b"last"), tail).bloom_filter == b"last"
    for end in range(len(data) - 207, len(data) - 5):
        with pytest.raises(CodecError):
            CODEC.decode(data[:end], tail)


def test_fields_are_numbered_as_the_specification_says() -> None:
    message = Message(
        "s", "m", "c", 300, [HistoryEntry("a", b"h", "o")], b"b", [HistoryEntry("r")], b"x"
    )
    entry = text(1, b"a") + text(2, b"h") + text(3, b"o")
    assert CODEC.encode(message) == b"".join(
        [
            text(1, b"s"),
            text(2, b"m"),
            text(3, b"c"),
            field(10, 0, varint(300)),
            text(11, entry),
            text(12, b"b"),
            text(13, text(1, b"r")),
            text(20, b"x"),
        ]
    )


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Message("s", "m", "c", 0, content=b"x"), MessageKind.CONTENT),
        (Message("s", "m", "c", 0), MessageKind.SYNC),
        (Message("s", "m", "c", 0, content=b""), MessageKind.SYNC),
        (Message("s", "m", "c", content=b"x"), MessageKind.EPHEMERAL),
    ],
)
def test_absent_and_empty_are_not_the_same(message: Message, kind: MessageKind) -> None:
    decoded = CODEC.decode(CODEC.encode(message))
    assert decoded == message
    assert decoded.kind is kind


# -- what else may be on the wire ------------------------------------------------------------------


def test_the_last_of_a_repeated_field_counts() -> None:
    assert CODEC.decode(CODEC.encode(PLAIN) + text(1, b"bob")).sender_id == "bob"


def test_fields_may_come_in_any_order() -> None:
    data = text(20, b"hi") + field(10, 0, varint(5)) + text(3, b"c") + text(2, b"m1")
    assert CODEC.decode(data + text(1, b"alice")) == PLAIN


def test_a_message_cut_inside_its_content_is_refused() -> None:
    encoded = CODEC.encode(PLAIN)
    with pytest.raises(CodecError, match="not an SDS message"):
        CODEC.decode(encoded[:-1])


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", text(1, b"s") + text(2, b"m"), text(20, b"")])
def test_neither_lamport_nor_content_is_no_message(data: bytes) -> None:
    with pytest.raises(CodecError, match="no kind of SDS message"):
        CODEC.decode(data)


def test_too_long_a_message_is_not_decoded() -> None:
    with pytest.raises(CodecError, match="decodes at most 1048576"):
        CODEC.decode(bytes(MAX_MESSAGE_BYTES + 1))


@pytest.mark.parametrize("number", [11, 13])
def test_too_many_entries_are_refused(number: int) -> None:
    head = CODEC.encode(PLAIN)
    CODEC.decode(head + text(number, b"") * MAX_HISTORY_ENTRIES)
    with pytest.raises(CodecError, match="10001 history entries"):
        CODEC.decode(head + text(number, b"") * (MAX_HISTORY_ENTRIES + 1))


@pytest.mark.parametrize(
    ("number", "name"), [(1, "sender_id"), (2, "message_id"), (3, "channel_id")]
)
def test_too_long_an_id_is_refused(number: int, name: str) -> None:
    head = CODEC.encode(PLAIN)
    CODEC.decode(head + text(number, b"x" * MAX_ID_BYTES))
    with pytest.raises(CodecError, match=f"{name} is longer than 1024"):
        CODEC.decode(head + text(number, b"x" * (MAX_ID_BYTES + 1)))


@pytest.mark.parametrize("lamport", [-1, MAX_LAMPORT_TIMESTAMP + 1])
def test_a_lamport_timestamp_beyond_64_bits_cannot_be_written(lamport: int) -> None:
    with pytest.raises(CodecError, match=f"lamport_timestamp {lamport} does not fit"):
        CODEC.encode(Message("s", "m", "c", lamport))
