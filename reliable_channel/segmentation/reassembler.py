"""Reassembly of payloads from segments (LIP 243, Receiving)."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from .layouts import sniff
from .outcomes import (
    DiscardReason,
    PayloadReassembled,
    SegmentOutcome,
    SegmentProgress,
    SegmentRefused,
    SegmentSetDropped,
    SetDropReason,
)
from .segment import Segment, payload_hash
from .segment_sets import SEGMENT_OVERHEAD_BYTES, SET_OVERHEAD_BYTES, SegmentSet, SegmentSets

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassemblyLimits:
    """Limits of incomplete payloads, by number of segments, size and time.

    nim-segmentation has one limit for all senders, but here the limit applies to each sender.
    nim-segmentation counts payloads, but here a payload counts by its bytes.

    Raises:
        ValueError: a limit below 1.
    """

    reconstruction_timeout_ms: int = 300_000
    """Maximum wait (ms) for a further segment of a payload. The wait must be longer than the wait
    of SDS for a lost message. A missing segment delays later segments for as long as SDS waits."""
    max_total_segments: int = 256
    """Maximum number of segments of one payload, equal for all participants."""
    max_segment_bytes: int = 150 * 1024
    """Maximum payload of one segment (bytes). A Waku message carries at most 150 KiB."""
    max_buffered_bytes: int = 64 * MIB
    """Maximum memory of all incomplete payloads (bytes), enough for about 30,000 new payloads."""
    max_sender_buffered_bytes: int = 32 * MIB
    """Maximum memory of one sender's incomplete payloads (bytes). The default memory holds 256
    segments of nim-segmentation's size."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if (value := getattr(self, limit.name)) < 1:
                raise ValueError(f"`{limit.name}` must be at least 1 (got {value})")


