"""The codec of the `nim` dialect. Golden bytes of nim-sds are in `tests/vectors`."""

import pytest
from hypothesis import strategies as st

from reliable_channel.sds import HistoryEntry, Message, MessageKind
from reliable_channel.sds.bloom import BloomParameters
from reliable_channel.sds.dialects import CodecError, NimCodec
from reliable_channel.sds.dialects.codec import MAX_HISTORY_ENTRIES, MAX_ID_BYTES
from reliable_channel.sds.dialects.nim import MAX_LAMPORT_S, MAX_NIM_MESSAGE_BYTES
from reliable_channel.sds.dialects.nim_bloom import NIM_BLOOM

from .test_spec import BLOB, TEXT, field, text, varint

CODEC = NimCodec()
SOME = BLOB.filter(bool)
ENTRIES = st.lists(
    st.builds(HistoryEntry, TEXT, st.none() | SOME, st.none() | TEXT.filter(bool)), max_size=5
).map(tuple)
MESSAGES = st.builds(
    Message,
    TEXT,
    TEXT,
    TEXT,
    lamport_timestamp=st.integers(0, MAX_LAMPORT_S).map(lambda seconds: seconds * 1000),
    causal_history=ENTRIES,
    bloom_filter=st.none() | SOME,
    repair_request=ENTRIES,
    content=st.none() | SOME,
)
PLAIN = Message("alice", "m1", "c", 5_000, content=b"hi")
REQUIRED = [text(1, b"m1"), field(2, 0, varint(5)), text(4, b"c"), text(5, b"hi")]
"""A message of required fields alone."""


# -- fields ----------------------------------------------------------------------------------------


def test_fields_are_numbered_as_nim_sds_does() -> None:
    message = Message(
        "s", "m", "c", 300_000, [HistoryEntry("a", b"h", "o")], b"b", [HistoryEntry("r")], b"x"
    )
    entry = text(1, b"a") + text(2, b"h") + text(3, b"o")
    assert CODEC.encode(message) == b"".join(
        [
            text(1, b"m"),
            field(2, 0, varint(300)),
            text(3, entry),
            text(4, b"c"),
            text(5, b"x"),
            text(6, b"b"),
            text(7, b"s"),
            text(13, text(1, b"r")),
        ]
    )


def test_empty_fields_are_written_but_for_the_sender() -> None:
    written = text(1, b"") + field(2, 0, varint(0)) + text(4, b"") + text(5, b"") + text(6, b"")
    assert CODEC.encode(Message("", "", "", 0)) == written


def test_a_sync_message_has_empty_content() -> None:
    data = CODEC.encode(Message("s", "m", "c", 1_000))
    assert text(5, b"") in data
    assert CODEC.decode(data).kind is MessageKind.SYNC


@pytest.mark.parametrize("message_id", [b"\xff\x80", b"a\x00\xc3", "é".encode()])
def test_ids_are_bytes(message_id: bytes) -> None:
    data = b"".join([text(1, message_id), *REQUIRED[1:], text(6, b""), text(7, message_id)])
    assert CODEC.encode(CODEC.decode(data)) == data


# -- what else may be on the wire ------------------------------------------------------------------


@pytest.mark.parametrize("absent", range(4))
def test_each_required_field_is_required(absent: int) -> None:
    assert CODEC.decode(b"".join(REQUIRED)) == Message("", "m1", "c", 5_000, content=b"hi")
    with pytest.raises(CodecError, match="is absent"):
        CODEC.decode(b"".join(part for i, part in enumerate(REQUIRED) if i != absent))


@pytest.mark.parametrize("number", [3, 13])
def test_a_history_entry_needs_an_id(number: int) -> None:
    head = CODEC.encode(PLAIN)
    CODEC.decode(head + text(number, text(1, b"")))
    with pytest.raises(CodecError, match="no message_id"):
        CODEC.decode(head + text(number, text(2, b"hint")))


FIELDS_0 = [b"\x00\x05", b"\x01" + bytes(8), b"\x02\x01?", b"\x05" + bytes(4)]
"""Fields of number 0 in each wire type but groups."""


