"""Splitting payloads."""

import random

import pytest

from reliable_channel.segmentation import (
    LAYOUTS,
    LIP_243_V01,
    NIM_SEGMENTATION,
    PayloadTooLarge,
    Segment,
    Segmenter,
    SegmentLayout,
    payload_hash,
    sniff,
)

PAYLOAD = random.Random(1).randbytes(306_817)

any_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


def segments_of(segmenter: Segmenter, payload: bytes) -> list[Segment]:
    decoded = [sniff(data) for data in segmenter.split(payload)]
    return [segment for segment in decoded if segment is not None]


def test_the_payload_of_logos_delivery_s_test_makes_four_segments() -> None:
    segmenter = Segmenter(NIM_SEGMENTATION)
    sizes = [len(segment.payload) for segment in segments_of(segmenter, PAYLOAD)]
    assert segmenter.chunk_size_bytes == 102_272
    assert sizes == [102_272, 102_272, 102_272, 1]


def test_v01_fills_its_segments_with_payload() -> None:
    sizes = [len(segment.payload) for segment in segments_of(Segmenter(LIP_243_V01), PAYLOAD)]
    assert sizes == [102_400, 102_400, 102_017]


@any_layout
def test_every_segment_tells_the_whole(layout: SegmentLayout) -> None:
    segments = segments_of(Segmenter(layout, segment_size_bytes=10_240), PAYLOAD)
    assert b"".join(segment.payload for segment in segments) == PAYLOAD
    assert [segment.index for segment in segments] == list(range(len(segments)))
    length = None if layout is LIP_243_V01 else len(PAYLOAD)
    digest = payload_hash(PAYLOAD)
    for segment in segments:
        assert segment.original_payload_hash == digest
        assert segment.original_payload_length == length
        assert segment.data_segment_count == len(segments)
        assert (segment.parity_segment_count, segment.is_parity) == (0, False)


def test_the_hash_is_keccak_and_not_sha3() -> None:
    empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert payload_hash(b"").hex() == empty


@any_layout
@pytest.mark.parametrize("chunks", [0, 1, 2, 3])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_sizes_around_whole_chunks(layout: SegmentLayout, chunks: int, more: int) -> None:
    segmenter = Segmenter(layout, segment_size_bytes=256)
    size_bytes = max(0, chunks * segmenter.chunk_size_bytes + more)
    segments = segments_of(segmenter, PAYLOAD[:size_bytes])
    assert len(segments) == segmenter.count(size_bytes) == max(1, chunks + (more > 0))
    assert b"".join(segment.payload for segment in segments) == PAYLOAD[:size_bytes]
    assert size_bytes == 0 or all(segment.payload for segment in segments)


def test_the_segment_size_bounds_the_encoded_segment_of_nim_segmentation() -> None:
    for segment_size_bytes in (192, 256, 1_000, 102_400):
        segmenter = Segmenter(
            NIM_SEGMENTATION, segment_size_bytes=segment_size_bytes, max_total_segments=65_536
        )
        assert max(map(len, segmenter.split(PAYLOAD))) <= segment_size_bytes


@any_layout
def test_the_largest_payload_is_taken_and_a_byte_more_refused(layout: SegmentLayout) -> None:
    segmenter = Segmenter(layout, segment_size_bytes=192, max_total_segments=8)
    largest = segmenter.max_payload_bytes
    segments = len(segmenter.split(PAYLOAD[:largest]))
    assert segments == (7 if layout is LIP_243_V01 else 8)
    with pytest.raises(
        PayloadTooLarge, match=rf"{largest + 1} bytes .* is {largest} bytes"
    ) as info:
        segmenter.split(PAYLOAD[: largest + 1])
    assert info.value.max_payload_bytes == largest
    assert info.value.size_bytes == largest + 1


@any_layout
def test_ten_megabytes_are_within_the_defaults(layout: SegmentLayout) -> None:
    assert Segmenter(layout).max_payload_bytes > 10 * 1024 * 1024


@pytest.mark.parametrize(
    ("layout", "segment_size_bytes", "max_total_segments", "told"),
    [
        (NIM_SEGMENTATION, 191, 256, "at least 192"),
        (LIP_243_V01, 0, 256, "at least 1"),
        (NIM_SEGMENTATION, 192, 0, "allows 1 to 65536"),
        (LIP_243_V01, 192, 1, "allows 2 to 65536"),
        (NIM_SEGMENTATION, 192, 65_537, "allows 1 to 65536"),
    ],
)
def test_options_are_checked(
    layout: SegmentLayout, segment_size_bytes: int, max_total_segments: int, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        Segmenter(
            layout, segment_size_bytes=segment_size_bytes, max_total_segments=max_total_segments
        )
