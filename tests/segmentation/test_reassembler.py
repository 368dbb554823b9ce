"""Putting payloads together again: order, repeats, loss, contradictions, expiry."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.segmentation import (
    LAYOUTS,
    LIP_243_V01,
    NIM_SEGMENTATION,
    DiscardReason,
    PayloadReassembled,
    Reassembler,
    ReassemblyLimits,
    Segment,
    Segmenter,
    SegmentLayout,
    SegmentOutcome,
    SegmentProgress,
    SegmentRefused,
    SegmentSetDropped,
    SetDropReason,
    payload_hash,
    sniff,
)
from tests.hostile.cost import calls, peak_bytes

NOW_MS = 1_000_000
TIMEOUT_MS = ReassemblyLimits().reconstruction_timeout_ms
PAYLOAD = random.Random(2).randbytes(300)
DIGEST = payload_hash(PAYLOAD)

any_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


def segments_of(payload: bytes, layout: SegmentLayout = NIM_SEGMENTATION) -> list[Segment]:
    """Segments of 64 bytes."""
    size_bytes = 64 if layout is LIP_243_V01 else 192
    decoded = map(sniff, Segmenter(layout, segment_size_bytes=size_bytes).split(payload))
    return [segment for segment in decoded if segment is not None]


def give(
    reassembler: Reassembler, segments: list[Segment], sender_id: str = "alice"
) -> list[SegmentOutcome]:
    return [each for segment in segments for each in reassembler.add(sender_id, segment, NOW_MS)]


def payloads(outcomes: list[SegmentOutcome]) -> list[bytes]:
    return [each.payload for each in outcomes if isinstance(each, PayloadReassembled)]


def drops(outcomes: list[SegmentOutcome]) -> list[SetDropReason]:
    return [each.reason for each in outcomes if isinstance(each, SegmentSetDropped)]


def discards(outcomes: list[SegmentOutcome]) -> list[DiscardReason]:
    return [each.reason for each in outcomes if isinstance(each, SegmentRefused)]


def is_empty(reassembler: Reassembler) -> bool:
    pending = reassembler.pending
    return (pending.count, pending.size_bytes, list(pending)) == (0, 0, [])


# -- whole payloads --------------------------------------------------------------------------------


@any_layout
def test_a_payload_arrives_with_progress(layout: SegmentLayout) -> None:
    reassembler = Reassembler()
    outcomes = give(reassembler, segments_of(PAYLOAD, layout)[::-1])
    assert outcomes == [
        *(SegmentProgress(DIGEST, "alice", chunks, 5) for chunks in range(1, 6)),
        PayloadReassembled(PAYLOAD, DIGEST, "alice"),
    ]
    assert is_empty(reassembler)


@any_layout
@pytest.mark.parametrize("payload", [b"", b"hello"])
def test_a_small_payload_arrives_at_once(layout: SegmentLayout, payload: bytes) -> None:
    reassembler = Reassembler()
    (data,) = Segmenter(layout).split(payload)
    outcomes = reassembler.receive("alice", data, NOW_MS)
    assert outcomes == [PayloadReassembled(payload, payload_hash(payload), "alice")]
    assert is_empty(reassembler)


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.binary(max_size=400), min_size=1, max_size=4),
    st.integers(1, 3),
    st.sampled_from(LAYOUTS),
    st.randoms(use_true_random=False),
)
def test_every_send_is_delivered_once_in_any_order_of_segments(
    contents: list[bytes], sends: int, layout: SegmentLayout, order: random.Random
) -> None:
    arriving = [
        (sender_id, segment)
        for sender_id in ("alice", "bob")
        for content in contents
        for _ in range(sends)
        for segment in segments_of(content, layout)
    ]
    order.shuffle(arriving)
    reassembler = Reassembler()
    delivered = {"alice": list[bytes](), "bob": list[bytes]()}
    for sender_id, segment in arriving:
        delivered[sender_id] += payloads(give(reassembler, [segment], sender_id))
    expected = sorted(contents * sends)
    assert {sender: sorted(found) for sender, found in delivered.items()} == {
        "alice": expected,
        "bob": expected,
    }
    assert is_empty(reassembler)


@settings(derandomize=True, deadline=None)
@given(st.sets(st.integers(0, 4), min_size=1), st.sampled_from(LAYOUTS))
def test_what_was_lost_is_waited_for(lost: set[int], layout: SegmentLayout) -> None:
    reassembler = Reassembler()
    segments = segments_of(PAYLOAD, layout)
    assert payloads(give(reassembler, [s for s in segments if s.index not in lost])) == []
    assert payloads(give(reassembler, [s for s in segments if s.index in lost])) == [PAYLOAD]


def test_the_same_content_sent_again_while_the_first_is_under_way() -> None:
    reassembler = Reassembler()
    first, second, *rest = segments_of(PAYLOAD)
    assert payloads(give(reassembler, [first, first, second])) == []
    assert reassembler.pending.count == 2
    assert payloads(give(reassembler, rest)) == [PAYLOAD]
    assert payloads(give(reassembler, [*rest, second])) == [PAYLOAD]
    assert is_empty(reassembler)


def test_senders_with_equal_content_do_not_mix() -> None:
    reassembler = Reassembler()
    segments = segments_of(PAYLOAD)
    assert payloads(give(reassembler, segments[:3], "alice")) == []
    assert payloads(give(reassembler, segments[3:], "mallory")) == []
    assert payloads(give(reassembler, segments[3:], "alice")) == [PAYLOAD]


def test_layouts_do_not_mix() -> None:
    reassembler = Reassembler()
    give(reassembler, segments_of(PAYLOAD, LIP_243_V01)[:4])
    assert payloads(give(reassembler, segments_of(PAYLOAD, NIM_SEGMENTATION)[4:])) == []
    assert reassembler.pending.count == 2


@any_layout
def test_ten_megabytes_cost_ten_times_as_much_as_one(layout: SegmentLayout) -> None:
    payload = random.Random(3).randbytes(10_000_000)
    outcomes: list[SegmentOutcome] = []

    def there_and_back(size: int) -> None:
        segments = Segmenter(layout).split(payload[:size])
        random.Random(4).shuffle(segments)
        reassembler = Reassembler()
        outcomes[:] = [
            each for data in segments for each in reassembler.receive("alice", data, NOW_MS)
        ]

    there_and_back(1_000_000)  # once, so that caches are filled
    tenth = calls(lambda: there_and_back(1_000_000))
    assert calls(lambda: there_and_back(len(payload))) < 11 * tenth
    assert outcomes[-1] == PayloadReassembled(payload, payload_hash(payload), "alice")
    assert outcomes[-2] == SegmentProgress(payload_hash(payload), "alice", 98, 98)
    assert peak_bytes(lambda: there_and_back(len(payload))) < 5 * len(payload)


# -- segments that are refused ---------------------------------------------------------------------

GOOD = Segment(DIGEST, 300, 0, 5, 2, False, PAYLOAD[:64])
LIMITS = ReassemblyLimits(
    max_total_segments=20, max_segment_bytes=100, max_sender_buffered_bytes=4_000
)


@pytest.mark.parametrize(
    ("segment", "reason"),
    [
        (replace(GOOD, index=5), DiscardReason.INVALID),
        (replace(GOOD, index=2**32), DiscardReason.INVALID),
        (replace(GOOD, is_parity=True, index=2), DiscardReason.INVALID),
        (replace(GOOD, is_parity=True, parity_segment_count=0), DiscardReason.INVALID),
        (replace(GOOD, data_segment_count=19), DiscardReason.INVALID),
        (replace(GOOD, parity_segment_count=2**40), DiscardReason.INVALID),
        (replace(GOOD, payload=b""), DiscardReason.INVALID),
        (replace(GOOD, original_payload_length=63), DiscardReason.INVALID),
        (replace(GOOD, original_payload_length=501), DiscardReason.INVALID),
        (replace(GOOD, payload=bytes(101)), DiscardReason.OVERSIZED),
        (replace(GOOD, is_parity=True, payload=bytes(101)), DiscardReason.OVERSIZED),
        (
            replace(GOOD, data_segment_count=18, original_payload_length=1_000),
            DiscardReason.OVERSIZED,
        ),
        (replace(GOOD, is_parity=True), DiscardReason.PARITY_IGNORED),
    ],
)
def test_a_segment_that_is_refused_leaves_no_trace(segment: Segment, reason: DiscardReason) -> None:
    reassembler = Reassembler(LIMITS)
    outcomes = reassembler.add("alice", segment, NOW_MS)
    assert discards(outcomes) == [reason]
    assert is_empty(reassembler)


def test_what_is_no_segment_is_undecodable() -> None:
    outcomes = Reassembler().receive("alice", b"plain text", NOW_MS)
    assert outcomes == [
        SegmentRefused(
            "alice",
            DiscardReason.UNDECODABLE,
            "10 bytes that are no segment of a known layout",
        )
    ]


def test_the_limit_of_segments_itself_is_taken() -> None:
    segment = replace(GOOD, data_segment_count=18, original_payload_length=None)
    assert discards(Reassembler(LIMITS).add("alice", segment, NOW_MS)) == []


@any_layout
def test_parity_segments_do_not_disturb(layout: SegmentLayout) -> None:
    data = [replace(segment, parity_segment_count=1) for segment in segments_of(PAYLOAD, layout)]
    parity = replace(data[0], is_parity=True, payload=bytes(64))
    reassembler = Reassembler()
    outcomes = give(reassembler, [parity, *data[:2], parity, *data[2:], parity])
    assert discards(outcomes) == [DiscardReason.PARITY_IGNORED] * 3
    assert payloads(outcomes) == [PAYLOAD]
    assert is_empty(reassembler)


# -- sets that contradict themselves ---------------------------------------------------------------


@pytest.mark.parametrize(("data_count", "parity_count"), [(6, 0), (5, 1)])
def test_a_segment_with_other_counts_is_discarded(data_count: int, parity_count: int) -> None:
    reassembler = Reassembler()
    segments = segments_of(PAYLOAD)
    other = replace(segments[1], data_segment_count=data_count, parity_segment_count=parity_count)
    outcomes = give(reassembler, [segments[0], other, *segments[1:]])
    assert discards(outcomes) == [DiscardReason.COUNT_MISMATCH]
    assert "data segment 1 of" in next(
        each.detail for each in outcomes if isinstance(each, SegmentRefused)
    )
    assert payloads(outcomes) == [PAYLOAD]


@any_layout
def test_a_wrong_hash_drops_the_set(layout: SegmentLayout) -> None:
    reassembler = Reassembler()
    first, *rest = segments_of(PAYLOAD, layout)
    outcomes = give(reassembler, [replace(first, payload=bytes(64)), *rest])
    assert outcomes[-1] == SegmentSetDropped(DIGEST, "alice", SetDropReason.HASH_MISMATCH, 5, 5)
    assert payloads(outcomes) == []
    assert is_empty(reassembler)
    assert payloads(give(reassembler, [first, *rest])) == [PAYLOAD]


def test_a_wrong_length_drops_the_set() -> None:
    reassembler = Reassembler()
    segments = [replace(s, original_payload_length=301) for s in segments_of(PAYLOAD)]
    outcomes = give(reassembler, segments)
    assert outcomes[-1] == SegmentSetDropped(DIGEST, "alice", SetDropReason.MALFORMED, 5, 5)
    assert is_empty(reassembler)


def test_another_chunk_for_a_segment_that_is_here_does_not_replace_it() -> None:
    reassembler = Reassembler()
    first, *rest = segments_of(PAYLOAD)
    forged = replace(first, payload=bytes(64))
    assert payloads(give(reassembler, [first, forged, *rest])) == [PAYLOAD]
    assert drops(reassembler.on_deadline(NOW_MS + TIMEOUT_MS)) == [SetDropReason.EXPIRED]


# -- expiry ----------------------------------------------------------------------------------------


def test_a_set_expires_when_no_further_segment_comes() -> None:
    reassembler = Reassembler()
    segments = segments_of(PAYLOAD)
    assert reassembler.next_deadline_ms() is None
    reassembler.add("alice", segments[0], NOW_MS)
    reassembler.add("alice", segments[1], NOW_MS + 1_000)
    due_ms = NOW_MS + 1_000 + TIMEOUT_MS
    assert reassembler.next_deadline_ms() == due_ms
    assert reassembler.on_deadline(due_ms - 1) == []
    assert reassembler.on_deadline(due_ms) == [
        SegmentSetDropped(DIGEST, "alice", SetDropReason.EXPIRED, 2, 5)
    ]
    assert is_empty(reassembler)
    assert reassembler.next_deadline_ms() is None


def test_only_what_is_overdue_expires() -> None:
    reassembler = Reassembler()
    for n, sender_id in enumerate(["alice", "bob", "alice", "bob"]):
        segment = segments_of(PAYLOAD + bytes([n]))[0]
        reassembler.add(sender_id, segment, NOW_MS + n)
    expired = reassembler.on_deadline(NOW_MS + 1 + TIMEOUT_MS)
    assert drops(expired) == [SetDropReason.EXPIRED] * 2
    assert reassembler.next_deadline_ms() == NOW_MS + 2 + TIMEOUT_MS
    assert [segment_set.updated_ms for segment_set in reassembler.pending] == [
        NOW_MS + 2,
        NOW_MS + 3,
    ]


def test_a_payload_can_be_sent_again_after_it_expired() -> None:
    reassembler = Reassembler()
    segments = segments_of(PAYLOAD)
    give(reassembler, segments[:2])
    reassembler.on_deadline(NOW_MS + TIMEOUT_MS)
    assert payloads(give(reassembler, segments)) == [PAYLOAD]


@pytest.mark.parametrize("name", ["max_buffered_bytes", "reconstruction_timeout_ms"])
def test_limits_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match=rf"`{name}` must be at least 1 \(got 0\)"):
        ReassemblyLimits(**{name: 0})
