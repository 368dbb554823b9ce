"""What holds for the codec of each dialect, and telling them apart."""

from contextlib import suppress
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import NIM, SPEC, HistoryEntry, Message, WireProfile
from reliable_channel.sds.dialects import Codec, CodecError
from reliable_channel.sds.dialects.codec import MAX_HISTORY_ENTRIES, MAX_ID_BYTES

from .test_nim import MESSAGES as NIM_MESSAGES
from .test_nim import REQUIRED
from .test_spec import MESSAGES as SPEC_MESSAGES
from .test_spec import field, text, varint

MESSAGES = {SPEC.name: SPEC_MESSAGES, NIM.name: NIM_MESSAGES}
DIALECTS = pytest.mark.parametrize("dialect", (SPEC, NIM), ids=lambda dialect: dialect.name)


# -- round trip ------------------------------------------------------------------------------------


@pytest.mark.conformance("SDS-WIRE-1", "SDS-WIRE-2", "SDS-WIRE-3")
@DIALECTS
@settings(derandomize=True)
@given(st.data())
def test_a_message_survives_the_wire(dialect: WireProfile, data: st.DataObject) -> None:
    message, codec = data.draw(MESSAGES[dialect.name]), dialect.codec
    decoded = codec.decode(codec.encode(message))
    assert decoded == message
    assert decoded.causal_ids == [entry.message_id for entry in message.causal_history]
    pieces = b"".join(map(codec.encode_causal_entry, message.causal_history))
    assert codec.assemble(message, pieces) == codec.encode(message)


@DIALECTS
@settings(derandomize=True)
@given(st.data(), st.integers(21, 2_000))
def test_unknown_fields_are_skipped(dialect: WireProfile, data: st.DataObject, number: int) -> None:
    message, codec = data.draw(MESSAGES[dialect.name]), dialect.codec
    encoded = codec.encode(message)
    for unknown in unknown_fields(number):
        assert codec.decode(unknown + encoded) == message
        assert codec.decode(encoded + unknown) == message


@DIALECTS
@pytest.mark.parametrize("name", ["sender_id", "message_id", "channel_id"])
def test_an_id_that_is_too_long_to_work_with_is_refused(dialect: WireProfile, name: str) -> None:
    def message(size: int) -> Message:
        sender_id, message_id, channel_id = (
            "x" * size if each == name else each
            for each in ("sender_id", "message_id", "channel_id")
        )
        return Message(sender_id, message_id, channel_id, 1_000, content=b"hi")

    longest = message(MAX_ID_BYTES)
    assert dialect.codec.decode(dialect.codec.encode(longest)) == longest
    with pytest.raises(CodecError, match=f"{name} is longer than {MAX_ID_BYTES}"):
        dialect.codec.decode(dialect.codec.encode(message(MAX_ID_BYTES + 1)))


@DIALECTS
def test_more_references_than_are_read_are_refused(dialect: WireProfile) -> None:
    history = [HistoryEntry(f"{n}") for n in range(MAX_HISTORY_ENTRIES + 1)]
    message = Message("alice", "m", "c", 1_000, history[:-1], content=b"hi")
    assert (
        len(dialect.codec.decode(dialect.codec.encode(message)).causal_history) == len(history) - 1
    )
    data = dialect.codec.encode(replace(message, causal_history=history))
    with pytest.raises(CodecError, match=f"reads at most {MAX_HISTORY_ENTRIES}"):
        dialect.codec.decode(data)


@DIALECTS
@settings(derandomize=True, max_examples=50)
@given(st.data())
def test_every_truncation_raises_codec_error_or_decodes(
    dialect: WireProfile, data: st.DataObject
) -> None:
    encoded = dialect.codec.encode(data.draw(MESSAGES[dialect.name]))
    for length in range(len(encoded)):
        with suppress(CodecError):
            dialect.codec.decode(encoded[:length])


@DIALECTS
@settings(derandomize=True, max_examples=100)
@given(st.data(), st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_raises_codec_error_or_decodes(
    dialect: WireProfile, data: st.DataObject, at: int, mask: int
) -> None:
    encoded = bytearray(dialect.codec.encode(data.draw(MESSAGES[dialect.name])))
    encoded[at % len(encoded)] ^= mask
    with suppress(CodecError):
        dialect.codec.encode(dialect.codec.decode(bytes(encoded)))


# -- telling apart ---------------------------------------------------------------------------------


def unknown_fields(number: int) -> tuple[bytes, ...]:
    return (
        field(number, 0, varint(2**63)),
        field(number, 1, bytes(8)),
        text(number, b"\x10\x01"),
        field(number, 5, bytes(4)),
    )


def recognised(data: bytes) -> list[str]:
    return [profile.name for profile in (SPEC, NIM) if profile.codec.recognises(data)]


@settings(derandomize=True, max_examples=150)
@given(SPEC_MESSAGES)
def test_a_message_of_the_specification_is_never_taken_for_nims(message: Message) -> None:
    assert recognised(SPEC.codec.encode(message)) == ["spec"]


@settings(derandomize=True, max_examples=150)
@given(NIM_MESSAGES)
def test_a_message_of_nim_is_never_taken_for_the_specifications(message: Message) -> None:
    assert recognised(NIM.codec.encode(message)) == ["nim"]


@settings(derandomize=True)
@given(
    SPEC_MESSAGES.map(SPEC.codec.encode) | NIM_MESSAGES.map(NIM.codec.encode),
    st.integers(21, 5_000),
)
def test_unknown_fields_before_it_change_nothing(encoded: bytes, number: int) -> None:
    for body in unknown_fields(number):
        assert recognised(body + encoded) == recognised(encoded)


def test_the_order_of_fields_changes_nothing() -> None:
    spec = [text(1, b"s"), text(2, b"m"), text(3, b"c"), field(10, 0, b"\x05"), text(20, b"x")]
    assert {name for p in permutations(spec) for name in recognised(b"".join(p))} == {"spec"}
    assert {name for p in permutations(REQUIRED) for name in recognised(b"".join(p))} == {"nim"}


@settings(derandomize=True, max_examples=100)
@given(NIM_MESSAGES, st.data())
def test_a_cut_message_of_nim_is_nims_as_soon_as_field_2_is_there(
    message: Message, data: st.DataObject
) -> None:
    encoded = NIM.codec.encode(message)
    head = len(text(1, encoded[2 : 2 + encoded[1]])) + 1
    cut = data.draw(st.integers(head, len(encoded)))
    assert recognised(encoded[:cut]) == ["nim"]


@pytest.mark.parametrize("data", [b"", b"\x80" * 20, b"\xff" * 20, b"\x0b\x10\x01", b"\x0a\x7f"])
def test_what_is_no_protobuf_is_left_to_the_default(data: bytes) -> None:
    assert recognised(data) == ["spec"]


def test_the_search_has_an_end() -> None:
    assert recognised(text(99, b"") * 99 + field(2, 0, b"\x05")) == ["nim"]
    assert recognised(text(99, b"") * 100 + field(2, 0, b"\x05")) == ["spec"]


@pytest.mark.parametrize("codec", [SPEC.codec, NIM.codec])
def test_a_long_search_costs_little(codec: Codec) -> None:
    assert codec.recognises(text(99, b"") * 300_000) is (codec is SPEC.codec)
