"""Floods of half-finished payloads: memory stays bounded, and honest payloads arrive."""

import random
import tracemalloc
from collections import Counter
from collections.abc import Callable

import pytest

from reliable_channel.segmentation import (
    NIM_SEGMENTATION,
    PayloadReassembled,
    Reassembler,
    ReassemblyLimits,
    Segment,
    Segmenter,
    SegmentOutcome,
    SegmentSetDropped,
    SetDropReason,
    payload_hash,
)

KIB = 1024
MIB = 1024 * KIB
LIMITS = ReassemblyLimits(
    max_segment_sets=40,
    max_buffered_bytes=4 * MIB,
    max_sender_segment_sets=10,
    max_sender_buffered_bytes=2 * MIB,
)
HONEST = random.Random(5).randbytes(MIB)
HONEST_HASH = payload_hash(HONEST)
SEGMENTS = Segmenter(NIM_SEGMENTATION).split(HONEST)


def half(n: int, payload: bytes = b"x", *, index: int = 0, count: int = 256) -> Segment:
    """One segment of a payload that nobody has."""
    return Segment(payload_hash(b"%d" % n), None, index, count, 0, False, payload)


def many_sets(n: int) -> tuple[str, Segment]:
    return "mallory", half(n)


def large_sets(n: int) -> tuple[str, Segment]:
    return "mallory", half(n, bytes(100 * KIB))


