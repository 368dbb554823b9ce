"""Segmentation of long payloads, which are sent as segments and arrive whole (LIP 173)."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from ..diagnostics import SegmentDiscarded
from ..errors import ContentTooLong
from ..events import AnyEvent, MessageReceived, PayloadDropped, ReceiveProgress
from ..options import SEGMENT_SIZE_BYTES, ChannelOptions
from ..sds.agenda import Agenda, Slot
from ..sds.changes import CHANNEL, NO_RECORDER, Recorder, Value
from ..sds.declared import known
from ..sds.log.log import MessageLog
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
    SegmentRefused,
    SegmentSetDropped,
    recognised,
    sniff,
)

SEGMENTS_SPARE: Final = 1
"""Number of segments that are kept free, because LIP 243 v0.1 allows one less than its maximum."""
FORM: Final = "segment_form"
"""Key of the state row with the form of the last received payload, as `BARE` or a layout's name."""
BARE: Final = "bare"


class Emitted(NamedTuple):
    """Event with the numbers of the deliveries that it confirms. The numbers are empty while other
    segments of the payload are missing."""

    event: AnyEvent
    numbers: tuple[int, ...] = ()


class Segmentation:
    """Segmentation that sends each payload as one message, as js-waku does."""

    def restore(self, form: Value) -> None:
        """Send payloads in the form that was saved before a restart. If `form` is None, the call
        changes nothing."""

    def split(self, payload: bytes) -> list[bytes]:
        """Return the contents of the messages that carry a payload.

        Raises:
            ContentTooLong: the payload needs more segments than are allowed.
        """
        return [payload]

    def join(self, received: MessageReceived, now_ms: int, number: int) -> Iterable[Emitted]:
        """Return the payload that a delivered message completes, and events about the payload.
        `number` is the number of the message's delivery."""
        return (Emitted(received, (number,)),)

    def whole(self, content: bytes) -> bytes:
        """Return the payload of a message with a single segment. Any other content is returned
        unchanged."""
        return content

    def on_deadline(self, now_ms: int) -> Iterable[Emitted]:
        """Drop incomplete payloads whose time limit has passed."""
        return ()


class _Place(NamedTuple):
    """Where a segment is: the number of its delivery, and its message in the log."""

    number: int
    message_id: str


