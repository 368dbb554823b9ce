"""Attack: huge and tiny segments, through the stage that a channel has.

Floods of half-finished payloads by themselves: `tests/segmentation/test_bounded.py`.
"""

from collections.abc import Iterable

import pytest

from reliable_channel.diagnostics import SegmentDiscarded
from reliable_channel.engine.segments import Segments
from reliable_channel.events import AnyEvent, MessageReceived, PayloadDropped
from reliable_channel.segmentation import (
    NIM_SEGMENTATION,
    ReassemblyLimits,
    Segment,
    payload_hash,
)
from reliable_channel.segmentation.segment_sets import SEGMENT_OVERHEAD_BYTES, SET_OVERHEAD_BYTES

from .cost import kept_bytes

NAMING = (MessageReceived, SegmentDiscarded, PayloadDropped)
KIB, MIB = 1024, 1024 * 1024
PAYLOAD = bytes(range(256)) * 2_000


def stage() -> Segments:
    return Segments(
        NIM_SEGMENTATION,
        follows_form=False,
        segment_size_bytes=100 * KIB,
        max_payload_bytes=16 * MIB,
        max_message_bytes=150 * KIB,
        reconstruction_timeout_ms=600_000,
    )


def join(segments: Segments, content: bytes, sender: str, now_ms: int = 0) -> list[AnyEvent]:
    received = MessageReceived("m", sender, content, 1, 0)
    return [told.event for told in segments.join(received, now_ms, 1)]


def encoded(segment: Segment) -> bytes:
    return NIM_SEGMENTATION.encode(segment)


def of(count: int, index: int, payload: bytes, n: int = 0) -> bytes:
    return encoded(Segment(payload_hash(b"%d" % n), MIB, index, count, 0, False, payload))


HUGE = of(2, 0, bytes(900 * KIB))
HOSTILE = {
    "huge": lambda n: HUGE,
    "tiny": lambda n: of(256, n % 255, b"x", n // 255),
    "empty": lambda n: of(256, n % 255, b""),
    "a billion": lambda n: of(10**9, n, b"x"),
    "beyond its count": lambda n: of(2, 3 + n, b"x"),
    "another set each": lambda n: of(256, 0, b"x", n),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_segments_stay_bounded_are_named_and_an_honest_payload_arrives(attack: str) -> None:
    segments, alice = stage(), stage()
    honest = alice.split(PAYLOAD)
    told: list[AnyEvent] = []

    def run() -> None:
        for n in range(2_000):
            told.extend(join(segments, HOSTILE[attack](n), "mallory", n))
            if n % 300 == 0 and n // 300 < len(honest):
                told.extend(join(segments, honest[n // 300], "alice", n))
        told[:] = [
            e for e in told if isinstance(e, MessageReceived | SegmentDiscarded | PayloadDropped)
        ]

    assert len(honest) <= 6
    assert kept_bytes(run) < 8 * MIB
    (received,) = [e for e in told if isinstance(e, MessageReceived)]
    assert (received.sender_id, received.content) == ("alice", PAYLOAD)
    named = {e.sender_id for e in told if isinstance(e, SegmentDiscarded | PayloadDropped)}
    # Tiny segments of payloads that there is room for are what an honest sender may have, too.
    assert named == (set() if attack in ("tiny", "another set each") else {"mallory"})


@pytest.mark.slow
def test_a_hundred_thousand_half_finished_payloads_leave_what_the_limit_has_room_for() -> None:
    segments = stage()
    dropped = 0
    for n in range(100_000):
        told: Iterable[AnyEvent] = join(segments, of(256, 0, b"x", n), "mallory", n)
        dropped += sum(isinstance(e, PayloadDropped) for e in told)
    room = ReassemblyLimits()
    set_bytes = SET_OVERHEAD_BYTES + SEGMENT_OVERHEAD_BYTES + 1
    assert dropped == 100_000 - room.max_sender_buffered_bytes // set_bytes
