"""Payloads become columns; what is no message becomes a row that says why."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from reliable_channel.pipeline.decode import decode_batch, decoded
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.wire import NimCodec, SpecCodec

SAID = Message(
    "alice",
    "m3",
    "general",
    1_700_000_000_000,
    (HistoryEntry("m1", b"h" * 32), HistoryEntry("m2")),
    b"bloom",
    (HistoryEntry("m0", None, "bob"),),
    b"hello",
)
SYNC = Message("bob", "s1", "general", 1_700_000_000_001, (HistoryEntry("m3"),), b"bloom")
ROW = {
    "channel_id": "general",
    "sender_id": "alice",
    "message_id": "m3",
    "lamport_timestamp": 1_700_000_000_000,
    "causal_history": ["m1", "m2"],
    "repair_request": ["m0"],
    "content": b"hello",
    "signature": None,
    "bloom_filter": None,
    "error": None,
}


def decode(*payloads: bytes | None, blooms: bool = False) -> list[dict[str, object]]:
    rows: list[dict[str, object]]
    rows = decode_batch(pa.array(payloads, pa.binary()), blooms=blooms).to_pylist()
    return rows


@pytest.mark.parametrize(("dialect", "codec"), [("spec", SpecCodec()), ("nim", NimCodec())])
def test_both_dialects(dialect: str, codec: SpecCodec | NimCodec) -> None:
    assert decode(codec.encode(SAID)) == [{"dialect": dialect, "kind": "content", **ROW}]


def test_kinds_and_blooms() -> None:
    said, sync = decode(SpecCodec().encode(SAID), SpecCodec().encode(SYNC), blooms=True)
    assert (said["kind"], sync["kind"]) == ("content", "sync")
    assert (said["bloom_filter"], sync["content"]) == (b"bloom", None)


def test_what_is_no_message_says_why() -> None:
    far = Message("alice", "m", "general", 2**64 - 1, (), None, (), b"content")
    broken, empty, ahead, null = decode(b"\xff\xff", b"", SpecCodec().encode(far), None)
    assert str(broken["error"]).startswith("not an SDS message")
    assert str(empty["error"]).startswith("neither lamport_timestamp nor content")
    assert str(ahead["error"]).startswith("lamport_timestamp 18446744073709551615")
    assert set(null.values()) == {None}
    assert decode() == []


def test_a_column_of_any_table(spark: SparkSession) -> None:
    rows = [(1, bytearray(SpecCodec().encode(SAID))), (2, bytearray(b"\xff"))]
    frame = spark.createDataFrame(rows, "number long, payload binary")
    found = decoded(frame).select("number", "message.message_id", "message.error").collect()
    assert [(row.number, row.message_id) for row in found] == [(1, "m3"), (2, None)]
    assert found[0].error is None
    assert found[1].error.startswith("not an SDS message")
