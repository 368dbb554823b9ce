"""The promises as DataFrames: small tables of facts in, small tables out."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from reliable_channel_audit import audits
from reliable_channel_audit.audits import table
from reliable_channel_audit.promises import ANOTHER_MESSAGE
from reliable_channel_audit.schemas import FINDING

from .tables import Row, delivery, fact, facts

Found = tuple[str, str, str, int, str, int, str]


def life(participant_id: str, **values: object) -> Row:
    times = {"opened_ms": 0, "until_ms": 60_000, "owed_from_ms": 0}
    given = {"path": participant_id, "entries": 2, "log_digest": "same", "is_whole": True}
    return fact("Life", participant_id, **{**given, **times, **values})


def finding(audit: str, whose: str, message_id: str, at_ms: int, detail: str) -> Found:
    return (audit, "general", whose, 0, message_id, at_ms, detail)


def check(spark: SparkSession, found: DataFrame, *expected: Found) -> None:
    assertDataFrameEqual(found, spark.createDataFrame(list(expected), FINDING), ignoreNullable=True)


@pytest.fixture(scope="module")
def group(spark: SparkSession) -> DataFrame:
    """Alice said `m` and `n`, which failed; bob has both, carol and dave neither; erin came when
    it was over."""
    n = {"message_id": "n", "lamport_timestamp": 2_000}
    return facts(
        spark,
        *map(life, ("alice", "bob", "carol")),
        life("dave", until_ms=5_000),
        life("erin", owed_from_ms=9_000),
        delivery("alice", 1_000, first_segment_id="m"),
        delivery("alice", 2_000, first_segment_id="n", **n),
        delivery("bob", 1_100),
        delivery("bob", 900, **n),
        fact("Outcome", "alice", message_id="n", is_failure=True),
        fact("Outcome", "carol", message_id="m", is_failure=False),
    )


def test_messages(spark: SparkSession, group: DataFrame) -> None:
    expected = [
        ("general", "m", 1_000, 1_000, "alice"),
        ("general", "n", 2_000, 2_000, "alice"),
    ]
    schema = (
        "channel_id string, message_id string, accepted_ms long, lamport_timestamp long, "
        "sender_id string"
    )
    assertDataFrameEqual(
        audits.messages(table(group, "Delivery")).drop("participant_id", "is_own"),
        spark.createDataFrame(expected, schema),
        ignoreNullable=True,
    )


def test_incomplete(spark: SparkSession, group: DataFrame) -> None:
    found = audits.incomplete(table(group, "Life"), table(group, "Delivery"))
    expected = [(name,) for name in ("carol", "dave", "erin")]
    assertDataFrameEqual(
        found.select("participant_id"),
        spark.createDataFrame(expected, "participant_id string"),
        ignoreNullable=True,
    )


def test_absent(spark: SparkSession, group: DataFrame) -> None:
    """What failed is owed to nobody, and it is too early to say what dave will have."""
    expected = [
        (*finding("delivery", "carol", "m", 1_000, "declared lost; sent by alice"), True),
        (*finding("delivery", "dave", "m", 1_000, "never delivered; sent by alice"), False),
    ]
    assertDataFrameEqual(
        audits.absent(group, 10_000),
        spark.createDataFrame(expected, [*FINDING.names, "is_due"]),
        ignoreNullable=True,
    )


def test_ids_of_several(spark: SparkSession) -> None:
    """Its sender knows best what it sent; else most do."""
    given = facts(
        spark,
        delivery("alice", 1, content_sha256=b"1", first_segment_id="m"),
        *(delivery(name, 2, content_sha256=b"2") for name in ("bob", "carol")),
        *(delivery(name, 3, message_id="n", content_sha256=b"3") for name in ("bob", "carol")),
        delivery("dave", 4, message_id="n", content_sha256=b"4"),
    )
    check(
        spark,
        audits.ids_of_several(table(given, "Delivery")),
        finding("ids", "bob", "m", 2, ANOTHER_MESSAGE),
        finding("ids", "carol", "m", 2, ANOTHER_MESSAGE),
        finding("ids", "dave", "n", 4, ANOTHER_MESSAGE),
    )


def test_unequal_logs(spark: SparkSession) -> None:
    """The first place, among what both have; most others are the model."""
    logs = {"alice": "mno", "bob": "mno", "carol": "mon", "dave": "xno"}
    given = facts(
        spark,
        *(life(name, log_digest=log) for name, log in logs.items()),
        *(
            delivery(name, 1, message_id=message_id, log_position=position)
            for name, log in logs.items()
            for position, message_id in enumerate(log)
        ),
    )
    lives = table(given, "Life")
    model = audits.models(lives).select("participant_id", "log_digest")
    assertDataFrameEqual(
        model, spark.createDataFrame([("bob", "mno")], model.schema), ignoreNullable=True
    )
    detail = "position 1 of what both have is n in the log of bob"
    check(
        spark,
        audits.unequal_logs(lives, table(given, "Delivery")),
        finding("equal_logs", "carol", "o", 60_000, detail),
    )


def test_twice_at_a_time(spark: SparkSession) -> None:
    again: dict[str, object] = {"life": 1, "path": "again"}
    given = facts(
        spark,
        life("alice"),
        life("alice", **{**again, "opened_ms": 59_000}),
        life("bob"),
        life("bob", **{**again, "opened_ms": 60_000}),
    )
    found = audits.twice_at_a_time(table(given, "Life"))
    row = ("journals", "general", "alice", 1, "", 59_000, "again and alice overlap")
    check(spark, found, row)


@pytest.mark.parametrize(
    ("to_carol", "from_carol", "of_carol", "of_others", "detail"),
    [
        (6_010, -5_990, (6_000, 5_990, 6_010), (0, -10, 0), "6000 ms ahead of"),
        (-5_990, 6_010, (-6_000, -6_010, -5_990), (0, 0, 10), "6000 ms behind"),
    ],
)
def test_clocks_apart(
    spark: SparkSession,
    to_carol: int,
    from_carol: int,
    of_carol: tuple[int, int, int],
    of_others: tuple[int, int, int],
    detail: str,
) -> None:
    pairs = [
        ("alice", "bob", 10),
        ("bob", "alice", 10),
        ("alice", "carol", from_carol),
        ("bob", "carol", from_carol),
        ("carol", "alice", to_carol),
        ("carol", "bob", to_carol),
    ]
    hashed: dict[str, object] = {"message_hash": b"h"}
    given = facts(
        spark,
        *map(life, ("alice", "bob", "carol")),
        *(fact("Lag", one, sender_id=other, least_ms=ms, **hashed) for one, other, ms in pairs),
        *(fact("Dispatch", name, **hashed) for name in ("alice", "bob", "carol")),
        fact("Lag", "alice", sender_id="bob", least_ms=-99_999, message_hash=b"a repair"),
    )
    lags = audits.own_lags(given)
    schema = "participant_id string, peers long, offset_ms long, least_ms long, most_ms long"
    offsets = [("alice", 2, *of_others), ("bob", 2, *of_others), ("carol", 2, *of_carol)]
    assertDataFrameEqual(
        audits.clock_offsets(lags).drop("channel_id"),
        spark.createDataFrame(offsets, schema),
        ignoreNullable=True,
    )
    described = f"the clock is {detail} most others, 5990 to 6010"
    check(
        spark,
        audits.clocks_apart(given),
        finding("clock", "carol", "", 60_000, described),
    )
