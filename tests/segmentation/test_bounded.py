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
    sniff,
)
from reliable_channel.segmentation.segment_sets import SEGMENT_OVERHEAD_BYTES, SET_OVERHEAD_BYTES

KIB = 1024
MIB = 1024 * KIB
LIMITS = ReassemblyLimits(max_buffered_bytes=4 * MIB, max_sender_buffered_bytes=2 * MIB)
TINY_BYTES = SET_OVERHEAD_BYTES + SEGMENT_OVERHEAD_BYTES + 1
"""What `half` takes with its payload of a byte."""
MAX_TINY = LIMITS.max_sender_buffered_bytes // TINY_BYTES
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
    count, sizes, held = 0, Counter[str](), Counter[str]()
    for segment_set in pending:
        count += 1
        sizes[segment_set.sender_id] += segment_set.size_bytes
        held[segment_set.sender_id] += segment_set.held_bytes
        chunks = sum(len(chunk) for chunk in segment_set.chunks.values() if chunk is not None)
        assert segment_set.size_bytes >= segment_set.held_bytes >= chunks
    assert (count, sizes.total()) == (pending.count, pending.size_bytes)
    return (
        sizes.total() <= limits.max_buffered_bytes
        and max(held.values(), default=0) <= limits.max_sender_buffered_bytes
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


@pytest.mark.slow
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
    assert told == 100_000 - MAX_TINY
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
    most = LIMITS.max_buffered_bytes // TINY_BYTES
    for n in range(2 * most):
        outcomes = reassembler.add(f"sybil {n}", half(n), n)
        dropped = [each for each in outcomes if isinstance(each, SegmentSetDropped)]
        assert len(dropped) == (n >= most)
    assert within_limits(reassembler)


def test_the_least_recently_updated_set_of_a_sender_makes_room() -> None:
    reassembler = Reassembler(LIMITS)
    for n in range(20):
        reassembler.add("alice", half(n, bytes(100 * KIB)), n)
    reassembler.add("alice", half(0, index=1), 20)
    dropped = reassembler.add("alice", half(20, bytes(100 * KIB)), 21)[1]
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
    reassembler = Reassembler()
    tracemalloc.start()
    try:
        before_bytes, _ = tracemalloc.get_traced_memory()
        for n in range(5_000):
            reassembler.add(*flood(n), n)
        used_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    finally:
        tracemalloc.stop()
    assert used_bytes <= reassembler.pending.size_bytes


# -- with a log to read segments from again -------------------------------------------------------


class Log:
    """Where segments stand, as messages in a channel's log; counts what is read again."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self.recalled = 0

    def put(self, data: bytes) -> int:
        self.contents.append(data)
        return len(self.contents) - 1

    def recall(self, token: object) -> bytes | None:
        assert isinstance(token, int)
        self.recalled += 1
        return self.contents[token]


def give(reassembler: Reassembler, log: Log, sender: str, data: bytes) -> list[SegmentOutcome]:
    segment = sniff(data)
    assert segment is not None
    return reassembler.add(sender, segment, len(log.contents), log.put(data))


def fill(reassembler: Reassembler, log: Log, senders: int) -> Counter[str]:
    """First segments under invented names; who lost a set?"""
    lost = Counter[str]()
    for n in range(senders):
        data = NIM_SEGMENTATION.encode(
            Segment(payload_hash(b"%d" % n), 200, 0, 2, 0, False, bytes(100))
        )
        for outcome in give(reassembler, log, f"sybil {n}", data):
            if isinstance(outcome, SegmentSetDropped):
                lost[outcome.sender_id] += 1
    return lost


@pytest.mark.parametrize("sybils", [450, 5_000])
def test_a_payload_that_waits_for_one_segment_outlasts_a_crowd_of_invented_names(
    sybils: int,
) -> None:
    log = Log()
    reassembler = Reassembler(LIMITS, log.recall)
    segments = Segmenter(NIM_SEGMENTATION, segment_size_bytes=18 * KIB).split(HONEST)
    for data in segments[:-1]:
        give(reassembler, log, "alice", data)
    lost = fill(reassembler, log, sybils)
    assert within_limits(reassembler)
    assert "alice" not in lost
    outcomes = give(reassembler, log, "alice", segments[-1])
    assert isinstance(whole := outcomes[-1], PayloadReassembled)
    assert (whole.payload, len(whole.tokens)) == (HONEST, len(segments))
    assert log.recalled <= len(segments)


def test_a_set_without_its_chunks_goes_on_and_reads_each_once() -> None:
    log = Log()
    reassembler = Reassembler(LIMITS, log.recall)
    for index, data in enumerate(SEGMENTS):
        outcomes = give(reassembler, log, "alice", data)
        if index % 3 == 0:
            digest = payload_hash(b"%d" % index)
            for n in range(14):
                large = Segment(digest, 1_500 * KIB, n, 15, 0, False, bytes(100 * KIB))
                give(reassembler, log, "alice", NIM_SEGMENTATION.encode(large))
        assert within_limits(reassembler)
    assert isinstance(outcomes[-1], PayloadReassembled)
    assert 0 < log.recalled < len(SEGMENTS)


def test_what_left_the_log_is_reported() -> None:
    log = Log()
    reassembler = Reassembler(
        ReassemblyLimits(max_buffered_bytes=4 * MIB, max_sender_buffered_bytes=MIB), lambda _: None
    )
    big = random.Random(1).randbytes(MIB - 8 * KIB)
    other = NIM_SEGMENTATION.encode(
        Segment(payload_hash(b"x"), 300 * KIB, 0, 3, 0, False, bytes(100 * KIB))
    )
    *first, last = Segmenter(NIM_SEGMENTATION).split(big)
    for data in [*first, other]:
        give(reassembler, log, "alice", data)
    dropped = give(reassembler, log, "alice", last)[-1]
    assert isinstance(dropped, SegmentSetDropped)
    assert dropped.reason is SetDropReason.EVICTED


def test_a_set_of_which_more_arrived_outlasts_one_of_which_less_did() -> None:
    log = Log()
    reassembler = Reassembler(LIMITS, log.recall)
    fill(reassembler, log, LIMITS.max_buffered_bytes // (TINY_BYTES - 1))
    give(reassembler, log, "alice", SEGMENTS[0])
    lost = fill(reassembler, log, 3_000)
    assert "alice" not in lost
    assert within_limits(reassembler)
