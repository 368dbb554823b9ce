"""The layouts on the wire, and how they are told apart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.segmentation import (
    LAYOUTS,
    LIP_243_V01,
    NIM_SEGMENTATION,
    Segment,
    Segmenter,
    SegmentLayout,
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


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_layouts_are_told_apart_for_an_empty_payload(layout: SegmentLayout) -> None:
    (data,) = Segmenter(layout).split(b"")
    assert sniff(data) == layout.decode(data) is not None
    assert [other.decode(data) for other in LAYOUTS if other is not layout] == [None]


@pytest.mark.parametrize(
    "written",
    {
        "LIP 243 v0.2": f"0a20{H}" + "1001" + "1803" + "2a01aa" + "3001",
        "nim-segmentation of before": f"0a20{H}" + "1001" + "2003" + "3201aa",
    }.values(),
)
def test_other_layouts_are_refused_and_not_misread(written: str) -> None:
    assert sniff(bytes.fromhex(written)) is None


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


@settings(derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_can_be_sniffed(data: bytes) -> None:
    sniff(data)
    sniff(bytes.fromhex(f"0a20{H}") + data)


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
