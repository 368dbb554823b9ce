"""Payloads of applications, joined from the messages with their segments (LIP 243).

One exchange groups messages by the hash of their payload and sorts them. Each partition is read in
that order, so memory holds one payload. The many payloads of one message cost no separate task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from reliable_channel.segmentation import (
    DiscardReason,
    PayloadReassembled,
    Reassembler,
    ReassemblyLimits,
    SegmentOutcome,
    SegmentRefused,
    SegmentSet,
    SegmentSetDropped,
    sniff,
)

from .schemas import BYTES, PAYLOAD
from .sources.batches import arrow_schema, batches, rows_of

MAX_NAMED: Final = 10
"""Maximum number of missing segments that an error lists by number."""
_WHERE: Final = ("channel_id", "sender_id", "payload_hash")
_WHAT: Final = ("lamport_timestamp", "message_id", "content")
_CONTENT: Final = "content"
Row = tuple[Any, ...]


def payloads(messages: DataFrame, limits: ReassemblyLimits | None = None) -> DataFrame:
    """Return the payloads in a table with a column `message` (`decoded`), each once. They may use
    either segment layout, or no segments. Parity segments are skipped.

    `limits` are those of a participant. A payload that it would refuse becomes a row with the
    reason.
    """
    allowed = limits or ReassemblyLimits()

    def put_together(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by_payload = groupby(rows_of(pieces), key=itemgetter(0, 1, 2))
        whole = (
            payload
            for (channel_id, sender_id, _), group in by_payload
            for payload in join(channel_id, sender_id, (row[3:] for row in group), allowed)
        )
        return batches(whole, arrow_schema(PAYLOAD), weighed=[PAYLOAD.names.index("payload")])

    pieces = (
        messages.where("message.kind = 'content' and message.content is not null")
        .select(
            [F.col("message")[name].alias(name) for name in ("channel_id", "sender_id", *_WHAT)]
        )
        .transform(with_payload_hash)
        .select(*_WHERE, *_WHAT)
    )
    # Of what is no segment the message is all there is: it goes wherever its id leads.
    place = F.coalesce("payload_hash", F.col("message_id").cast("binary"))
    return (
        pieces.repartition("channel_id", "sender_id", place)
        .sortWithinPartitions(*_WHERE, *_WHAT)
        .mapInArrow(put_together, PAYLOAD)
    )


def with_payload_hash(pieces: DataFrame) -> DataFrame:
    """Return a DataFrame with one more column, `payload_hash`: the payload of which `content` is a
    segment, or null."""

    def hashed(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            segments = map(sniff, batch.column(_CONTENT).to_pylist())
            hashes = [segment and segment.original_payload_hash for segment in segments]
            arrays = [*batch.columns, pa.array(hashes, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, "payload_hash"])

    schema = StructType([*pieces.schema.fields, StructField("payload_hash", BYTES)])
    return pieces.mapInArrow(hashed, schema)


def join(
    channel_id: str,
    sender_id: str,
    messages: Iterable[tuple[int, str, bytes]],
    limits: ReassemblyLimits,
) -> Iterator[Row]:
    """Return the payloads, as rows of `PAYLOAD`, from the messages of one payload hash: timestamp,
    id and content of each, in log order."""
    reassembler = Reassembler(limits)
    whose = channel_id, sender_id
    for (lamport_timestamp, message_id, content), _copies in groupby(messages):
        segment, token = sniff(content), (lamport_timestamp, message_id)
        if segment is None:
            yield (*whose, [message_id], lamport_timestamp, None, 1, 1, content, None)
            continue
        for outcome in reassembler.add(sender_id, segment, 0, token):
            if isinstance(outcome, SegmentRefused):
                if outcome.reason is not DiscardReason.PARITY_IGNORED:
                    why = f"{outcome.reason.value}: {outcome.detail}"
                    needed = segment.data_segment_count
                    about = (segment.original_payload_hash, 1, needed, None, why)
                    yield (*whose, [message_id], lamport_timestamp, *about)
            else:
                yield from _done(whose, outcome)
    for begun in reassembler.pending:
        counts = len(begun.chunks), begun.data_segment_count
        what = (*_messages(begun.all_tokens), begun.payload_hash, *counts)
        yield (*whose, *what, None, _missing(begun))


def _done(whose: tuple[str, str], outcome: SegmentOutcome) -> Iterator[Row]:
    """A payload that is whole, or will never be."""
    match outcome:
        case PayloadReassembled(payload, payload_hash, _, tokens):
            count = len(tokens)
            yield (*whose, *_messages(tokens), payload_hash, count, count, payload, None)
        case SegmentSetDropped(payload_hash, _, reason, chunks, total_chunks, tokens):
            about = (payload_hash, chunks, total_chunks, None, reason.value)
            yield (*whose, *_messages(tokens), *about)


def _messages(tokens: Sequence[Any]) -> tuple[list[str], int]:
    """The ids of messages, and the last one's timestamp."""
    return [message_id for _, message_id in tokens], tokens[-1][0]


def _missing(begun: SegmentSet) -> str:
    absent = [n for n in range(begun.data_segment_count) if n not in begun.chunks]
    named = ", ".join(map(str, absent[:MAX_NAMED])) + (", ..." if absent[MAX_NAMED:] else "")
    return f"incomplete: of {begun.data_segment_count} segments {len(absent)} are missing, {named}"
