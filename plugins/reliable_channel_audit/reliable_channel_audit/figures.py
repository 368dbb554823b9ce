"""Figures of a channel, each a table made of facts: how fast, by which way, at what cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from .audits import MESSAGE, WHOSE, alike, context_of, light, messages, table
from .facts import WAY_OF_KIND
from .promises import HOUR_MS
from .rates import LEVELS
from .schemas import CLOCK
from .verdict import Lost, Rate

PAIR: Final = ("channel_id", "sender_id", "receiver_id")
QUANTILES: Final = tuple(n / 20 for n in range(21))
"""At which a curve of latencies is drawn."""
_GROUPS: Final = (["channel_id"], ["channel_id", "hour_ms"], [*PAIR])


def acknowledgement_latency(facts: DataFrame) -> DataFrame:
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


def ways(facts: DataFrame) -> DataFrame:
    """Each delivery of a message of others, by which way it came, and how long it took.

    A copy that came live is identified by its hash: it may be the first one, one sent again by its
    sender, or one that another participant sent to repair a loss. `unknown` is of a sender that
    left no journal.
    """
    kinds = light(sent_as(facts))
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


def delivery_rates(facts: DataFrame, lost: Iterable[Lost]) -> DataFrame:
    """Delivery rate and latency of each channel, of each hour in which messages were accepted, and
    from each sender to each receiver (`verdict.Rate`)."""
    hour = (F.col("accepted_ms") - F.col("accepted_ms") % HOUR_MS).alias("hour_ms")
    group = "channel_id", "sender_id", "receiver_id", "hour_ms"
    came = with_accepted(facts).select(
        "channel_id",
        "sender_id",
        F.col("participant_id").alias("receiver_id"),
        hour,
        F.lit(0).alias("messages"),
        (F.col("at_ms") - F.col("accepted_ms")).alias("delay_ms"),
    )
    gone = facts.sparkSession.createDataFrame(list(lost), came.drop("delay_ms").schema)
    both = came.unionByName(gone, allowMissingColumns=True)
    delivered = F.count("delay_ms").alias("delivered")
    share = F.col("delivered") / (F.col("delivered") + F.col("lost"))
    return (
        both.groupingSets(_GROUPS, *group)
        .agg(delivered, F.sum("messages").alias("lost"), *_levels(F.col("delay_ms")))
        .withColumn("rate", share)
        .select(*Rate._fields)
    )


def sent_as(facts: DataFrame) -> DataFrame:
    """What kind of message each copy was that went out, by its hash."""
    sent = table(facts, "Dispatch", "channel_id", "message_hash", "kind")
    return sent.groupBy("channel_id", "message_hash").agg(F.min("kind").alias("kind"))


def with_accepted(facts: DataFrame) -> DataFrame:
    """Deliveries to others than the sender, with `accepted_ms`, when the sender had the message,
    or else the first participant that logged it. What a sender gets back after it lost its state
    is no delivery.

    Senders' own deliveries, one of each message, are sent to the others, which then stay where
    they are; only those of senders without a journal are exchanged.
    """
    accepted, rest = own_and_rest(facts)
    whose = "sender_id", "participant_id"
    columns = *MESSAGE, *whose, "message_hash", "source", "at_ms", "missing_since_ms"
    is_others = ~F.col("sender_id").eqNullSafe(F.col("participant_id"))
    came = table(facts, "Delivery", *columns, own=False).where(is_others)
    came = came.join(accepted, [*MESSAGE])
    if rest is None:
        return came
    first = messages(rest).select(*MESSAGE, "accepted_ms")
    return came.unionByName(rest.select(*columns).where(is_others).join(first, [*MESSAGE]))


def own_and_rest(facts: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """Messages that their senders logged and when (`accepted_ms`), and deliveries of all other
    messages; None where digests show that there are none."""
    own = table(facts, "Delivery", *MESSAGE, "at_ms", own=True)
    accepted = own.groupBy(*MESSAGE).agg(F.min("at_ms").alias("accepted_ms"))
    counts = accepted.groupBy("channel_id").agg(F.count("*").alias("messages"))
    told = alike(table(facts, "Life")).join(counts, ["channel_id", "messages"])
    channels = facts.where("fact = 'Delivery'").select("channel_id").distinct()
    others = channels.join(told, "channel_id", "left_anti")
    if others.isEmpty():
        return light(accepted), None
    deliveries = table(facts.join(F.broadcast(others), "channel_id", "left_semi"), "Delivery")
    return light(accepted), deliveries.join(light(accepted), [*MESSAGE], "left_anti")


def repair_efficiency(facts: DataFrame) -> DataFrame:
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


def overhead(facts: DataFrame) -> DataFrame:
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


def sync_traffic(facts: DataFrame) -> DataFrame:
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


def clocks(facts: DataFrame) -> DataFrame:
    """How far each participant's clock is ahead of the median one (ms), from the quickest messages
    to and from each of its peers; right by half of what one way is quicker than the other."""
    offsets = context_of(facts, None).offsets
    rows = [(*whose, *offset) for whose, offset in sorted(offsets.items())]
    return facts.sparkSession.createDataFrame(rows, CLOCK)


def members(facts: DataFrame) -> DataFrame:
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


def late_joiners(facts: DataFrame) -> DataFrame:
    """Participants that came after the first message, and their share of the messages before."""
    lives = table(facts, "Life")
    earliest = table(facts, "Delivery", "channel_id", "at_ms").groupBy("channel_id")
    earliest = earliest.agg(F.min("at_ms").alias("earliest_ms"))
    if lives.join(earliest, "channel_id").where("opened_ms > earliest_ms").isEmpty():
        facts = facts.limit(0)  # no participant is late, as mostly: nothing needs joining
    accepted, rest = own_and_rest(facts)
    firsts = accepted.select("channel_id", "accepted_ms")
    if rest is not None:
        firsts = firsts.union(rest.select("channel_id", "at_ms"))
    began = firsts.groupBy("channel_id").agg(F.min("accepted_ms").alias("began_ms"))
    late = lives.join(began, "channel_id").where("opened_ms > began_ms")
    channels = light(late.select("channel_id").distinct())
    deliveries = table(facts, "Delivery").join(channels, "channel_id", "left_semi")
    said = messages(deliveries).select(*MESSAGE, "accepted_ms")
    before = (
        late.select(*WHOSE, "opened_ms")
        .join(said, "channel_id")
        .where("accepted_ms < opened_ms")
        .join(
            deliveries.select(*WHOSE, "message_id", F.lit(1).alias("has")),
            [*WHOSE, "message_id"],
            "left",
        )
        .groupBy(*WHOSE)
        .agg(F.count("*").alias("said_before"), F.count("has").alias("has_of_them"))
    )
    return late.select(*WHOSE, "opened_ms", "owed_from_ms").join(before, [*WHOSE]).orderBy(*WHOSE)


def _levels(column: Column) -> list[Column]:
    levels = F.percentile_approx(column, F.array(*map(F.lit, LEVELS.values())), F.lit(10_000))
    return [levels[place].alias(name) for place, name in enumerate(LEVELS)]