class Segments(Segmentation):
    """Segmentation in one layout of segments. The class reads segments of every known layout.

    At first, each payload is put into a segment, even if it is short. With `follows_form`, payloads
    are later sent in the form of another participant's last payload. A payload that is too long for
    one message is always cut. With a `log`, segments that left memory are read from the log again.
    """

    def __init__(
        self,
        layout: SegmentLayout,
        *,
        follows_form: bool,
        segment_size_bytes: int,
        max_payload_bytes: int,
        max_message_bytes: int,
        reconstruction_timeout_ms: int,
        log: MessageLog | None = None,
        recorder: Recorder = NO_RECORDER,
        agenda: Agenda | None = None,
    ) -> None:
        self.agenda = agenda or Agenda()
        """Where `Slot.SEGMENTS` is planned: when the oldest half-finished payload is given up."""
        self._log = log
        self._recorder = recorder
        others = [other for other in LAYOUTS if other.name != layout.name]
        self._layouts = (layout, *others)
        self._max_payload_bytes = max_payload_bytes
        self._max_bare_bytes = segment_size_bytes
        self._default = _segmenter(layout, segment_size_bytes, max_payload_bytes)
        self._form: Segmenter | None = self._default
        """None while payloads go bare."""
        self._forms: dict[str, Segmenter | None] = {}
        """Forms to follow, by name."""
        if follows_form:
            self._forms = {BARE: None, layout.name: self._default}
            for other in others:
                with suppress(ValueError):  # it takes no segments as short as these
                    self._forms[other.name] = _segmenter(
                        other, segment_size_bytes, max_payload_bytes
                    )
        room = ReassemblyLimits()
        self.reassembler = Reassembler(
            ReassemblyLimits(
                reconstruction_timeout_ms=reconstruction_timeout_ms,
                max_total_segments=max(
                    room.max_total_segments, self._default.count(max_payload_bytes) + SEGMENTS_SPARE
                ),
                max_segment_bytes=max(room.max_segment_bytes, max_message_bytes),
                max_buffered_bytes=max(room.max_buffered_bytes, 4 * max_payload_bytes),
                max_sender_buffered_bytes=max(
                    room.max_sender_buffered_bytes, 2 * max_payload_bytes
                ),
            ),
            None if log is None else self._recalled,
        )

    def restore(self, form: Value) -> None:
        """Send payloads in the saved form, if the options still allow that form."""
        if form in self._forms:
            self._form = self._forms[str(form)]

    def split(self, payload: bytes) -> list[bytes]:
        """Cut a payload into segments, unless it is sent bare and does not look like a segment.

        Raises:
            ContentTooLong: the payload is longer than `limits.payload_bytes`.
        """
        if not payload:
            return [payload]  # the core says why not
        fits_bare = self._form is None and len(payload) <= self._max_bare_bytes
        if fits_bare and sniff(payload, self._layouts) is None:
            return [payload]
        if len(payload) > self._max_payload_bytes:
            raise ContentTooLong(
                f"the payload has {len(payload)} bytes, but limits.payload_bytes is "
                f"{self._max_payload_bytes}; send less, or raise the limit"
            )
        try:
            return (self._form or self._default).split(payload)
        except PayloadTooLarge as error:
            raise ContentTooLong(str(error)) from error

    def join(self, received: MessageReceived, now_ms: int, number: int) -> Iterator[Emitted]:
        """Add a received segment to its payload. A content that is no segment is delivered
        unchanged."""
        found = recognised(received.content, self._layouts)
        if found is None:
            self._heard(BARE, received)
            yield Emitted(received, (number,))
            return
        segment, layout = found
        place = _Place(number, received.message_id)
        outcomes = self.reassembler.add(received.sender_id, segment, now_ms, place)
        self._plan()
        for outcome in outcomes:
            if isinstance(outcome, PayloadReassembled):
                # Those who send short payloads bare cut long ones all the same.
                if segment.data_segment_count == 1 or self._form is not None:
                    self._heard(layout.name, received)
                yield Emitted(replace(received, content=outcome.payload), _numbers(outcome.tokens))
            elif isinstance(outcome, SegmentRefused):
                yield Emitted(_event(outcome), (number,))
            else:
                yield _emitted(outcome)

    def whole(self, content: bytes) -> bytes:
        """Return the payload of a single segment."""
        segment = sniff(content, self._layouts)
        return segment.payload if segment and segment.data_segment_count == 1 else content

    def on_deadline(self, now_ms: int) -> Iterator[Emitted]:
        """Drop incomplete payloads whose time limit has passed."""
        outcomes = self.reassembler.on_deadline(now_ms)
        self._plan()
        yield from map(_emitted, outcomes)

    def _plan(self) -> None:
        self.agenda.plan(Slot.SEGMENTS, self.reassembler.next_deadline_ms())

    def _heard(self, form: str, received: MessageReceived) -> None:
        """Follow the form of a payload that `received` completes, unless it is a redelivery."""
        if received.redelivered:
            return  # other payloads were heard since
        if form in self._forms and self._form is not self._forms[form]:
            self._form = self._forms[form]
            self._recorder.put(CHANNEL, FORM, form)

    def _recalled(self, place: object) -> bytes | None:
        assert isinstance(place, _Place)
        entry = None if self._log is None else self._log.get(place.message_id)
        return None if entry is None else entry.content


def segmentation_of(
    options: ChannelOptions,
    log: MessageLog | None,
    recorder: Recorder = NO_RECORDER,
    agenda: Agenda | None = None,
) -> Segmentation:
    """Return the segmentation that the options of a channel name. `log` has the contents of
    segments unchanged."""
    layout = options.segment_layout
    if isinstance(layout, str):
        layout = next((known for known in LAYOUTS if known.name == layout), None)
    if not isinstance(layout, SegmentLayout):
        return Segmentation()
    return Segments(
        layout,
        follows_form=options.follows_segment_form,
        segment_size_bytes=known(options.segment_size_bytes, SEGMENT_SIZE_BYTES),
        max_payload_bytes=options.limits.payload_bytes,
        max_message_bytes=options.sds_options().max_message_bytes,
        reconstruction_timeout_ms=options.segment_reconstruction_timeout_ms,
        log=log,
        recorder=recorder,
        agenda=agenda,
    )


def _segmenter(layout: SegmentLayout, segment_size_bytes: int, max_payload_bytes: int) -> Segmenter:
    """Make what cuts payloads of up to `max_payload_bytes`.

    Raises:
        ValueError: segments of this size are too short for the layout, or too many are needed.
    """
    chunk_bytes = max(1, layout.chunk_size_bytes(segment_size_bytes))
    return Segmenter(
        layout,
        segment_size_bytes=segment_size_bytes,
        max_total_segments=-(-max_payload_bytes // chunk_bytes) + SEGMENTS_SPARE,
    )


def _emitted(outcome: SegmentOutcome) -> Emitted:
    tokens = outcome.tokens if isinstance(outcome, SegmentSetDropped) else ()
    return Emitted(_event(outcome), _numbers(tokens))


def _numbers(tokens: tuple[object, ...]) -> tuple[int, ...]:
    return tuple(token.number for token in tokens if isinstance(token, _Place))


def _event(outcome: SegmentOutcome) -> AnyEvent:
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
        case SegmentRefused():
            return SegmentDiscarded(outcome.sender_id, outcome.reason.value, outcome.detail)
        case PayloadReassembled():
            raise AssertionError(
                "a reassembled payload is delivered as a message, never reported as an event"
            )