def one_large_set(n: int) -> tuple[str, Segment]:
    return "mallory", half(n // 255, bytes(100 * KIB), index=n % 255)


def many_tiny_segments(n: int) -> tuple[str, Segment]:
    return "mallory", half(n // 255, index=n % 255)


def repeats(n: int) -> tuple[str, Segment]:
    return "mallory", half(0, bytes(100 * KIB))


def contradictions(n: int) -> tuple[str, Segment]:
    return "mallory", half(0, b"%d" % n)


def hash_of_the_honest_payload(n: int) -> tuple[str, Segment]:
    return "mallory", Segment(HONEST_HASH, MIB, n % 11, 11, 0, False, bytes(100 * KIB))


FLOODS = [
    many_sets,
    large_sets,
    one_large_set,
    many_tiny_segments,
    repeats,
    contradictions,
    hash_of_the_honest_payload,
]


def within_limits(reassembler: Reassembler) -> bool:
    """Whether the limits hold, counted anew."""
    pending, limits = reassembler.pending, reassembler.limits
    sets, sizes = Counter[str](), Counter[str]()
    for segment_set in pending:
        sets[segment_set.sender_id] += 1
        sizes[segment_set.sender_id] += segment_set.size_bytes
        assert segment_set.size_bytes >= sum(map(len, segment_set.chunks.values()))
    assert (sets.total(), sizes.total()) == (pending.count, pending.size_bytes)
    return (
        sets.total() <= limits.max_segment_sets
        and sizes.total() <= limits.max_buffered_bytes
        and max(sets.values(), default=0) <= limits.max_sender_segment_sets
        and max(sizes.values(), default=0) <= limits.max_sender_buffered_bytes
    )


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_of_one_sender_stays_within_limits_and_a_payload_of_another_arrives(
    flood: Callable[[int], tuple[str, Segment]],
) -> None:
    reassembler = Reassembler(LIMITS)
    outcomes: list[SegmentOutcome] = []
    for n, data in enumerate(SEGMENTS):
        outcomes += reassembler.receive("alice", data, n)
        for m in range(200):
            reassembler.add(*flood(200 * n + m), n)
        assert within_limits(reassembler)
    assert outcomes[-1] == PayloadReassembled(HONEST, HONEST_HASH, "alice")
    assert not any(isinstance(each, SegmentSetDropped) for each in outcomes)


def test_a_hundred_thousand_half_finished_sets_of_one_sender() -> None:
    reassembler = Reassembler(LIMITS)
    outcomes: list[SegmentOutcome] = []
    told = 0
    for n in range(100_000):
        if n % 10_000 == 0 and n // 10_000 < len(SEGMENTS) - 1:
            outcomes += reassembler.receive("alice", SEGMENTS[n // 10_000], n)
        for outcome in reassembler.add("mallory", half(n), n):
            if isinstance(outcome, SegmentSetDropped):
                assert (outcome.reason, outcome.sender_id) == (SetDropReason.EVICTED, "mallory")
                told += 1
    assert within_limits(reassembler)
    assert told == 100_000 - LIMITS.max_sender_segment_sets
    for data in SEGMENTS[10:]:
        outcomes += reassembler.receive("alice", data, 100_000)
    assert outcomes[-1] == PayloadReassembled(HONEST, HONEST_HASH, "alice")


def test_a_sender_within_its_share_loses_nothing_to_a_crowd_of_greedy_ones() -> None:
    """Nine greedy senders want more than all there is; the tenth holds less than a tenth."""
    reassembler = Reassembler(LIMITS)
    segmenter = Segmenter(NIM_SEGMENTATION, segment_size_bytes=30 * KIB)
    payload = HONEST[: 300 * KIB]
    outcomes: list[SegmentOutcome] = []
    for n, data in enumerate(segmenter.split(payload)):
        outcomes += reassembler.receive("alice", data, n)
        for m in range(90):
            segment = half(9 * n + m, bytes(100 * KIB), index=m // 9)
            reassembler.add(f"mallory {m % 9}", segment, n)
        assert within_limits(reassembler)
    assert outcomes[-1] == PayloadReassembled(payload, payload_hash(payload), "alice")


def test_a_crowd_of_senders_stays_within_limits() -> None:
    reassembler = Reassembler(LIMITS)
    for n in range(2_000):
        outcomes = reassembler.add(f"sybil {n}", half(n), n)
        dropped = [each for each in outcomes if isinstance(each, SegmentSetDropped)]
        # All hold the same, so the one that waited longest makes room.
        expected = [f"sybil {n - 40}"] if n >= 40 else []
        assert [each.sender_id for each in dropped] == expected
    assert within_limits(reassembler)
    assert reassembler.next_deadline_ms() == 1_960 + LIMITS.reconstruction_timeout_ms


def test_the_least_recently_updated_set_of_a_sender_makes_room() -> None:
    reassembler = Reassembler(LIMITS)
    for n in range(10):
        reassembler.add("alice", half(n), n)
    reassembler.add("alice", half(0, index=1), 10)
    dropped = reassembler.add("alice", half(10), 11)[1]
    assert isinstance(dropped, SegmentSetDropped)
    assert dropped.payload_hash == payload_hash(b"1")


def test_a_set_that_alone_is_beyond_the_quota_is_dropped() -> None:
    reassembler = Reassembler(LIMITS)
    outcomes = [
        each
        for index in range(21)
        for each in reassembler.add("alice", half(0, bytes(100 * KIB), index=index), 0)
    ]
    dropped = [each for each in outcomes if isinstance(each, SegmentSetDropped)]
    evicted = SegmentSetDropped(payload_hash(b"0"), "alice", SetDropReason.EVICTED, 21, 256)
    assert dropped == [evicted]
    assert reassembler.pending.count == 0


def test_what_arrives_whole_pushes_nothing_out() -> None:
    reassembler = Reassembler(LIMITS)
    for n in range(10):
        reassembler.add("alice", half(n), n)
    (small,) = Segmenter(NIM_SEGMENTATION).split(b"small")
    (outcome,) = reassembler.receive("alice", small, 10)
    assert isinstance(outcome, PayloadReassembled)
    assert reassembler.pending.count == 10


@pytest.mark.parametrize("flood", [many_sets, many_tiny_segments], ids=["sets", "segments"])
def test_no_less_memory_is_charged_than_is_used(
    flood: Callable[[int], tuple[str, Segment]],
) -> None:
    limits = ReassemblyLimits(max_segment_sets=5_000, max_sender_segment_sets=5_000)
    reassembler = Reassembler(limits)
    tracemalloc.start()
    try:
        before_bytes, _ = tracemalloc.get_traced_memory()
        for n in range(5_000):
            reassembler.add(*flood(n), n)
        used_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    finally:
        tracemalloc.stop()
    assert used_bytes <= reassembler.pending.size_bytes
