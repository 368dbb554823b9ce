"""The outermost stage: long payloads leave as segments, and arrive as payloads (LIP 173,
Segmentation)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from ..errors import ContentTooLong
from ..events import (
    Event,
    MessageReceived,
    PayloadDropped,
    ReceiveProgress,
    SegmentDiscarded,
)
from ..options import ChannelOptions
from ..sds.log import MessageLog
from ..segmentation import (
    LAYOUTS,
    PayloadReassembled,
    PayloadTooLarge,
    Reassembler,
    ReassemblyLimits,
    Segmenter,
    SegmentLayout,
    SegmentOutcome,
    SegmentProgress,
    SegmentSetDropped,
    sniff,
)
from ..segmentation import SegmentDiscarded as Discarded

SEGMENTS_SPARE: Final = 1
"""LIP 243 v0.1 allows one segment less than its maximum."""


class Emitted(NamedTuple):
    """An event, and the deliveries that it accounts for: none while they wait for others."""

    event: Event
    numbers: tuple[int, ...] = ()


class Segmentation(Protocol):
    """How payloads become the content of SDS messages, and back."""

    def split(self, payload: bytes) -> list[bytes]:
        """The content of one message or several.

        Raises:
            ContentTooLong: the payload needs more segments than are allowed.
        """
        ...

    def join(self, received: MessageReceived, now_ms: int, number: int) -> Iterable[Emitted]:
        """What a delivered message completes, and reports about it; `number` is that of its
        delivery."""
        ...

    def whole(self, content: bytes) -> bytes:
        """The payload of a message that is whole by itself; else its content."""
        ...

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` must be called next."""
        ...

    def on_deadline(self, now_ms: int) -> Iterable[Emitted]:
        """Give up what took too long."""
        ...


class NoSegmentation:
    """Every payload is one message as it is, as with js-waku."""

    def split(self, payload: bytes) -> list[bytes]:
        """The payload itself."""
        return [payload]

    def join(self, received: MessageReceived, now_ms: int, number: int) -> Iterable[Emitted]:
        """The message itself."""
        return (Emitted(received, (number,)),)

    def whole(self, content: bytes) -> bytes:
        """The content itself."""
        return content

    def next_deadline_ms(self) -> int | None:
        """Never."""
        return None

    def on_deadline(self, now_ms: int) -> Iterable[Emitted]:
        """Nothing."""
        return ()


class _Place(NamedTuple):
    """Where a segment is: the number of its delivery, and its message in the log."""

    number: int
    message_id: str