@pytest.mark.parametrize("field_0", FIELDS_0, ids=bytes.hex)
def test_fields_of_number_0_are_skipped_wherever_they_stand(field_0: bytes) -> None:
    history, requests = (HistoryEntry("a" * 200),), (HistoryEntry("r"),)
    message = Message("s", "m", "c", 5_000, history, None, requests, b"x")
    head = text(1, b"m") + field(2, 0, varint(5)) + text(4, b"c") + text(5, b"x") + text(7, b"s")
    entries = [(3, text(1, b"a" * 200)), (13, text(1, b"r"))]
    plain = head + b"".join(text(number, entry) for number, entry in entries)
    nested = head + b"".join(text(number, entry + field_0) for number, entry in entries)
    for data in (field_0 + plain, plain + field_0, nested, field_0 + nested + field_0):
        assert CODEC.recognises(data)
        assert CODEC.decode(data) == message


def test_a_filter_with_a_field_of_number_0_is_read() -> None:
    parameters = BloomParameters(20, 0.01)
    written = NIM_BLOOM.write(parameters, bytes(parameters.layout_in(NIM_BLOOM).byte_count))
    assert NIM_BLOOM.read(b"\x00\x01" + written, parameters) == NIM_BLOOM.read(written, parameters)


@pytest.mark.parametrize(
    "bad", [b"\x03\x04", b"\x80\x00\x05", b"\x00", b"\x02\x09?", b"\x00\x01" * 1_001], ids=len
)
def test_groups_and_overlong_tags_and_cut_or_endless_fields_of_number_0_are_refused(
    bad: bytes,
) -> None:
    with pytest.raises(CodecError):
        CODEC.decode(b"".join(REQUIRED) + bad)


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lamport", [2**63, 2**64 - 1])
def test_a_lamport_timestamp_that_ends_nims_process_is_refused(lamport: int) -> None:
    data = b"".join([REQUIRED[0], field(2, 0, varint(lamport)), *REQUIRED[2:]])
    with pytest.raises(CodecError, match="2\\^63 or more"):
        CODEC.decode(data)
    with pytest.raises(CodecError, match="must be a whole number of seconds"):
        CODEC.encode(Message("s", "m", "c", lamport * 1000, content=b"x"))


@pytest.mark.parametrize("lamport", [-1, -1_000, 1, 1_999])
def test_a_lamport_timestamp_is_a_whole_second(lamport: int) -> None:
    with pytest.raises(CodecError, match=f"lamport_timestamp {lamport} ms"):
        CODEC.encode(Message("s", "m", "c", lamport, content=b"x"))


def test_an_ephemeral_message_cannot_be_written() -> None:
    with pytest.raises(CodecError, match="no ephemeral messages"):
        CODEC.encode(Message("s", "m", "c", content=b"x"))


def test_too_long_a_message_is_not_decoded() -> None:
    with pytest.raises(CodecError, match="decodes at most 2097152"):
        CODEC.decode(bytes(MAX_NIM_MESSAGE_BYTES + 1))


def test_as_long_a_message_as_allowed_is_read() -> None:
    plain = CODEC.encode(PLAIN)
    room = MAX_NIM_MESSAGE_BYTES - len(plain)
    padded = plain + text(99, bytes(room - len(text(99, bytes(room))) + room))
    assert len(padded) == MAX_NIM_MESSAGE_BYTES
    assert CODEC.decode(padded) == PLAIN


def test_a_mebibyte_of_content_is_taken() -> None:
    message = Message("s", "m", "c", 1_000, content=bytes(1024 * 1024))
    assert CODEC.decode(CODEC.encode(message)) == message


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(CodecError, match="10001 history entries"):
        CODEC.decode(CODEC.encode(PLAIN) + text(3, text(1, b"")) * (MAX_HISTORY_ENTRIES + 1))


@pytest.mark.parametrize(
    ("number", "name"), [(1, "message_id"), (4, "channel_id"), (7, "sender_id")]
)
def test_too_long_an_id_is_refused(number: int, name: str) -> None:
    head = CODEC.encode(PLAIN)
    CODEC.decode(head + text(number, b"x" * MAX_ID_BYTES))
    with pytest.raises(CodecError, match=f"{name} is longer than 1024"):
        CODEC.decode(head + text(number, b"x" * (MAX_ID_BYTES + 1)))


def test_an_id_that_cannot_be_told_from_bytes_is_refused() -> None:
    with pytest.raises(CodecError, match="private-use"):
        CODEC.decode(b"".join([text(1, "\U0010fec3".encode()), *REQUIRED[1:]]))
