"""The tables of the pipeline. Ids are text, hashes 32 bytes, times milliseconds since 1970 by the
clock of the participant in whose journal they stand."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

TEXT, NUMBER, BYTES, FLAG = StringType(), LongType(), BinaryType(), BooleanType()
SHARE = DoubleType()
TEXTS = ArrayType(TEXT, containsNull=False)


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


_WHOSE: Final = {"channel_id": TEXT, "participant_id": TEXT, "life": NUMBER}

JOURNAL: Final = _table(
    channel_id=TEXT,
    participant_id=TEXT,
    path=TEXT,
    number=NUMBER,
    life=NUMBER,
    event=TEXT,
    at_ms=NUMBER,
    message_id=TEXT,
    sender_id=TEXT,
    source=TEXT,
    outcome=TEXT,
    message_hash=BYTES,
    timestamp_ns=NUMBER,
    lamport_timestamp=NUMBER,
    position=NUMBER,
    evicted=NUMBER,
    content_sha256=BYTES,
    first_segment_id=TEXT,
    acknowledged_by=TEXT,
    message_ids=TEXTS,
    payload=BYTES,
    record=TEXT,
)
"""A line of a journal (`lines.Line`). `life` is null in a stream, which begins anywhere."""

LIFE: Final = _table(
    **_WHOSE,
    path=TEXT,
    opened_ms=NUMBER,
    until_ms=NUMBER,
    owed_from_ms=NUMBER,
    settle_ms=NUMBER,
    entries=NUMBER,
    log_digest=TEXT,
    is_whole=FLAG,
    last_lamport=NUMBER,
    is_in_order=FLAG,
    impostors=NUMBER,
    time_unit=TEXT,
)
DELIVERY: Final = _table(
    **_WHOSE,
    message_id=TEXT,
    sender_id=TEXT,
    lamport_timestamp=NUMBER,
    content_sha256=BYTES,
    at_ms=NUMBER,
    first_segment_id=TEXT,
    message_hash=BYTES,
    source=TEXT,
    missing_since_ms=NUMBER,
    log_position=NUMBER,
)
OUTCOME: Final = _table(**_WHOSE, message_id=TEXT, is_failure=FLAG)
ACKNOWLEDGEMENT: Final = _table(
    **_WHOSE, message_id=TEXT, accepted_ms=NUMBER, acknowledged_ms=NUMBER, source=TEXT
)
DISPATCH: Final = _table(
    **_WHOSE, message_hash=BYTES, kind=TEXT, at_ms=NUMBER, payload_bytes=NUMBER
)
TRAFFIC: Final = _table(
    **_WHOSE,
    kind=TEXT,
    messages=NUMBER,
    total_bytes=NUMBER,
    content_bytes=NUMBER,
    bloom_filter_bytes=NUMBER,
    repair_request_bytes=NUMBER,
    causal_history_bytes=NUMBER,
)
REPAIR: Final = _table(**_WHOSE, message_id=TEXT, requests=NUMBER, responses=NUMBER)
LAG: Final = _table(**_WHOSE, sender_id=TEXT, message_hash=BYTES, least_ms=NUMBER)
DEED: Final = _table(**_WHOSE, sender=TEXT, what=TEXT, message_id=TEXT, at_ms=NUMBER, times=NUMBER)
FINDING: Final = _table(audit=TEXT, **_WHOSE, message_id=TEXT, at_ms=NUMBER, detail=TEXT)
COVERAGE: Final = _table(**_WHOSE, audit=TEXT, cases=NUMBER, why=TEXT)
HEARD_SENDER: Final = _table(
    **_WHOSE, sender_id=TEXT, messages=NUMBER, last_lamport=NUMBER, last_ms=NUMBER
)
GAP: Final = _table(**_WHOSE, from_ms=NUMBER, to_ms=NUMBER, why=TEXT)
ORPHAN: Final = _table(**_WHOSE, message_id=TEXT, first_segment_id=TEXT, at_ms=NUMBER)
SET_ASIDE: Final = _table(path=TEXT, reason=TEXT, lines=NUMBER, first_line=NUMBER)

SAID: Final = _table(
    channel_id=TEXT,
    participant_id=TEXT,
    message_id=TEXT,
    sender_id=TEXT,
    lamport_timestamp=NUMBER,
    at_ms=NUMBER,
    references=TEXTS,
)
"""A message as one journal has it (`dag.Said`)."""

FACTS: Final = {
    "Life": LIFE,
    "Delivery": DELIVERY,
    "Outcome": OUTCOME,
    "Acknowledgement": ACKNOWLEDGEMENT,
    "Dispatch": DISPATCH,
    "Traffic": TRAFFIC,
    "Repair": REPAIR,
    "Lag": LAG,
    "Deed": DEED,
    "Finding": FINDING,
    "Gap": GAP,
    "Coverage": COVERAGE,
    "HeardSender": HEARD_SENDER,
    "Orphan": ORPHAN,
    "SetAside": SET_ASIDE,
}
"""By the name of the type of `facts.py` whose fields they hold."""

PLACE: Final = _table(
    channel_id=TEXT,
    message_id=TEXT,
    sender_id=TEXT,
    lamport_timestamp=NUMBER,
    at_ms=NUMBER,
    references=NUMBER,
    orphaned=NUMBER,
    depth=NUMBER,
    branches=NUMBER,
    is_head=FLAG,
)
"""A message in the causal DAG of its channel (`dag.DagPosition`)."""

MESSAGE: Final = _table(
    dialect=TEXT,
    kind=TEXT,
    channel_id=TEXT,
    sender_id=TEXT,
    message_id=TEXT,
    lamport_timestamp=NUMBER,
    causal_history=TEXTS,
    repair_request=TEXTS,
    content=BYTES,
    signature=BYTES,
    bloom_filter=BYTES,
    error=TEXT,
)
"""An SDS message, decoded; of what is none, `error` says why and all else is null."""

PAYLOAD: Final = _table(
    channel_id=TEXT,
    sender_id=TEXT,
    message_ids=TEXTS,
    lamport_timestamp=NUMBER,
    payload_hash=BYTES,
    segments=NUMBER,
    segments_needed=NUMBER,
    payload=BYTES,
    error=TEXT,
)
"""What an application sent, in one message or several, in log order; the timestamp is the last
one's. Of what is not whole, `error` says why and `payload` is null; `payload_hash` is null of what
was sent without segmentation."""

STORED: Final = _table(
    message_hash=BYTES,
    pubsub_topic=TEXT,
    content_topic=TEXT,
    timestamp_ns=NUMBER,
    payload=BYTES,
    meta=BYTES,
)
"""A Waku message in Store."""

CLOCK: Final = _table(
    channel_id=TEXT,
    participant_id=TEXT,
    offset_ms=NUMBER,
    least_ms=NUMBER,
    most_ms=NUMBER,
    why=TEXT,
)
"""How far a clock is ahead of most others (`clocks.Offset`)."""
