"""Segments, alone and as parts of payloads, and frames of the multicast group."""

from collections.abc import Iterator
from typing import Final

from reliable_channel.segmentation import (
    LAYOUTS,
    PayloadReassembled,
    Reassembler,
    ReassemblyLimits,
    Segmenter,
    payload_hash,
    sniff,
)
from reliable_channel.transport import multicast_frames

from ..target import Target, joined, records

LIMITS: Final = ReassemblyLimits(
    max_total_segments=8,
    max_segment_bytes=512,
    max_buffered_bytes=8_000,
    max_sender_buffered_bytes=4_000,
)
_UNSET_FIELDS_BYTES: Final = 8
"""What a layout may write though it was absent: numbers that are 0 where the other has none."""


def _segment(data: bytes) -> None:
    segment = sniff(data)
    written_in = [layout for layout in LAYOUTS if layout.decode(data) is not None]
    assert len(written_in) <= 1, "two layouts take it for their own"
    assert (segment is not None) is bool(written_in)
    if segment is None:
        return
    encoded = written_in[0].encode(segment)
    assert written_in[0].decode(encoded) == segment == sniff(encoded)
    assert len(encoded) <= len(data) + _UNSET_FIELDS_BYTES


def _payloads(data: bytes) -> None:
    """Each record is a segment of one of four senders; buffers keep to their limits, a payload that
    is given out has the hash it was announced with, and nothing stays for ever. Likewise where
    what had to make room can be read again, and then no less is given out."""
    assert _given_out(data, Reassembler(LIMITS)) <= _given_out(data, None)


def _given_out(data: bytes, reassembler: Reassembler | None) -> int:
    log: list[bytes] = []
    if reassembler is None:
        reassembler = Reassembler(LIMITS, lambda token: log[int(str(token))])
    arrived = given_out = 0
    for now_ms, record in enumerate(records(data)):
        arrived += len(record)
        sender_id = str(record[-1] & 3) if record else ""
        log.append(record[:-1])
        segment = sniff(record[:-1])
        if segment is None:
            continue
        for outcome in reassembler.add(sender_id, segment, now_ms, len(log) - 1):
            if isinstance(outcome, PayloadReassembled):
                assert payload_hash(outcome.payload) == outcome.payload_hash
                given_out += len(outcome.payload)
        assert reassembler.pending.size_bytes <= LIMITS.max_buffered_bytes
    assert given_out <= arrived
    reassembler.on_deadline(len(data) + LIMITS.reconstruction_timeout_ms)
    assert reassembler.next_deadline_ms() is None
    return given_out


def _frame(data: bytes) -> None:
    for datagram in (data, b"RCM1" + data):
        frame = multicast_frames.decode(datagram)
        assert frame is None or (frame.encode() == datagram and frame.index < frame.count)


def _segments() -> Iterator[list[bytes]]:
    for layout in LAYOUTS:
        size_bytes = max(64, layout.min_segment_size_bytes)
        segmenter = Segmenter(layout, segment_size_bytes=size_bytes, max_total_segments=8)
        yield segmenter.split(b"short")
        yield segmenter.split(bytes(range(200)))


def _seeds() -> Iterator[bytes]:
    for segments in _segments():
        yield from segments


def _payload_seeds() -> Iterator[bytes]:
    for segments in _segments():
        for order in (segments, segments[::-1], segments * 2):
            yield joined(segment + b"\0" for segment in order)


def _frame_seeds() -> Iterator[bytes]:
    tag = multicast_frames.topic_tag("topic")
    yield from multicast_frames.frames(tag, bytes(range(32)), b"hello")


TARGETS: Final = (
    Target("multicast_frame", _frame, _frame_seeds),
    Target("segment", _segment, _seeds),
    Target("segments", _payloads, _payload_seeds),
)
