"""The codec of the `nim` dialect. Golden bytes of nim-sds are in `tests/vectors`."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import HistoryEntry, Message, MessageKind
from reliable_channel.sds.bloom import (
    BloomFilter,
    BloomFilterError,
    BloomLayout,
    BloomParameters,
    RollingBloomFilter,
    remainder,
    spread,
)
from reliable_channel.sds.dialects import CodecError, NimCodec, nim_sds_pb2
from reliable_channel.sds.dialects.codec import MAX_HISTORY_ENTRIES, MAX_ID_BYTES
from reliable_channel.sds.dialects.nim import (
    MAX_HASH_COUNT,
    MAX_LAMPORT_S,
    MAX_NIM_MESSAGE_BYTES,
    NIM_BLOOM,
    magnitude,
    raw,
    string_hash,
)
from reliable_channel.sds.dialects.nim import text as shown

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


LOWEST = -(1 << 63)


@settings(derandomize=True, max_examples=200)
@given(st.binary(max_size=30) | st.text(st.characters(exclude_categories=["Cs"])).map(str.encode))
def test_any_bytes_become_text_that_anybody_may_write_and_those_bytes_again(data: bytes) -> None:
    try:
        read = shown(data)
    except ValueError:
        assert any(0x10FE80 <= ord(char) <= 0x10FEFF for char in data.decode(errors="replace"))
        return
    assert read.encode().decode() == read
    assert raw(read) == data


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"", ""),
        (b"m1", "m1"),
        ("é漢🙂".encode(), "é漢🙂"),
        (b"\xff\x80", "\U0010feff\U0010fe80"),
        (b"a\xc3", "a\U0010fec3"),
    ],
)
def test_a_byte_that_is_no_utf8_becomes_a_private_character(data: bytes, read: str) -> None:
    assert shown(data) == read
    assert raw(read) == data


def test_a_private_character_that_would_be_taken_for_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="private-use"):
        shown("\U0010fec3".encode())


def test_the_hash_is_signed_and_of_the_bytes() -> None:
    assert string_hash("m1") == -1652044978079387191
    assert string_hash(shown(b"\xff\x80")) != string_hash("ÿ\x80")


@pytest.mark.parametrize(
    ("number", "expected"), [(5, 5), (-5, 5), (LOWEST + 1, -LOWEST - 1), (LOWEST, LOWEST)]
)
def test_the_lowest_number_has_no_magnitude(number: int, expected: int) -> None:
    assert magnitude(number) == expected


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"), [(7, 3, 1), (-7, 3, -1), (LOWEST, 1000, -808), (-6, 3, 0)]
)
def test_a_remainder_has_the_sign_of_the_dividend(
    dividend: int, divisor: int, expected: int
) -> None:
    assert remainder(dividend, divisor) == expected


OWN = BloomParameters()


def filter_field(words: bytes = bytes(16), **changes: int) -> bytes:
    """A filter of 100 bits, but for what is named."""
    parts = {
        "capacity": 10,
        "error_rate_ppm": 10_000,
        "hash_count": 7,
        "bit_count": 100,
        **changes,
    }
    return nim_sds_pb2.BloomFilter(words=words, **parts).SerializeToString()


def test_the_default_filter_has_nim_sds_size() -> None:
    made = RollingBloomFilter(OWN, form=NIM_BLOOM)
    assert made.layout == BloomLayout(150_000, 10, NIM_BLOOM)
    assert len(bytes(made)) == 18_768


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    st.sets(st.text(st.characters(exclude_categories=["Cs"])), max_size=50),
    st.integers(1, 200),
    st.floats(0.0001, 0.5),
)
def test_what_was_inserted_is_found_by_who_knows_only_the_bytes(
    items: set[str], capacity: int, error_rate: float
) -> None:
    made = BloomFilter(BloomParameters(capacity, error_rate).layout_in(NIM_BLOOM))
    for item in items:
        made.insert(item)
    sent = NIM_BLOOM.write(BloomParameters(capacity, error_rate), bytes(made))
    layout, words = NIM_BLOOM.read(sent, OWN)
    assert layout == made.layout
    assert all(layout.holds(words, NIM_BLOOM.hash_pair(item)) for item in items)


@pytest.mark.parametrize("length", [0, 16, 200, 93_760])
def test_a_filter_is_written_as_protobuf_writes_it(length: int) -> None:
    words = Random(length).randbytes(length)
    assert NIM_BLOOM.write(BloomParameters(10, 0.01), words) == filter_field(words)


def test_a_rolling_filter_is_written_whole() -> None:
    parameters = BloomParameters(500, 1e-6)
    ids = [f"m{n}" for n in range(3_000)]
    rolling = RollingBloomFilter(parameters, ids, form=NIM_BLOOM)
    layout, words = NIM_BLOOM.read(bytes(rolling), OWN)
    assert all(layout.holds(words, NIM_BLOOM.hash_pair(i)) for i in ids[-len(rolling) :])
    assert not any(layout.holds(words, NIM_BLOOM.hash_pair(i)) for i in ids[: -len(rolling)])


def test_words_are_little_endian() -> None:
    made = BloomFilter(BloomLayout(128, 1, NIM_BLOOM))
    made.add((0, 0))
    made.add((65, 0))
    assert bytes(made).hex() == "01" + 7 * "00" + "02" + 15 * "00"
    assert made.layout.probes_of((65, 0)) == [(8, 2)]


def test_the_lowest_hash_lies_where_nim_puts_it() -> None:
    # |A + i*B| mod m with A = -(2^63 mod m): `abs` overflows there.
    assert spread((-(1 << 63), 5), 3, 100) == [8, 3, 2]


@pytest.mark.parametrize(
    "unreadable",
    [
        b"",
        b"\xff",
        bytes(18_752),
        filter_field(words=bytes(8)),
        filter_field(words=bytes(15)),
        filter_field(bit_count=0),
        filter_field(bit_count=128),
        filter_field(bit_count=2**64 - 1),
        filter_field(hash_count=0),
        filter_field(hash_count=MAX_HASH_COUNT + 1),
        filter_field(hash_count=2**64 - 1),
        filter_field()[:-2],
        filter_field()[18:],
    ],
)
def test_a_filter_that_does_not_fit_itself_is_refused(unreadable: bytes) -> None:
    NIM_BLOOM.read(filter_field(), OWN)
    with pytest.raises(BloomFilterError):
        NIM_BLOOM.read(unreadable, OWN)


def test_the_smallest_filter_is_one() -> None:
    layout, words = NIM_BLOOM.read(filter_field(bytes(8), bit_count=1, hash_count=1), OWN)
    assert (layout.bit_count, layout.hash_count, words) == (1, 1, bytes(8))