class Reassembler:
    """Collector of segments, which joins them to complete payloads.

    The caller passes each segment once, because SDS has removed repeated messages. The same segment
    in a second message therefore belongs to a second payload of equal content. DIVERGES:
    nim-segmentation ignores such a second segment.

    Segments of different senders never mix, even with equal hashes. The caller must verify
    `sender_id`, because this class authenticates no segment. The value of `now_ms` must not
    decrease.

    Args:
        limits: what is kept.
        recall: reads a segment again, encoded, by the token that came with it; None where it cannot
            be read any more. With it, a set whose chunks had to make room is still put together
            when its last segment arrives. Each segment must then come with a token.
    """

    def __init__(
        self,
        limits: ReassemblyLimits | None = None,
        recall: Callable[[object], bytes | None] | None = None,
    ) -> None:
        self.limits = limits or ReassemblyLimits()
        self._recall = recall
        self.pending = SegmentSets(
            max_bytes=self.limits.max_buffered_bytes,
            max_sender_bytes=self.limits.max_sender_buffered_bytes,
            keeps_outlines=recall is not None,
        )
        """The incomplete payloads."""

    def receive(self, sender_id: str, data: bytes, now_ms: int) -> list[SegmentOutcome]:
        """Add an encoded segment in any known layout, and return the results in order."""
        segment = sniff(data)
        if segment is None:
            detail = f"{len(data)} bytes that are no segment of a known layout"
            return [SegmentRefused(sender_id, DiscardReason.UNDECODABLE, detail)]
        return self.add(sender_id, segment, now_ms)

    def add(
        self, sender_id: str, segment: Segment, now_ms: int, token: object = None
    ) -> list[SegmentOutcome]:
        """Add a segment, and return the results in order. The results contain the `token` of the
        segment."""
        begun = self.pending.of_payload(sender_id, segment)
        refusal = self._review(segment)
        if refusal is None and begun and not begun[0].agrees_with(segment):
            refusal = DiscardReason.COUNT_MISMATCH, f"{_counts(begun[0])} in earlier segments"
        if refusal is not None:
            reason, detail = refusal
            return [SegmentRefused(sender_id, reason, f"{_place(segment)}: {detail}")]

        segment_set = next((each for each in begun if segment.index not in each.chunks), None)
        if segment_set is None:
            segment_set = self.pending.begin(sender_id, segment, now_ms)
        self.pending.put(segment_set, segment, now_ms, token)

        outcomes: list[SegmentOutcome] = []
        if segment_set.data_segment_count > 1:
            outcomes.append(_progress(segment_set))
        if segment_set.is_complete:
            # Before room is made: what arrives whole pushes nothing out.
            self.pending.take(segment_set)
            outcomes.append(self._finish(segment_set))
        else:
            evicted = self.pending.make_room(sender_id)
            outcomes.extend(_dropped(each, SetDropReason.EVICTED) for each in evicted)
        return outcomes

    def next_deadline_ms(self) -> int | None:
        """Return the time (ms) for the next call of `on_deadline`, or None if no segment waits."""
        oldest = self.pending.oldest_update_ms
        return None if oldest is None else oldest + self.limits.reconstruction_timeout_ms

    def on_deadline(self, now_ms: int) -> list[SegmentOutcome]:
        """Drop the incomplete payloads that waited too long for a further segment."""
        until_ms = now_ms - self.limits.reconstruction_timeout_ms
        return [
            _dropped(each, SetDropReason.EXPIRED) for each in self.pending.take_idle_since(until_ms)
        ]

    def _finish(self, segment_set: SegmentSet) -> PayloadReassembled | SegmentSetDropped:
        if not self._has_all(segment_set):
            return _dropped(segment_set, SetDropReason.EVICTED)
        payload = segment_set.join()
        if segment_set.payload_length not in (None, len(payload)):
            return _dropped(segment_set, SetDropReason.MALFORMED)
        if payload_hash(payload) != segment_set.payload_hash:
            return _dropped(segment_set, SetDropReason.HASH_MISMATCH)
        return PayloadReassembled(
            payload, segment_set.payload_hash, segment_set.sender_id, segment_set.all_tokens
        )

    def _has_all(self, segment_set: SegmentSet) -> bool:
        """Read again the chunks that were let go; return whether all are here."""
        for index, chunk in segment_set.chunks.items():
            if chunk is None:
                assert self._recall is not None
                data = self._recall(segment_set.tokens[index])
                segment = None if data is None else sniff(data)
                if segment is None:
                    return False
                segment_set.chunks[index] = segment.payload
        return True

    def _review(self, segment: Segment) -> tuple[DiscardReason, str] | None:
        """Why a segment cannot be kept, regardless of what is here already."""
        limits = self.limits
        count, parity = segment.data_segment_count, segment.parity_segment_count
        size, length = len(segment.payload), segment.original_payload_length
        if not 0 <= segment.index < (parity if segment.is_parity else count):
            return DiscardReason.INVALID, "there is no such index"
        # v0.1 asks for less than the limit, nim-segmentation for no more.
        if count + parity > limits.max_total_segments:
            return DiscardReason.INVALID, f"at most {limits.max_total_segments} segments are taken"
        if size > limits.max_segment_bytes:
            detail = f"{size} bytes; at most {limits.max_segment_bytes} are taken"
            return DiscardReason.OVERSIZED, detail
        if segment.is_parity:
            return DiscardReason.PARITY_IGNORED, "a parity segment"
        if not size and count > 1:
            return DiscardReason.INVALID, "it is empty"
        if length is None:
            return None
        if not size <= length <= count * limits.max_segment_bytes:
            return DiscardReason.INVALID, f"it cannot be of a payload of {length} bytes"
        needed = SET_OVERHEAD_BYTES + count * SEGMENT_OVERHEAD_BYTES + length
        if count > 1 and needed > limits.max_sender_buffered_bytes:
            detail = (
                f"it is of a payload of {length} bytes; a sender's quota is "
                f"{limits.max_sender_buffered_bytes}"
            )
            return DiscardReason.OVERSIZED, detail
        return None


def _progress(segment_set: SegmentSet) -> SegmentProgress:
    return SegmentProgress(
        segment_set.payload_hash,
        segment_set.sender_id,
        len(segment_set.chunks),
        segment_set.data_segment_count,
    )


def _dropped(segment_set: SegmentSet, reason: SetDropReason) -> SegmentSetDropped:
    return SegmentSetDropped(
        segment_set.payload_hash,
        segment_set.sender_id,
        reason,
        len(segment_set.chunks),
        segment_set.data_segment_count,
        segment_set.all_tokens,
    )


def _place(segment: Segment) -> str:
    kind = "parity" if segment.is_parity else "data"
    return f"{kind} segment {segment.index} of {_counts(segment)}"


def _counts(of: Segment | SegmentSet) -> str:
    return f"{of.data_segment_count} data and {of.parity_segment_count} parity"
