"""Acknowledgements of own messages, read from the messages of others (LIP 109, Review ACK
Status)."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .bloom import BloomFilterError, BloomForm, BloomLayout
from .changes import NO_RECORDER, Recorder, Row, typed_table
from .events import (
    AcknowledgementSource,
    BloomFilterIgnored,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
)
from .message import Message
from .options import SdsOptions
from .outgoing import OutgoingBuffer

MAX_FALSE_POSITIVES: Final = 0.01
"""Maximum rate of false positives of a bloom filter that may acknowledge messages. A filter with
all bits set would acknowledge every message."""


class _ParticipantRow(NamedTuple):
    sender_id: str
    first_heard_ms: int


PARTICIPANTS: Final = typed_table("participants", _ParticipantRow)


class Participants:
    """Set of the other senders that were heard, limited in size, with the longest silent sender
    first."""

    def __init__(self, limit: int, recorder: Recorder = NO_RECORDER) -> None:
        self._limit = limit
        self._recorder = recorder
        self._last_heard_ms: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last_heard_ms)

    def __iter__(self) -> Iterator[str]:
        return iter(self._last_heard_ms)

    def heard(self, sender_id: str, now_ms: int) -> None:
        """Note that a message of a participant arrived."""
        if sender_id not in self._last_heard_ms:
            self._recorder.put(PARTICIPANTS, sender_id, now_ms)
        self._last_heard_ms[sender_id] = now_ms
        self._last_heard_ms.move_to_end(sender_id)
        if len(self._last_heard_ms) > self._limit:
            self._recorder.delete(PARTICIPANTS, self._last_heard_ms.popitem(last=False)[0])

    def restore(self, rows: Iterable[Row]) -> None:
        """Restore the senders that were heard before a restart."""
        for sender_id, first_heard_ms in PARTICIPANTS.read(rows):
            self._last_heard_ms[sender_id] = first_heard_ms


class AcknowledgementReview:
    """Review of received messages for acknowledgements of own messages. A causal history
    acknowledges a message at once, and bloom filters are counted by participant."""

    def __init__(
        self,
        outgoing: OutgoingBuffer,
        participants: Participants,
        options: SdsOptions,
    ) -> None:
        self._outgoing = outgoing
        self._participants = participants
        self._parameters = options.bloom
        self._threshold = options.possible_acks_threshold
        self._fits_group = options.behaviour.threshold_fits_group
        self._ignored: set[str] = set()

    def review(
        self, message: Message, form: BloomForm
    ) -> list[MessageAcknowledged | MessagePossiblyAcknowledged | BloomFilterIgnored]:
        """Remove the messages that a received message acknowledges from the outgoing buffer. Return
        an event for each acknowledgement. `form` is the form of bloom filters in the dialect of the
        received message."""
        found: list[MessageAcknowledged | MessagePossiblyAcknowledged | BloomFilterIgnored] = []
        if not self._outgoing.entries:
            return found
        sender_id = message.sender_id
        for entry in self._outgoing.remove(message.causal_ids):
            sides = len(entry.possible_acks | {sender_id})
            source = AcknowledgementSource.CAUSAL_HISTORY
            found.append(MessageAcknowledged(entry.message_id, source, sender_id, sides))
        if message.bloom_filter is None or not self._outgoing.entries:
            return found
        try:
            layout, words = form.read(message.bloom_filter, self._parameters)
            # Most filters hold none of ours, and then it does not matter how full they are.
            if not self._outgoing.any_in(layout, words):
                return found
            _require_evidence(layout, words)
        except BloomFilterError as error:
            if sender_id not in self._ignored and len(self._ignored) < 1_000:
                self._ignored.add(sender_id)
                found.append(BloomFilterIgnored(sender_id, str(error)))
            return found
        for entry in self._outgoing.review(layout, words, sender_id):
            count = len(entry.possible_acks)
            if count >= self._needed():
                self._outgoing.remove([entry.message_id])
                source = AcknowledgementSource.BLOOM_FILTER
                found.append(MessageAcknowledged(entry.message_id, source, sender_id, count))
            else:
                found.append(MessagePossiblyAcknowledged(entry.message_id, count))
        return found

    def _needed(self) -> int:
        return (
            min(self._threshold, len(self._participants)) if self._fits_group else self._threshold
        )


def _require_evidence(layout: BloomLayout, words: bytes) -> None:
    share = layout.fill(words)
    if share**layout.hash_count > MAX_FALSE_POSITIVES:
        raise BloomFilterError(
            f"{share:.0%} of the bits of the bloom filter are set; such a filter would "
            "acknowledge messages that the sender does not hold"
        )
