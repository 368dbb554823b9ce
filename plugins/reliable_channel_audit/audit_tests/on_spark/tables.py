"""Facts as rows, for small tables."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from reliable_channel_audit.check import check
from reliable_channel_audit.clocks import Offset
from reliable_channel_audit.frames import Facts, facts_of
from reliable_channel_audit.schemas import FACTS
from reliable_channel_audit.tables.ingest import ingest
from reliable_channel_audit.tables.judging import Judged, judge

Row = tuple[str, tuple[Any, ...]]


def fact(name: str, participant_id: str, **values: object) -> Row:
    """A fact of a participant of `general`; what is not given is null."""
    whose = {"channel_id": "general", "participant_id": participant_id, "life": 0}
    given = {**whose, **values}
    assert given.keys() - whose.keys() <= {*FACTS[name].names}
    return name, tuple(given.get(column) for column in FACTS[name].names)


def delivery(participant_id: str, at_ms: int, **values: object) -> Row:
    """The message `m` of alice in a log."""
    message = {"message_id": "m", "lamport_timestamp": 1_000, "sender_id": "alice"}
    return fact("Delivery", participant_id, at_ms=at_ms, **{**message, **values})


def facts(
    spark: SparkSession, *rows: Row, offsets: dict[tuple[str, str], Offset] | None = None
) -> Facts:
    kinds: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for name, values in rows:
        kinds[name].append(values)
    tables = {kind: spark.createDataFrame(kinds[kind], schema) for kind, schema in FACTS.items()}
    return Facts(spark, tables, offsets or {})


def judged(spark: SparkSession, journals: Path, directory: Path) -> tuple[Facts, Judged]:
    """The facts and the verdict of journals, which is that of `check`."""
    done = ingest([journals], directory, with_open=True)
    found = judge(directory, done.group)
    assert found.verdict == check([journals])
    return facts_of(spark, directory, found), found
