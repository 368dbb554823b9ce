"""The promises of `promises.py` as DataFrames, for logs that do not fit into memory.

All begin with a table of facts (`sds_facts`), of which `table` picks one kind. What compares a lot
with a lot compares digests first, and looks closer only at whoever differs.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from .clocks import APART, MOST_OFFSET_MS
from .findings import Audit
from .promises import ANOTHER_MESSAGE, LOST, NEVER
from .schemas import FACTS, FINDING

WHOSE: Final = ("channel_id", "participant_id", "life")
MESSAGE: Final = ("channel_id", "message_id")


def table(facts: DataFrame, kind: str) -> DataFrame:
    """The facts of one kind, named as in `schemas.FACTS`."""
    return facts.where(F.col("fact") == kind).select(*FACTS[kind].names)


def findings(facts: DataFrame, missing: DataFrame) -> DataFrame:
    """All that was broken: what each journal says by itself, and what they say together, with
    what is `absent`."""
    lives, deliveries = table(facts, "Life"), table(facts, "Delivery")
    parts = (
        table(facts, "Finding"),
        missing.where("is_due").select(*FINDING.names),
        ids_of_several(deliveries),
        unequal_logs(lives, deliveries),
        twice_at_a_time(lives),
        clocks_apart(lives, table(facts, "Lag")),
    )
    return reduce(DataFrame.unionByName, parts)


def messages(deliveries: DataFrame) -> DataFrame:
    """Each message, as whoever had it first had it: its sender, if that one left a journal."""
    first = F.min_by(
        F.struct("lamport_timestamp", "sender_id"),
        F.struct("at_ms", "lamport_timestamp", "sender_id"),
    )
    return (
        deliveries.groupBy(*MESSAGE)
        .agg(first.alias("first"), F.min("at_ms").alias("accepted_ms"))
        .select(*MESSAGE, "accepted_ms", "first.*")
    )


def incomplete(lives: DataFrame, deliveries: DataFrame) -> DataFrame:
    """The lives that have not all messages of their channel, by a digest of their ids."""
    digest = (F.count("*").alias("messages"), F.bit_xor(F.xxhash64("message_id")).alias("digest"))
    whole = deliveries.select(*MESSAGE).distinct().groupBy("channel_id").agg(*digest)
    own = deliveries.groupBy(*WHOSE).agg(*digest)
    complete = own.join(whole, ["channel_id", "messages", "digest"], "left_semi")
    return lives.join(complete, [*WHOSE], "left_anti")


def absent(facts: DataFrame, settle_ms: int) -> DataFrame:
    """What was accepted, wanted by somebody who was there, and is not in that one's log.

    `is_due` is false where it is too early to say. A message whose failure its sender was told is
    owed to nobody.
    """
    lives, deliveries = table(facts, "Life"), table(facts, "Delivery")
    outcomes = table(facts, "Outcome")
    failures = outcomes.where("is_failure").select(
        "channel_id", F.col("message_id").alias("first_segment_id")
    )
    failed = deliveries.join(failures, ["channel_id", "first_segment_id"], "left_semi")
    lost = outcomes.where("not is_failure").select(*WHOSE, "message_id", F.lit(LOST).alias("lost"))
    what = F.coalesce("lost", F.lit(NEVER))
    return (
        incomplete(lives, deliveries)
        .join(messages(deliveries).join(failed, [*MESSAGE], "left_anti"), "channel_id")
        .where("lamport_timestamp >= owed_from_ms and accepted_ms <= until_ms")
        .join(deliveries, [*WHOSE, "message_id"], "left_anti")
        .join(lost.distinct(), [*WHOSE, "message_id"], "left")
        .select(
            F.lit(Audit.DELIVERY.value).alias("audit"),
            *WHOSE,
            "message_id",
            F.col("accepted_ms").alias("at_ms"),
            F.concat(what, F.lit("; sent by "), "sender_id").alias("detail"),
            (F.col("accepted_ms") + settle_ms <= F.col("until_ms")).alias("is_due"),
        )
    )


def ids_of_several(deliveries: DataFrame) -> DataFrame:
    """Where a log has another message under an id than its sender accepted, or most others have."""
    meaning = ("sender_id", "lamport_timestamp", "content_sha256")
    kinds = deliveries.groupBy(*MESSAGE, *meaning).agg(
        F.bool_or(F.col("first_segment_id").isNotNull()).alias("is_own"), F.count("*").alias("n")
    )
    true = (
        kinds.groupBy(*MESSAGE)
        .agg(F.max(F.struct("is_own", "n", *meaning)).alias("true"), F.count("*").alias("kinds"))
        .where("kinds > 1")
    )
    return (
        deliveries.join(true, [*MESSAGE])
        .where(F.struct(*meaning) != F.struct(*(F.col(f"true.{name}") for name in meaning)))
        .transform(lambda found: _findings(found, Audit.IDS, F.lit(ANOTHER_MESSAGE)))
    )


def models(lives: DataFrame) -> DataFrame:
    """Of each channel a life whose log most others share."""
    shared = F.count("*").over(Window.partitionBy("channel_id", "log_digest"))
    whose = F.struct("participant_id", "life", "log_digest")
    best = F.max_by(whose, F.struct("shared", "entries", "participant_id", "life"))
    return (
        lives.withColumn("shared", shared)
        .groupBy("channel_id")
        .agg(best.alias("model"))
        .select("channel_id", "model.*")
    )


def unequal_logs(lives: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Where the order of a log differs first from that of most others, in what both have."""
    model = models(lives).withColumnsRenamed(
        {"participant_id": "model_id", "life": "model_life", "log_digest": "model_digest"}
    )
    others = lives.join(model, "channel_id").where("log_digest != model_digest")
    theirs = deliveries.select(*WHOSE, "message_id", "log_position")
    models_own = theirs.withColumnsRenamed(
        {"participant_id": "model_id", "life": "model_life", "log_position": "model_position"}
    )
    common = (
        others.select(*WHOSE, "until_ms", "model_id", "model_life")
        .join(theirs, [*WHOSE])
        .join(models_own, ["channel_id", "model_id", "model_life", "message_id"])
    )
    here = common.withColumn("place", _place("log_position"))
    there = common.select(
        *WHOSE, _place("model_position").alias("place"), F.col("message_id").alias("other_id")
    )
    found = F.struct("place", "message_id", "other_id", "until_ms", "model_id")
    detail = F.format_string(
        "position %d of what both have is %s in the log of %s", "place", "other_id", "model_id"
    )
    return (
        here.join(there, [*WHOSE, "place"])
        .where("message_id != other_id")
        .groupBy(*WHOSE)
        .agg(F.min(found).alias("found"))
        .select(*WHOSE, "found.*", F.col("found.until_ms").alias("at_ms"))
        .transform(lambda first: _findings(first, Audit.EQUAL_LOGS, detail))
    )


