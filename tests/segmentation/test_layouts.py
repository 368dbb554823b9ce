"""The layouts on the wire, and how they are told apart."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.segmentation import (
    EARLY_NIM_SEGMENTATION,
    LAYOUTS,
    LIP_243_V01,
    LIP_243_V02,
    NIM_SEGMENTATION,
    Segment,
    Segmenter,
    SegmentLayout,
    payload_hash,
    recognised,
    sniff,
)

HASH = bytes(range(32))
H = HASH.hex()

# Byte for byte those of nim-segmentation's own tests.
GOLDEN = {
    "data": (
        f"0a20{H}10f403180120033a03aabbcc",
        Segment(HASH, 500, 1, 3, 0, False, bytes.fromhex("aabbcc")),
    ),
    "parity": (
        f"0a20{H}10f4032003280130013a021122",
        Segment(HASH, 500, 0, 3, 1, True, bytes.fromhex("1122")),
    ),
    "minimal": (f"0a20{H}2001", Segment(HASH, 0, 0, 1, 0, False, b"")),
}

# The layouts with one count, by hand: hash, length, index and count of GOLDEN's data, and payload.
ONE_COUNT = {
    "early-nim-segmentation": (f"0a20{H}" + "10f403" + "1801" + "2003", "3203aabbcc"),
    "lip-243-v0.2": (f"0a20{H}" + "1001" + "1803", "2a03aabbcc" + "30f403"),
}

COUNTS = st.integers(1, 2**32 - 1)
NIM_SEGMENTS = st.builds(
    Segment,
    st.binary(min_size=32, max_size=32),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    COUNTS,
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.binary(max_size=300),
)
V01_SEGMENTS = st.builds(
    Segment,
    st.binary(min_size=32, max_size=32),
    st.none(),
    st.integers(0, 2**32 - 1),
    COUNTS,
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.binary(max_size=300),
)


@pytest.mark.parametrize("name", GOLDEN)
def test_nim_segmentation_is_written_and_read_byte_for_byte(name: str) -> None:
    written, segment = GOLDEN[name]
    assert NIM_SEGMENTATION.encode(segment).hex() == written
    assert NIM_SEGMENTATION.decode(bytes.fromhex(written)) == segment


def test_lip_243_v01_has_the_field_numbers_of_the_specification() -> None:
    data = Segment(HASH, None, 1, 3, 2, False, b"\xaa")
    parity = Segment(HASH, None, 1, 3, 2, True, b"\xbb")
    assert LIP_243_V01.encode(data).hex() == f"0a20{H}" + "1001" + "1803" + "2201aa" + "3002"
    assert (
        LIP_243_V01.encode(parity).hex()
        == f"0a20{H}" + "1803" + "2201bb" + "2801" + "3002" + "3801"
    )


@settings(derandomize=True)
@given(NIM_SEGMENTS)
def test_a_segment_of_nim_segmentation_survives_the_wire_and_is_no_other(segment: Segment) -> None:
    data = NIM_SEGMENTATION.encode(segment)
    assert sniff(data) == NIM_SEGMENTATION.decode(data) == segment
    assert LIP_243_V01.decode(data) is None


@settings(derandomize=True)
@given(V01_SEGMENTS)
def test_a_segment_of_v01_survives_the_wire_and_is_no_other(segment: Segment) -> None:
    data = LIP_243_V01.encode(segment)
    assert sniff(data) == LIP_243_V01.decode(data) == segment
    assert NIM_SEGMENTATION.decode(data) is None


@pytest.mark.parametrize("layout", [NIM_SEGMENTATION, LIP_243_V01], ids=lambda each: each.name)
def test_layouts_are_told_apart_for_an_empty_payload(layout: SegmentLayout) -> None:
    (data,) = Segmenter(layout).split(b"")
    assert sniff(data) == layout.decode(data) is not None
    assert [other.decode(data) for other in LAYOUTS if other is not layout] == [None] * 3


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: each.name)
def test_an_empty_payload_is_empty_in_each_layout(layout: SegmentLayout) -> None:
    (data,) = Segmenter(layout).split(b"")
    segment = sniff(data)
    assert segment is not None
    assert (segment.original_payload_hash, segment.payload) == (payload_hash(b""), b"")
    assert (segment.index, segment.data_segment_count, segment.is_parity) == (0, 1, False)


@pytest.mark.parametrize(
    "layout", [LIP_243_V02, EARLY_NIM_SEGMENTATION], ids=lambda each: each.name
)
def test_layouts_with_one_count_have_the_fields_that_were_published(layout: SegmentLayout) -> None:
    first, last = ONE_COUNT[layout.name]
    segment = Segment(HASH, 500, 1, 3, 0, False, bytes.fromhex("aabbcc"))
    assert layout.encode(segment).hex() == first + last
    assert layout.decode(bytes.fromhex(first + last)) == segment
    parity = Segment(HASH, 2, 1, 0, 3, True, bytes.fromhex("aabbcc"))
    marked = "2001" if layout is LIP_243_V02 else "2801"
    assert layout.encode(parity).hex() == first.replace("10f403", "1002") + marked + last.replace(
        "30f403", "3002"
    )
    assert sniff(layout.encode(parity)) == parity


@st.composite
def sound(draw: st.DrawFn) -> Segment:
    """A segment that a sender may write: its place, its counts and its sizes agree."""
    count, chunk = draw(st.integers(1, 2**16)), draw(st.binary(min_size=1, max_size=300))
    others = draw(st.integers(count - 1, 2**40)) if count > 1 else 0
    return Segment(
        draw(st.binary(min_size=32, max_size=32)),
        len(chunk) + others,
        draw(st.integers(0, count - 1)),
        count,
        0,
        False,
        chunk,
    )


@settings(derandomize=True)
@given(sound(), st.sampled_from(LAYOUTS))
def test_a_segment_is_read_in_its_layout_alone(segment: Segment, layout: SegmentLayout) -> None:
    data = layout.encode(segment)
    if layout is LIP_243_V01:  # it does not say
        segment = replace(segment, original_payload_length=None)
    assert recognised(data) == (segment, layout)
    assert [other.decode(data) for other in LAYOUTS if other is not layout] == [None] * 3


FIELDS = st.tuples(st.integers(1, 9), st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=64)))


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def protobuf(fields: list[tuple[int, int | bytes]]) -> bytes:
    return b"".join(
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
        for number, value in fields
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@settings(derandomize=True)
@given(
    st.one_of(
        st.text().map(str.encode),
        JSON.map(lambda value: json.dumps(value).encode()),
        st.lists(FIELDS, max_size=8).map(protobuf),
    )
)
def test_a_bare_payload_is_no_segment_and_a_wrapped_one_always_is(payload: bytes) -> None:
    assert sniff(payload) is None
    for layout in LAYOUTS:
        (data,) = Segmenter(layout).split(payload)
        segment = sniff(data)
        assert segment is not None
        assert segment.payload == payload


@pytest.mark.parametrize(
    "fields",
    {
        "a place beyond the count": [(2, 3), (3, 3), (5, b"body"), (6, 9)],
        "no count": [(5, b"body"), (6, 4)],
        "a payload longer than the whole": [(3, 1), (5, b"body"), (6, 3)],
        "more segments than bytes": [(3, 7), (5, b"body"), (6, 9)],
        "early: a place beyond the count": [(2, 9), (3, 3), (4, 3), (6, b"body")],
        "early: a payload longer than the whole": [(2, 3), (4, 1), (6, b"body")],
    }.values(),
)
def test_a_payload_with_an_id_in_front_is_no_segment_of_a_rare_layout(
    fields: list[tuple[int, int | bytes]],
) -> None:
    assert sniff(protobuf([(1, HASH), *fields])) is None


@pytest.mark.parametrize(
    "data",
    {
        "nothing": b"",
        "text": b"a plain message",
        "truncated": bytes.fromhex(GOLDEN["data"][0])[:-1],
        "no count": bytes.fromhex(f"0a20{H}"),
        "no hash": bytes.fromhex("2001"),
        "short hash": bytes.fromhex("0a1f" + H[2:] + "2001"),
        "long hash": bytes.fromhex("0a21" + H + "ff" + "2001"),
        "two payloads": bytes.fromhex(f"0a20{H}" + "1803" + "2201aa" + "3a01bb"),
    }.values(),
)
def test_what_is_no_segment_is_none(data: bytes) -> None:
    assert sniff(data) is None


def test_fields_of_later_versions_are_ignored() -> None:
    written, segment = GOLDEN["data"]
    assert sniff(bytes.fromhex(written + "4201aa")) == segment


def test_a_count_beyond_32_bits_is_not_cut_to_a_valid_one() -> None:
    count = 2**32 + 5
    data = NIM_SEGMENTATION.encode(Segment(HASH, 9, 0, count, 0, False, b"x"))
    segment = sniff(data)
    assert segment is not None and segment.data_segment_count == count


def test_nim_segmentation_cannot_leave_out_the_length() -> None:
    with pytest.raises(ValueError, match="needs the length"):
        NIM_SEGMENTATION.encode(Segment(HASH, None, 0, 1, 0, False, b"x"))
