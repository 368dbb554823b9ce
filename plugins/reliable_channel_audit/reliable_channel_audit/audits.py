"""The promises of `promises.py` as DataFrames, for logs that do not fit into memory.

All begin with a table of facts (`sds_facts`), of which `table` picks one kind. Large comparisons
compare digests first, and look closer only at participants that differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial, reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from .clocks import AHEAD, BEHIND, MAX_OFFSET_MS
from .findings import NOBODY_HAS_IT, Audit
from .promises import ANOTHER_MESSAGE, LOST, NEVER, NO_JOURNAL_KNOWS, NOT_SENT
from .schemas import FACT, FACTS, FINDING, MANY
from .sources.batches import arrow_schema
from .sources.by_channel import by_channel, packed
from .sources.fact_batches import each_unpacked, repacked, unpacked

WHOSE: Final = ("channel_id", "participant_id", "life")
MESSAGE: Final = ("channel_id", "message_id")
MAX_LIGHT: Final = 250_000
"""Rows of a table that is sent to all tasks: 50 MB of ids and times, which a heap of 1 GB takes."""


def table(facts: DataFrame, kind: str, *names: str, own: bool | None = None) -> DataFrame:
    """The facts of one kind, named as in `schemas.FACTS`; all their columns, or these.

    Of deliveries those of own messages or of others' alone, where `own` is given.
    """
    chosen, columns = facts.where(F.col("fact") == kind), names or FACTS[kind].names
    if kind in MANY:
        return unpacked(chosen, kind, columns, own=own)
    rare = F.get("rare", F.lit(0))
    return chosen.select(
        *(F.col(name) if name in FACT.names else rare[name].alias(name) for name in columns)
    )


def light(frame: DataFrame) -> DataFrame:
    """The frame, broadcast in joins where it has at most `MAX_LIGHT` rows, which are counted now:
    then the other side stays where it is."""
    return F.broadcast(frame) if frame.count() <= MAX_LIGHT else frame


def rows_of_kind(facts: DataFrame) -> dict[str, int]:
    """How many facts there are of each kind."""
    rows = facts.groupBy("fact").agg(F.sum("rows").alias("rows")).collect()
    return {row.fact: row.rows for row in rows}


def alike(lives: DataFrame) -> DataFrame:
    """Channels of several participants whose logs are all the same, by their digests, and how many
    messages each has.

    Comparisons between their participants can find nothing, so none need be made.
    """
    whose, log = F.col("participant_id"), F.col("log_digest")
    return (
        lives.groupBy("channel_id")
        .agg(
            (F.min(log) == F.max(log)).alias("is_one_log"),
            (F.min(whose) != F.max(whose)).alias("is_of_several"),
            F.bool_and("is_whole").alias("is_whole"),
            F.max("entries").alias("messages"),
        )
        .where("is_one_log and is_of_several and is_whole")
        .select("channel_id", "messages")
    )


def findings_alone(facts: DataFrame) -> DataFrame:
    """What was broken, as far as each participant shows it, or its clock."""
    parts = table(facts, "Finding"), twice_at_a_time(table(facts, "Life")), clocks_apart(facts)
    return reduce(DataFrame.unionByName, parts)


def findings_between(facts: DataFrame, missing: DataFrame) -> DataFrame:
    """What was broken between participants, in channels that are not `alike`; with what is
    `absent`."""
    lives, deliveries = table(facts, "Life"), table(facts, "Delivery")
    parts = (
        missing.where("is_due").select(*FINDING.names),
        acknowledged_and_lost(facts),
        invented(facts),
        ids_of_several(deliveries),
        unequal_logs(lives, deliveries),
    )
    return reduce(DataFrame.unionByName, parts)


def messages(deliveries: DataFrame) -> DataFrame:
    """Each message, as its sender had it, or else as it was logged first."""
    columns = ("lamport_timestamp", "sender_id", "participant_id", "is_own")
    first = F.min_by(
        F.struct("at_ms", *columns),
        F.struct(~F.col("is_own"), "at_ms", "lamport_timestamp", "sender_id", "participant_id"),
    )
    return (
        deliveries.withColumn("is_own", F.col("first_segment_id").isNotNull())
        .groupBy(*MESSAGE)
        .agg(first.alias("first"))
        .select(
            *MESSAGE,
            F.col("first.at_ms").alias("accepted_ms"),
            *(F.col(f"first.{name}") for name in columns),
        )
    )


def incomplete(lives: DataFrame, deliveries: DataFrame) -> DataFrame:
    """The lives that have not all messages of their channel, by a digest of their ids."""
    digest = (F.count("*").alias("messages"), F.bit_xor(F.xxhash64("message_id")).alias("digest"))
    whole = deliveries.select(*MESSAGE).distinct().groupBy("channel_id").agg(*digest)
    own = deliveries.groupBy(*WHOSE).agg(*digest)
    complete = own.join(whole, ["channel_id", "messages", "digest"], "left_semi")
    return lives.join(complete, [*WHOSE], "left_anti")


def absent(facts: DataFrame, settle_ms: int) -> DataFrame:
    """Messages that were accepted, wanted by a participant that was there, and are not in its log.

    `is_due` is false where it is too early to say. A message whose failure was reported to
    its sender does not count, nor does one that was `not_sent`.
    Times are corrected by what clocks are certainly ahead.
    """
    lives, deliveries = table(facts, "Life"), table(facts, "Delivery")
    outcomes = table(facts, "Outcome")
    failures = outcomes.where("is_failure").select(
        "channel_id", F.col("message_id").alias("first_segment_id")
    )
    failed = deliveries.join(failures, ["channel_id", "first_segment_id"], "left_semi")
    lost = outcomes.where("not is_failure").select(*WHOSE, "message_id", F.lit(LOST).alias("lost"))
    what = F.coalesce("lost", F.lit(NEVER))
    owed = messages(deliveries).join(failed, [*MESSAGE], "left_anti")
    owed = owed.join(not_sent(facts), [*MESSAGE], "left_anti")
    ahead = certain_offsets(facts).select("channel_id", "participant_id", "ahead_ms")
    clock = ["channel_id", "participant_id"]
    owed = (
        owed.join(ahead, clock, "left")
        .withColumn("true_ms", F.col("accepted_ms") - F.coalesce("ahead_ms", F.lit(0)))
        .withColumn(
            "sent_ms",
            F.when(F.col("is_own"), F.col("true_ms")).otherwise(
                F.least("true_ms", "lamport_timestamp")
            ),
        )
        .drop("participant_id", "ahead_ms")
    )
    correction = F.coalesce("ahead_ms", F.lit(0))
    return (
        incomplete(lives, deliveries)
        .join(ahead, clock, "left")
        .withColumn("owed_from_ms", F.col("owed_from_ms") - correction)
        .withColumn("until_ms", F.col("until_ms") - correction)
        .join(owed, "channel_id")
        .where("sent_ms >= owed_from_ms and true_ms <= until_ms")
        .join(deliveries, [*WHOSE, "message_id"], "left_anti")
        .join(lost.distinct(), [*WHOSE, "message_id"], "left")
        .select(
            F.lit(Audit.DELIVERY.value).alias("audit"),
            *WHOSE,
            "message_id",
            F.col("accepted_ms").alias("at_ms"),
            F.concat(what, F.lit("; sent by "), "sender_id").alias("detail"),
            (F.col("true_ms") + settle_ms <= F.col("until_ms")).alias("is_due"),
        )
    )


def without_journal(facts: DataFrame) -> DataFrame:
    """Channel and name of each participant that was heard and left no journal."""
    heard = table(facts, "HeardSender").select(
        "channel_id", F.col("sender_id").alias("participant_id")
    )
    here = table(facts, "Life").select("channel_id", "participant_id")
    return heard.distinct().join(here, ["channel_id", "participant_id"], "left_anti")


def acknowledged_and_lost(facts: DataFrame) -> DataFrame:
    """Own messages that were acknowledged, and that no other journal has, where all are here."""
    theirs = table(facts, "Delivery").select(
        "channel_id", "message_id", F.col("participant_id").alias("holder")
    )
    ours = table(facts, "Acknowledgement").where("acknowledged_ms is not null").alias("ours")
    mine = F.expr(
        "ours.channel_id = theirs.channel_id and ours.message_id = theirs.message_id "
        "and ours.participant_id != theirs.holder"
    )
    return (
        ours.join(theirs.alias("theirs"), mine, "left_anti")
        .join(without_journal(facts), "channel_id", "left_anti")
        .withColumn("at_ms", F.col("acknowledged_ms"))
        .transform(lambda found: _findings(found, Audit.ACKNOWLEDGEMENTS, F.lit(NOBODY_HAS_IT)))
    )


def orphaned(facts: DataFrame) -> DataFrame:
    """References to messages that no journal knows, where all are here."""
    known = table(facts, "Delivery").select(*MESSAGE)
    detail = F.concat("first_segment_id", F.lit(NO_JOURNAL_KNOWS))
    return (
        table(facts, "Orphan")
        .distinct()
        .join(known, [*MESSAGE], "left_anti")
        .join(without_journal(facts), "channel_id", "left_anti")
        .transform(lambda found: _findings(found, Audit.REFERENCES, detail))
    )


def not_sent(facts: DataFrame) -> DataFrame:
    """Messages in logs that their sender did not send, though its journal is of that time; and when
    one was logged first."""
    clock = ["channel_id", "participant_id"]
    ahead = certain_offsets(facts).select(*clock, "ahead_ms")
    correction = F.coalesce("ahead_ms", F.lit(0))
    messages = (
        table(facts, "Delivery")
        .join(ahead, clock, "left")
        .withColumn("true_ms", F.col("at_ms") - correction)
        .groupBy(*MESSAGE)
        .agg(
            F.count_distinct("sender_id").alias("senders"),
            F.bool_or(F.col("participant_id") == F.col("sender_id")).alias("is_sent"),
            F.min("sender_id").alias("sender_id"),
            F.min("true_ms").alias("stamp_ms"),
            F.min("at_ms").alias("at_ms"),
        )
        .where("senders = 1 and not is_sent")
    )
    spans = (
        table(facts, "Life")
        .join(ahead, clock, "left")
        .select(
            "channel_id",
            F.col("participant_id").alias("sender_id"),
            (F.col("opened_ms") - correction).alias("opened_ms"),
            (F.col("until_ms") - correction).alias("until_ms"),
        )
    )
    return (
        messages.join(spans, ["channel_id", "sender_id"])
        .where("stamp_ms between opened_ms and until_ms")
        .select(*MESSAGE, "at_ms")
        .distinct()
    )


def invented(facts: DataFrame) -> DataFrame:
    """Messages that were `not_sent`, at the participant that sent them out and did not receive
    them; where no journal shows that, at those that have them."""
    false = not_sent(facts)
    deliveries = table(facts, "Delivery")
    held = deliveries.select(*WHOSE, "message_id", "message_hash").join(false, [*MESSAGE])
    received = held.where("message_hash is not null").select(*MESSAGE, "participant_id")
    sent = (
        table(facts, "Dispatch")
        .select(*WHOSE, "message_hash")
        .join(
            held.select(*MESSAGE, "message_hash", "at_ms").distinct(),
            ["channel_id", "message_hash"],
        )
        .join(received, [*MESSAGE, "participant_id"], "left_anti")
        .select(*WHOSE, "message_id", "at_ms")
    )
    unsent = held.join(sent, [*MESSAGE], "left_anti").select(*WHOSE, "message_id", "at_ms")
    return (
        sent.unionByName(unsent)
        .distinct()
        .transform(lambda found: _findings(found, Audit.IDS, F.lit(NOT_SENT)))
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
    """Participants with two journals of the same time."""
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


def own_lags(facts: DataFrame) -> DataFrame:
    """Lags of messages that their sender sent out itself, by its journal; some more than once.

    Where there are few, tasks look for them in what went out, which need not become rows for that.
    """
    lags = table(facts, "Lag")
    if rows_of_kind(facts).get("Lag", 0) <= MAX_LIGHT:
        look = partial(_sent_by_senders, packed(lags.toArrow()))
        chunks = facts.where("fact = 'Dispatch'").select("channel_id", "many")
        return chunks.mapInArrow(look, FACTS["Lag"])
    sent = table(facts, "Dispatch", "channel_id", "participant_id", "message_hash")
    copy = ["channel_id", "sender_id", "message_hash"]
    return sent.withColumnRenamed("participant_id", "sender_id").join(lags, copy)


def _sent_by_senders(lags: bytes, given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    of, copy = by_channel(lags), ["sender_id", "message_hash"]
    schema = arrow_schema(FACTS["Lag"])
    for channel_id, sent in each_unpacked("Dispatch", ("participant_id", "message_hash"), given):
        if (known := of.get(channel_id)) is not None:
            went = pa.Table.from_batches([sent]).rename_columns(copy)
            found = known.join(went, copy, join_type="inner")
            yield from found.select(schema.names).cast(schema).to_batches()


def clock_offsets(lags: DataFrame) -> DataFrame:
    """How far each participant's clock is ahead of most others (ms), and the interval in which the
    truth is, from `own_lags` (`clocks`)."""
    least = lags.groupBy("channel_id", "participant_id", "sender_id").agg(
        F.min("least_ms").alias("there_ms")
    )
    back = least.select(
        "channel_id",
        F.col("sender_id").alias("participant_id"),
        F.col("participant_id").alias("sender_id"),
        F.col("there_ms").alias("back_ms"),
    )
    offset_ms = F.floor(_median(F.col("there_ms") - F.col("back_ms")) / 2)
    return (
        least.join(back, ["channel_id", "participant_id", "sender_id"])
        .groupBy("channel_id", "participant_id")
        .agg(
            F.count("*").alias("peers"),
            offset_ms.alias("offset_ms"),
            _median(-F.col("back_ms")).alias("least_ms"),
            _median(F.col("there_ms")).alias("most_ms"),
        )
    )


def certain_offsets(facts: DataFrame) -> DataFrame:
    """By how much each clock is certainly ahead (`clocks.Offset.certain_ms`), where it is."""
    return certain(clock_offsets(own_lags(facts)))


def certain(offsets: DataFrame) -> DataFrame:
    """Those of `clock_offsets` that are certain, with `ahead_ms`."""
    ahead = F.greatest("least_ms", F.lit(0)) + F.least("most_ms", F.lit(0))
    known = offsets.where("least_ms <= most_ms")
    return known.withColumn("ahead_ms", ahead).where("ahead_ms != 0")


def in_true_time(facts: DataFrame, ahead_ms: Mapping[tuple[str, str], int]) -> DataFrame:
    """Facts with deliveries at the time that they had by a clock that is not ahead; by channel and
    participant it is `ahead_ms`."""
    if not ahead_ms:
        return facts

    def change(channel_id: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        names = rows.column("participant_id").to_pylist()
        ahead = pa.array([ahead_ms.get((channel_id, name), 0) for name in names])
        for name in ("at_ms", "missing_since_ms"):
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, pc.subtract(rows.column(name), ahead))
        return rows

    is_wrong = F.expr("fact = 'Delivery'") & F.col("channel_id").isin(
        {each for each, _ in ahead_ms}
    )
    return facts.where(~is_wrong).unionByName(repacked(facts.where(is_wrong), "Delivery", change))


def clocks_apart(facts: DataFrame) -> DataFrame:
    """Participants whose clock is certainly far from those of most others."""
    last = (
        table(facts, "Life")
        .groupBy("channel_id", "participant_id")
        .agg(F.max_by(F.struct("life", F.col("until_ms").alias("at_ms")), "life").alias("last"))
    )
    numbers = ("offset_ms", "least_ms", "most_ms")
    ahead = F.format_string(AHEAD.replace("{}", "%d"), *numbers)
    turned = (-F.col(name) for name in ("offset_ms", "most_ms", "least_ms"))
    behind = F.format_string(BEHIND.replace("{}", "%d"), *turned)
    detail = F.when(F.col("offset_ms") >= 0, ahead).otherwise(behind)
    return (
        certain_offsets(facts)
        .where(F.abs("ahead_ms") > MAX_OFFSET_MS)
        .join(last, ["channel_id", "participant_id"])
        .select("channel_id", "participant_id", "last.*", *numbers, F.lit("").alias("message_id"))
        .transform(lambda found: _findings(found, Audit.CLOCK, detail))
    )


def _median(value: Column) -> Column:
    """Of a group and 0, as a clock agrees with itself."""
    ordered = F.array_sort(F.array_insert(F.collect_list(value), 1, F.lit(0)))
    return F.get(ordered, F.floor(F.size(ordered) / 2))


def _place(position: str) -> Column:
    """Which one of what both have this is, from 0."""
    return F.row_number().over(Window.partitionBy(*WHOSE).orderBy(position, "message_id")) - 1


def _findings(found: DataFrame, audit: Audit, detail: Column) -> DataFrame:
    return found.select(
        F.lit(audit.value).alias("audit"), *WHOSE, "message_id", "at_ms", detail.alias("detail")
    )
