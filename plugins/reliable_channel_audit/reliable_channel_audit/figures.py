"""Figures of a channel, each a table made of facts: how fast, by which way, at what cost."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from .facts import WAY_OF_KIND
from .frames import MESSAGE, WHOSE, Facts, table
from .rates import LEVELS
from .schemas import CLOCK

QUANTILES: Final = tuple(n / 20 for n in range(21))
"""At which a curve of latencies is drawn."""


def acknowledgement_latency(facts: Facts) -> DataFrame:
    """From accepting an own message to its acknowledgement, by participant and by the evidence
    (ms)."""
    latency = F.col("acknowledged_ms") - F.col("accepted_ms")
    source = F.coalesce("source", F.lit("never")).alias("source")
    return (
        table(facts, "Acknowledgement")
        .groupBy("channel_id", "participant_id", source)
        .agg(F.count("*").alias("messages"), *_levels(latency))
        .orderBy("channel_id", "participant_id", "source")
    )


def ways(facts: Facts) -> DataFrame:
    """Each delivery of a message of others, by which way it came, and how long it took.

    A copy that came live is identified by its hash: it may be the first one, one sent again by its
    sender, or one that another participant sent to repair a loss. `unknown` is of a sender that
    left no journal.
    """
    kinds = sent_as(facts)
    way = F.when(F.col("source") == "store", "store")
    for kind, name in WAY_OF_KIND.items():
        way = way.when(F.col("kind") == kind, name)
    return (
        with_accepted(facts)
        .join(kinds, ["channel_id", "message_hash"], "left")
        .select(
            "channel_id",
            way.otherwise("unknown").alias("way"),
            "accepted_ms",
            (F.col("at_ms") - F.col("accepted_ms")).alias("delay_ms"),
            (F.col("at_ms") - F.col("missing_since_ms")).alias("missing_ms"),
        )
    )


def sent_as(facts: Facts) -> DataFrame:
    """What kind of message each copy was that went out, by its hash."""
    sent = table(facts, "Dispatch", "channel_id", "message_hash", "kind")
    return sent.groupBy("channel_id", "message_hash").agg(F.min("kind").alias("kind"))


def with_accepted(facts: Facts) -> DataFrame:
    """Deliveries to others than the sender, with `accepted_ms`, when the sender had the message,
    or else the first participant that logged it. What a sender gets back after it lost its state
    is no delivery."""
    columns = *MESSAGE, "sender_id", "participant_id", "message_hash", "source", "at_ms"
    came = table(facts, "Delivery", *columns, "missing_since_ms", own=False)
    is_others = ~F.col("sender_id").eqNullSafe(F.col("participant_id"))
    return came.where(is_others).join(accepted(facts), [*MESSAGE])


def accepted(facts: Facts) -> DataFrame:
    """Each message, and when it was accepted."""
    own_ms = F.min(F.when(F.col("first_segment_id").isNotNull(), F.col("at_ms")))
    first_ms = F.coalesce(own_ms, F.min("at_ms")).alias("accepted_ms")
    return table(facts, "Delivery").groupBy(*MESSAGE).agg(first_ms)


def repair_efficiency(facts: Facts) -> DataFrame:
    """Messages that were requested from others, and how often each participant asked and
    answered."""
    return (
        table(facts, "Repair")
        .groupBy("channel_id", "participant_id")
        .agg(
            F.count_if(F.col("requests") > 0).alias("asked_for"),
            F.sum("requests").alias("requests"),
            F.sum("responses").alias("responses"),
        )
        .withColumn("requests_per_loss", F.try_divide("requests", "asked_for"))
        .orderBy("channel_id", "participant_id")
    )


def overhead(facts: Facts) -> DataFrame:
    """Bytes that went out, by kind of message and by what they were for."""
    fields = [name for name in table(facts, "Traffic").columns if name.endswith("_bytes")]
    sums = [F.sum(name).alias(name) for name in ("messages", *fields)]
    return (
        table(facts, "Traffic")
        .groupBy("channel_id", "kind")
        .agg(*sums)
        .withColumn("bytes_per_message", F.try_divide("total_bytes", "messages"))
        .orderBy("channel_id", "kind")
    )


def sync_traffic(facts: Facts) -> DataFrame:
    """Sync messages by the size of the group: for how long so many participants were there, and
    what all of them together sent meanwhile. From 100 on sizes are rounded down to two digits."""
    lives = table(facts, "Life")
    came = lives.select("channel_id", F.col("opened_ms").alias("at_ms"), F.lit(1).alias("change"))
    left = lives.select("channel_id", F.col("until_ms").alias("at_ms"), F.lit(-1).alias("change"))
    # Each second's are put at its last one: many participants may send at once.
    sent = (
        table(facts, "Dispatch")
        .where("kind = 'sync'")
        .groupBy("channel_id", F.floor(F.col("at_ms") / 1_000).alias("second"))
        .agg(
            F.max("at_ms").alias("at_ms"),
            F.lit(0).alias("change"),
            F.count("*").alias("messages"),
            F.sum("payload_bytes").alias("bytes"),
        )
        .drop("second")
    )
    # Who comes hears what is sent in that moment, and who leaves did, too.
    in_time = Window.partitionBy("channel_id").orderBy("at_ms", F.desc("change"))
    there = F.sum("change").over(in_time.rowsBetween(Window.unboundedPreceding, 0))
    unit = F.pow(10, F.greatest(F.floor(F.log10("there")) - 1, F.lit(0)))
    minutes = F.sum(F.col("next_ms") - F.col("at_ms")) / 60_000
    return (
        came.union(left)
        .unionByName(sent, allowMissingColumns=True)
        .select("*", there.alias("there"), F.lead("at_ms").over(in_time).alias("next_ms"))
        .where("there > 0")
        .groupBy("channel_id", (F.col("there") - F.col("there") % unit).cast("long").alias("size"))
        .agg(
            minutes.alias("minutes"),
            F.coalesce(F.sum("messages"), F.lit(0)).alias("sync_messages"),
            F.coalesce(F.sum("bytes"), F.lit(0)).alias("sync_bytes"),
        )
        .where("round(minutes, 2) > 0 or sync_messages > 0")
        .withColumn("messages_per_minute", F.try_divide("sync_messages", "minutes"))
        .withColumn("bytes_per_minute", F.try_divide("sync_bytes", "minutes"))
        .withColumnRenamed("size", "participants")
        .drop("sync_bytes")
        .orderBy("channel_id", "participants")
    )


def clocks(facts: Facts) -> DataFrame:
    """How far each participant's clock is ahead of the median one (ms), from the quickest messages
    to and from each of its peers; right by half of what one way is quicker than the other."""
    rows = [(*whose, *offset) for whose, offset in sorted(facts.offsets.items())]
    return facts.spark.createDataFrame(rows, CLOCK)


def members(facts: Facts) -> DataFrame:
    """What was sent that no honest member sends, and how many participants saw it; the name is
    the one that the message gave."""
    return (
        table(facts, "Deed")
        .groupBy("channel_id", F.concat_ws(": ", "sender", "what").alias("what"))
        .agg(
            F.sum("times").alias("times"),
            F.count_distinct("participant_id").alias("seen_by"),
            F.min("at_ms").alias("at_ms"),
        )
        .orderBy("channel_id", "what")
    )


def late_joiners(facts: Facts) -> DataFrame:
    """Participants that came after the first message, and their share of the messages before."""
    said = accepted(facts)
    began = said.groupBy("channel_id").agg(F.min("accepted_ms").alias("began_ms"))
    late = table(facts, "Life").join(began, "channel_id").where("opened_ms > began_ms")
    whose = *MESSAGE, "participant_id"
    has = table(facts, "Delivery", *whose, "at_ms").withColumn("has", F.lit(1))
    before = (
        late.select(*WHOSE, "opened_ms")
        .join(said, "channel_id")
        .where("accepted_ms < opened_ms")
        .join(has, [*whose], "left")
        # What an earlier life of the participant had does not count.
        .groupBy(*WHOSE, "message_id")
        .agg(F.max(F.when(F.col("at_ms") >= F.col("opened_ms"), F.col("has"))).alias("has"))
        .groupBy(*WHOSE)
        .agg(F.count("*").alias("said_before"), F.count("has").alias("has_of_them"))
    )
    return late.select(*WHOSE, "opened_ms", "owed_from_ms").join(before, [*WHOSE]).orderBy(*WHOSE)


def _levels(column: Column) -> list[Column]:
    levels = F.percentile_approx(column, F.array(*map(F.lit, LEVELS.values())), F.lit(10_000))
    return [levels[place].alias(name) for place, name in enumerate(LEVELS)]
