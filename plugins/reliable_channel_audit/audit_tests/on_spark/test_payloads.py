"""Payloads are put together from segments: small tables in, small tables out."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import anyio
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from reliable_channel.segmentation import (
    LIP_243_V01,
    NIM_SEGMENTATION,
    ReassemblyLimits,
    Segment,
    Segmenter,
    SegmentLayout,
    payload_hash,
)
from reliable_channel.segmentation.segment_sets import SEGMENT_OVERHEAD_BYTES, SET_OVERHEAD_BYTES
from reliable_channel_audit.decode import decoded
from reliable_channel_audit.payloads import join, payloads
from reliable_channel_audit.schemas import MESSAGE, PAYLOAD

from ..test_real_channels import Group

LONG = Random(1).randbytes(300)
LIMITS = ReassemblyLimits()
Sent = tuple[int, str, bytes]


def segments(payload: bytes, layout: SegmentLayout = LIP_243_V01, size: int = 100) -> list[bytes]:
    return Segmenter(layout, segment_size_bytes=size).split(payload)


def sent(contents: list[bytes], first: int = 0) -> list[Sent]:
    return [(n, f"m{n}", content) for n, content in enumerate(contents, start=first)]


def joined(messages: list[Sent], limits: ReassemblyLimits = LIMITS) -> list[tuple[object, ...]]:
    return [row[2:] for row in join("general", "alice", messages, limits)]


def test_whole_payloads() -> None:
    (short,) = segments(b"short")
    nim = segments(LONG, NIM_SEGMENTATION, 256)
    assert joined(sent([b"plain", short])) == [
        (["m0"], 0, None, 1, 1, b"plain", None),
        (["m1"], 1, payload_hash(b"short"), 1, 1, b"short", None),
    ]
    assert len(nim) == 3
    assert joined(sent(nim)) == [(["m0", "m1", "m2"], 2, payload_hash(LONG), 3, 3, LONG, None)]


def test_equal_payloads_and_copies_of_messages() -> None:
    """A message is there as often as journals have it; sent twice is another one."""
    once, again = sent(segments(LONG)), sent(segments(LONG), first=3)
    rows = joined(sorted([*once, *once, *again, *again]))
    assert [row[0] for row in rows] == [["m0", "m1", "m2"], ["m3", "m4", "m5"]]
    assert {row[5] for row in rows} == {LONG}


def test_what_is_not_whole_says_why() -> None:
    first, second, third = segments(LONG)
    forged = LIP_243_V01.encode(Segment(payload_hash(LONG), None, 1, 3, 0, False, b"forged"))
    beyond = LIP_243_V01.encode(Segment(payload_hash(LONG), None, 7, 3, 0, False, b"beyond"))
    of_two = LIP_243_V01.encode(Segment(payload_hash(LONG), None, 0, 2, 0, False, b"of two"))
    parity = LIP_243_V01.encode(Segment(payload_hash(LONG), None, 0, 3, 1, True, b"parity"))

    def why(*contents: bytes) -> list[tuple[object, ...]]:
        return [(*row[3:5], row[6]) for row in joined(sent(list(contents))) if row[5] is None]

    assert why(second) == [(1, 3, "incomplete: of 3 segments 2 are missing, 0, 2")]
    assert why(first, forged, third) == [(3, 3, "hash_mismatch")]
    assert why(first, second, third, parity) == []
    assert why(beyond) == [
        (1, 3, "invalid: data segment 7 of 3 data and 0 parity: there is no such index")
    ]
    incomplete = (1, 3, "incomplete: of 3 segments 2 are missing, 1, 2")
    mismatch = (
        "count_mismatch: data segment 0 of 2 data and 0 parity: 3 data and 0 parity in earlier "
        "segments"
    )
    assert why(first, of_two) == [(1, 2, mismatch), incomplete]


def test_what_a_participant_would_not_keep_is_not_kept() -> None:
    """However often a first segment comes: the oldest incomplete payloads make room."""
    first = segments(LONG)[0]
    set_bytes = SET_OVERHEAD_BYTES + SEGMENT_OVERHEAD_BYTES + len(first)
    rows = joined(sent([first] * 5), ReassemblyLimits(max_sender_buffered_bytes=2 * set_bytes))
    whys = [str(row[6])[:10] for row in rows]
    assert whys == ["evicted", "evicted", "evicted", "incomplete", "incomplete"]


@pytest.fixture(scope="module")
def messages(spark: SparkSession) -> DataFrame:
    """Two senders of one payload, of which one lacks a segment; twice, in some order."""
    rows = [
        (sender_id, *each)
        for sender_id, lacks in (("alice", -1), ("bob", 1))
        for each in sent([*segments(LONG), b"plain"])
        if each[0] != lacks
    ] * 2
    Random(2).shuffle(rows)
    empty = dict.fromkeys(MESSAGE.names)
    return spark.createDataFrame(
        [
            (
                tuple(
                    {
                        **empty,
                        "kind": "content",
                        "channel_id": "general",
                        "sender_id": sender_id,
                        "lamport_timestamp": lamport_timestamp,
                        "message_id": message_id,
                        "content": bytearray(content),
                    }.values()
                ),
            )
            for sender_id, lamport_timestamp, message_id, content in rows
        ]
        + [(tuple({**empty, "error": "no message"}.values()),)],
        f"message {MESSAGE.simpleString()}",
    )


def test_payloads(spark: SparkSession, messages: DataFrame) -> None:
    hashed, long = bytearray(payload_hash(LONG)), bytearray(LONG)
    why = "incomplete: of 3 segments 1 are missing, 1"
    plain = (["m3"], 3, None, 1, 1, bytearray(b"plain"), None)
    expected = [
        ("general", "alice", ["m0", "m1", "m2"], 2, hashed, 3, 3, long, None),
        ("general", "alice", *plain),
        ("general", "bob", ["m0", "m2"], 2, hashed, 2, 3, None, why),
        ("general", "bob", *plain),
    ]
    assertDataFrameEqual(payloads(messages), spark.createDataFrame(expected, PAYLOAD))


def test_what_a_real_channel_sent(spark: SparkSession, tmp_path: Path) -> None:
    """Both have the journals of all its messages."""
    sent = [bytes([number]) * length for number, length in enumerate((10, 5_000, 2_500))]

    async def talk() -> None:
        cut = {"segmentation": "lip-243-v0.1", "segment_size_bytes": 1_000}
        async with AsyncExitStack() as stack:
            group = Group(tmp_path, stack)
            told = [await group.join(name, **cut) for name in ("alice", "bob")]
            for payload in sent:
                await group.channels["alice"].send(payload)
            await told[1].until(lambda: set(told[1].contents) == set(sent))

    anyio.run(talk)
    lines = spark.read.format("sds_journal").load(str(tmp_path)).where("event like 'wire_%'")
    rows = payloads(lines.select("payload").transform(decoded)).collect()
    assert {bytes(row.payload): row.segments for row in rows} == dict(
        zip(sent, (1, 5, 3), strict=True)
    )
    assert [row.error for row in rows] == [None] * 3
