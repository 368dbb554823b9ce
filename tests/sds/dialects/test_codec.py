"""Telling the dialects apart."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import NIM, SPEC, Message
from reliable_channel.sds.dialects import Codec

from .test_nim import MESSAGES as NIM_MESSAGES
from .test_nim import REQUIRED
from .test_spec import MESSAGES as SPEC_MESSAGES
from .test_spec import field, text, varint


def recognised(data: bytes) -> list[str]:
    return [profile.name for profile in (SPEC, NIM) if profile.codec.recognises(data)]


@settings(derandomize=True, max_examples=400)
@given(SPEC_MESSAGES)
def test_a_message_of_the_specification_is_never_taken_for_nims(message: Message) -> None:
    assert recognised(SPEC.codec.encode(message)) == ["spec"]


@settings(derandomize=True, max_examples=400)
@given(NIM_MESSAGES)
def test_a_message_of_nim_is_never_taken_for_the_specifications(message: Message) -> None:
    assert recognised(NIM.codec.encode(message)) == ["nim"]


@settings(derandomize=True)
@given(
    SPEC_MESSAGES.map(SPEC.codec.encode) | NIM_MESSAGES.map(NIM.codec.encode),
    st.integers(21, 5_000),
)
def test_unknown_fields_before_it_change_nothing(encoded: bytes, number: int) -> None:
    for body in (
        field(number, 0, varint(2**63)),
        field(number, 1, bytes(8)),
        text(number, b"\x10\x01"),
        field(number, 5, bytes(4)),
    ):
        assert recognised(body + encoded) == recognised(encoded)


def test_the_order_of_fields_changes_nothing() -> None:
    spec = [text(1, b"s"), text(2, b"m"), text(3, b"c"), field(10, 0, b"\x05"), text(20, b"x")]
    assert {name for p in permutations(spec) for name in recognised(b"".join(p))} == {"spec"}
    assert {name for p in permutations(REQUIRED) for name in recognised(b"".join(p))} == {"nim"}


@settings(derandomize=True, max_examples=300)
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