def twice_at_a_time(lives: DataFrame) -> DataFrame:
    """Participants of whom two journals tell at one time."""
    before = Window.partitionBy("channel_id", "participant_id").orderBy("opened_ms", "life")
    return (
        lives.withColumn("before_ms", F.lag("until_ms").over(before))
        .withColumn("before", F.lag("path").over(before))
        .where("opened_ms < before_ms")
        .withColumn("at_ms", F.col("opened_ms"))
        .withColumn("message_id", F.lit(""))
        .transform(
            lambda found: _findings(
                found,
                Audit.JOURNALS,
                F.concat("path", F.lit(" and "), "before", F.lit(" overlap")),
            )
        )
    )


def clock_offsets(lags: DataFrame) -> DataFrame:
    """How far each participant's clock is ahead of the median one (ms), by the quickest messages to
    and from each of its peers (`clocks`)."""
    least = lags.groupBy("channel_id", "participant_id", "sender_id").agg(
        F.min("least_ms").alias("there_ms")
    )
    back = least.select(
        "channel_id",
        F.col("sender_id").alias("participant_id"),
        F.col("participant_id").alias("sender_id"),
        F.col("there_ms").alias("back_ms"),
    )
    doubled = F.array_insert(F.collect_list(F.col("there_ms") - F.col("back_ms")), 1, F.lit(0))
    median = F.get(F.array_sort("doubled"), F.floor(F.col("peers") / 2))
    return (
        least.join(back, ["channel_id", "participant_id", "sender_id"])
        .groupBy("channel_id", "participant_id")
        .agg(F.count("*").alias("peers"), doubled.alias("doubled"))
        .select("channel_id", "participant_id", "peers", F.floor(median / 2).alias("offset_ms"))
    )


def clocks_apart(lives: DataFrame, lags: DataFrame) -> DataFrame:
    """Participants whose clock is far from those of most others."""
    last = lives.groupBy("channel_id", "participant_id").agg(
        F.max_by(F.struct("life", F.col("until_ms").alias("at_ms")), "life").alias("last")
    )
    detail = F.format_string(APART.replace("{}", "%d"), "offset_ms")
    return (
        clock_offsets(lags)
        .where(F.abs("offset_ms") > MOST_OFFSET_MS)
        .join(last, ["channel_id", "participant_id"])
        .select(
            "channel_id", "participant_id", "last.*", "offset_ms", F.lit("").alias("message_id")
        )
        .transform(lambda found: _findings(found, Audit.CLOCK, detail))
    )


def _place(position: str) -> Column:
    """Which one of what both have this is, from 0."""
    return F.row_number().over(Window.partitionBy(*WHOSE).orderBy(position, "message_id")) - 1


def _findings(found: DataFrame, audit: Audit, detail: Column) -> DataFrame:
    return found.select(
        F.lit(audit.value).alias("audit"), *WHOSE, "message_id", "at_ms", detail.alias("detail")
    )