class Segments:
    """Payloads in segments of one layout; segments of every known layout are put together.

    Unless `every_payload` is wrapped, one that fits a message goes bare. With a `log`, segments
    that had to make room are read from there again.
    """

    def __init__(
        self,
        layout: SegmentLayout,
        *,
        every_payload: bool,
        segment_size_bytes: int,
        max_payload_bytes: int,
        max_message_bytes: int,
        reconstruction_timeout_ms: int,
        log: MessageLog | None = None,
    ) -> None:
        self._log = log
        self._layouts = (layout, *(other for other in LAYOUTS if other.name != layout.name))
        chunk_bytes = layout.chunk_size_bytes(segment_size_bytes)
        most = -(-max_payload_bytes // chunk_bytes) + SEGMENTS_SPARE
        self._max_payload_bytes = max_payload_bytes
        self._max_bare_bytes = 0 if every_payload else segment_size_bytes
        self._segmenter = Segmenter(
            layout, segment_size_bytes=segment_size_bytes, max_total_segments=most
        )
        room = ReassemblyLimits()
        self._reassembler = Reassembler(
            ReassemblyLimits(
                reconstruction_timeout_ms=reconstruction_timeout_ms,
                max_total_segments=max(room.max_total_segments, most),
                max_segment_bytes=max(room.max_segment_bytes, max_message_bytes),
                max_buffered_bytes=max(room.max_buffered_bytes, 4 * max_payload_bytes),
                max_sender_buffered_bytes=max(
                    room.max_sender_buffered_bytes, 2 * max_payload_bytes
                ),
            ),
            None if log is None else self._recalled,
        )

    def split(self, payload: bytes) -> list[bytes]:
        """Cut a payload, unless it fits a message and would not be taken for a segment there.

        Raises:
            ContentTooLong: the payload is longer than `max_payload_bytes`.
        """
        if not payload:
            return [payload]  # the core says why not
        if len(payload) <= self._max_bare_bytes and sniff(payload, self._layouts) is None:
            return [payload]
        if len(payload) > self._max_payload_bytes:
            raise ContentTooLong(
                f"{len(payload)} bytes; max_payload_bytes is {self._max_payload_bytes}"
            )
        try:
            return self._segmenter.split(payload)
        except PayloadTooLarge as error:
            raise ContentTooLong(str(error)) from error

    def join(self, received: MessageReceived, now_ms: int, number: int) -> Iterator[Emitted]:
        """Add a segment; what is none is delivered as it is."""
        segment = sniff(received.content, self._layouts)
        if segment is None:
            yield Emitted(received, (number,))
            return
        place = _Place(number, received.message_id)
        for outcome in self._reassembler.add(received.sender_id, segment, now_ms, place):
            if isinstance(outcome, PayloadReassembled):
                yield Emitted(replace(received, content=outcome.payload), _numbers(outcome.tokens))
            elif isinstance(outcome, Discarded):
                yield Emitted(_event(outcome), (number,))
            else:
                yield _emitted(outcome)

    def whole(self, content: bytes) -> bytes:
        """The payload of an only segment."""
        segment = sniff(content, self._layouts)
        return segment.payload if segment and segment.data_segment_count == 1 else content

    def next_deadline_ms(self) -> int | None:
        """When the oldest half-finished payload is given up."""
        return self._reassembler.next_deadline_ms()

    def on_deadline(self, now_ms: int) -> Iterator[Emitted]:
        """Give up what took too long."""
        for outcome in self._reassembler.on_deadline(now_ms):
            yield _emitted(outcome)

    def _recalled(self, place: object) -> bytes | None:
        assert isinstance(place, _Place)
        entry = None if self._log is None else self._log.get(place.message_id)
        return None if entry is None else entry.content


def segmentation_of(options: ChannelOptions, log: MessageLog | None) -> Segmentation:
    """The segmentation that the options ask for; `log` has the segments as they are."""
    layout = options.segment_layout
    if isinstance(layout, str):
        layout = next((known for known in LAYOUTS if known.name == layout), None)
    if not isinstance(layout, SegmentLayout):
        return NoSegmentation()
    return Segments(
        layout,
        every_payload=options.segments_every_payload,
        segment_size_bytes=options.segment_size_bytes,
        max_payload_bytes=options.max_payload_bytes,
        max_message_bytes=options.max_message_bytes,
        reconstruction_timeout_ms=options.segment_reconstruction_timeout_ms,
        log=log,
    )


def _emitted(outcome: SegmentOutcome) -> Emitted:
    tokens = outcome.tokens if isinstance(outcome, SegmentSetDropped) else ()
    return Emitted(_event(outcome), _numbers(tokens))


def _numbers(tokens: tuple[object, ...]) -> tuple[int, ...]:
    return tuple(token.number for token in tokens if isinstance(token, _Place))


def _event(outcome: SegmentOutcome) -> Event:
    match outcome:
        case SegmentProgress():
            return ReceiveProgress(
                outcome.sender_id, outcome.payload_hash, outcome.chunks, outcome.total_chunks
            )
        case SegmentSetDropped():
            return PayloadDropped(
                outcome.sender_id,
                outcome.payload_hash,
                outcome.reason.value,
                outcome.chunks,
                outcome.total_chunks,
            )
        case Discarded():
            return SegmentDiscarded(outcome.sender_id, outcome.reason.value, outcome.detail)
        case PayloadReassembled():
            raise AssertionError("a whole payload is delivered, not reported")
