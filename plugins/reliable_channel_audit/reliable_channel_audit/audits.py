"""Facts as DataFrames, and the comparison of participants whose facts do not fit into memory.

`table` picks one kind of the facts (`sds_facts`). `compare` gives each task all there is of some
messages, and everything about lives, clocks and gaps; there `promises.compare_messages` judges
them, as it does in one process.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from .clocks import clock_offsets
from .facts import Acknowledgement, Delivery, Dispatch, Lag, Outcome
from .findings import Audit, Finding, Gap, HeardSender, Orphan
from .promises import Compared, Context, compare_messages, invented
from .replay import Life
from .schemas import DELIVERY, FACT, FACTS, FINDING, MANY
from .sources.batches import arrow_schema, batch, rows_of
from .sources.by_channel import by_channel, packed
from .sources.fact_batches import each_unpacked, repacked, rows_in, unpacked
from .verdict import counted

WHOSE: Final = ("channel_id", "participant_id", "life")
MESSAGE: Final = ("channel_id", "message_id")
MAX_LIGHT: Final = 250_000
"""Rows of a table that is sent to all tasks: 50 MB of ids and times, which a heap of 1 GB takes."""
BUCKET_ROWS: Final = 100_000
"""Facts of some messages that one task compares, in some 100 MB."""
BUCKET: Final = StructType(
    [
        StructField("channel_id", StringType()),
        StructField("bucket", LongType()),
        StructField("fact", StringType()),
        StructField("many", BinaryType()),
    ]
)
"""Facts about some messages, on their way to where they are compared."""
JUDGED_BUCKET: Final = StructType(
    [StructField("kind", StringType()), *FINDING.fields, StructField("held", DELIVERY)]
)
"""What comes of comparing them."""
_OF_MESSAGES: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (Delivery, Acknowledgement, Outcome, Orphan)
}
_COUNT: Final = "count"
_FALSE: Final = "false"
_UNJUDGED: Final = "unjudged"
_BEHIND: Final = "behind"
_LOST: Final = "lost"
"""Kinds of rows of a judged bucket, beside findings: how many findings, messages and pairs on the
way there are; a copy of a message that was not sent; why something cannot be judged; how many
messages a participant lacks (`life`), and since when; how many of a sender (`detail`) it lost."""
MESSAGES: Final = "messages"
ON_THE_WAY: Final = "on_the_way"


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
            F.bool_or(F.col("impostors") > 0).alias("has_impostors"),
            F.max("entries").alias("messages"),
        )
        .where("is_one_log and is_of_several and is_whole and not has_impostors")
        .select("channel_id", "messages")
    )


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


def values_of(facts: DataFrame, kinds: Mapping[str, type[Any]]) -> defaultdict[type, list[Any]]:
    """Facts of some kinds as values in this process."""
    given = facts.where(F.col("fact").isin(list(kinds))).toArrow()
    found: defaultdict[type, list[Any]] = defaultdict(list)
    for name, kind in kinds.items():
        for values in rows_of(_of_kind(name, given.filter(pc.equal(given["fact"], name)))):
            found[kind].append(kind(*values))
    return found


def _of_kind(kind: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The columns of facts that are all of one kind."""
    names = FACTS[kind].names
    if kind in MANY:
        every = zip(rows["channel_id"].to_pylist(), rows["many"].to_pylist(), strict=True)
        yield from (rows_in(kind, *each, names) for each in every)
        return
    rare = pc.list_flatten(rows["rare"])
    columns = (rows[name] if name in FACT.names else pc.struct_field(rare, name) for name in names)
    yield from pa.table(dict(zip(names, columns, strict=True))).to_batches()


def context_of(facts: DataFrame, settle_ms: int | None) -> Context:
    """What is known of all participants, in this process."""
    few = values_of(facts, {"Life": Life, "Gap": Gap})
    newest = F.max(F.struct("last_lamport", "last_ms", "participant_id", "life", "messages"))
    heard = [
        HeardSender(
            row.channel_id,
            row.newest.participant_id,
            row.newest.life,
            row.sender_id,
            row.newest.messages,
            row.newest.last_lamport,
            row.newest.last_ms,
        )
        for row in table(facts, "HeardSender")
        .groupBy("channel_id", "sender_id")
        .agg(newest.alias("newest"))
        .collect()
    ]
    quickest = own_lags(facts).groupBy("channel_id", "participant_id", "sender_id")
    lags = [
        Lag(row.channel_id, row.participant_id, 0, row.sender_id, b"", row.least_ms)
        for row in quickest.agg(F.min("least_ms").alias("least_ms")).collect()
    ]
    return Context(few[Life], clock_offsets(lags, few[Life]), few[Gap], heard, settle_ms)


def compare(
    facts: DataFrame, context: Context
) -> tuple[dict[str, int], list[Finding], Compared, int]:
    """Compare participants by `compare_messages`, so many messages a task: how many findings each
    audit has and the first ones, what else came of it, and how many messages there are."""
    chosen = facts.where(F.col("fact").isin([*_OF_MESSAGES]))
    sizes = chosen.groupBy("channel_id").agg(F.sum("rows").alias("rows")).collect()
    buckets = {row.channel_id: -(-row.rows // BUCKET_ROWS) for row in sizes}
    outcomes = table(facts, "Outcome").where("is_failure").collect()
    failures = [Outcome(*row) for row in outcomes]

    def judge(given: pa.Table) -> pa.Table:
        return _judge_bucket(context, failures, given)

    judged = (
        chosen.mapInArrow(partial(_spread, buckets), BUCKET)
        .groupBy("channel_id", "bucket")
        .applyInArrow(judge, JUDGED_BUCKET)
        .persist()
    )
    counts = Counter[str]()
    for row in judged.where(F.col("kind") == _COUNT).collect():
        counts[row.audit] += row.at_ms
    compared = Compared(on_the_way=counts.pop(ON_THE_WAY, 0))
    for row in judged.where(F.col("kind") == _UNJUDGED).collect():
        compared.add_reason(Audit(row.audit), row.detail)
    for row in judged.where(F.col("kind") == _BEHIND).collect():
        compared.lacks((row.channel_id, row.participant_id), row.at_ms, row.life)
    for row in judged.where(F.col("kind") == _LOST).collect():
        compared.lost[row.channel_id, row.detail, row.participant_id, row.at_ms] += row.life
    false: defaultdict[tuple[str, str], list[Delivery]] = defaultdict(list)
    for row in judged.where(F.col("kind") == _FALSE).select("held").collect():
        each = Delivery(*row.held)
        false[each.channel_id, each.message_id].append(each)
    found = judged.where(F.col("kind") == "finding").select(*FINDING.names).collect()
    judged.unpersist()
    number = counts.pop(MESSAGES, 0)
    extra, first = counted([*invented(false, _dispatches_of(facts, false))])
    _, first = counted([*first, *(Finding(*row) for row in found)])
    return dict(counts + Counter(extra)), first, compared, number


def _dispatches_of(
    facts: DataFrame, false: Mapping[tuple[str, str], Sequence[Delivery]]
) -> Iterator[Dispatch]:
    copies = (each for held in false.values() for each in held)
    hashes = sorted({each.message_hash for each in copies if each.message_hash is not None})
    if hashes:
        wanted = facts.sparkSession.createDataFrame(
            [(each,) for each in hashes], "message_hash binary"
        )
        sent = table(facts, "Dispatch").join(F.broadcast(wanted), "message_hash", "left_semi")
        for row in sent.select(*Dispatch._fields).collect():
            yield Dispatch(*row)


def _spread(
    buckets: Mapping[str, int], given: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Facts, dealt out by channel and message."""
    for chunk in given:
        rows = pa.Table.from_batches([chunk])
        for name, kind in _OF_MESSAGES.items():
            dealt: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
            for values in rows_of(_of_kind(name, rows.filter(pc.equal(rows["fact"], name)))):
                fact = kind(*values)
                place = crc32(fact.message_id.encode()) % buckets[fact.channel_id]
                dealt[fact.channel_id, place].append(values)
            for (channel_id, place), facts in dealt.items():
                many = packed(pa.Table.from_batches([batch(facts, arrow_schema(FACTS[name]))]))
                yield batch([(channel_id, place, name, many)], arrow_schema(BUCKET))


def _judge_bucket(context: Context, failures: Sequence[Outcome], given: pa.Table) -> pa.Table:
    """Judge all there is of some messages of a channel."""
    facts: defaultdict[str, list[Any]] = defaultdict(list)
    channel_id = given["channel_id"][0].as_py()
    for name, many in zip(given["fact"].to_pylist(), given["many"].to_pylist(), strict=True):
        with pa.ipc.open_stream(many) as stream:
            facts[name] += map(_OF_MESSAGES[name]._make, rows_of(iter(stream)))
    lost = [each for each in facts["Outcome"] if not each.is_failure]
    compared, false = compare_messages(
        context.of_channel(channel_id),
        facts["Delivery"],
        [*(each for each in failures if each.channel_id == channel_id), *lost],
        facts["Acknowledgement"],
        facts["Orphan"],
    )
    broken, first = counted(compared.findings)
    messages = len({each.message_id for each in facts["Delivery"]})
    numbers = {**broken, ON_THE_WAY: compared.on_the_way, MESSAGES: messages}
    whose = (channel_id, "", 0, "")
    rows: list[tuple[Any, ...]]
    rows = [(_COUNT, audit, *whose, number, "", None) for audit, number in numbers.items()]
    rows += [
        (_UNJUDGED, audit.value, *whose, 0, why, None) for audit, why in compared.unjudged.items()
    ]
    rows += [
        (_BEHIND, "", *whose, count, "", since_ms, "", None)
        for whose, (count, since_ms) in compared.behind.items()
    ]
    rows += [
        (_LOST, "", channel_id, receiver_id, count, "", hour_ms, sender_id, None)
        for (channel_id, sender_id, receiver_id, hour_ms), count in compared.lost.items()
    ]
    held = (each._asdict() for held in false.values() for each in held)
    rows += [(_FALSE, "", *whose, 0, "", each) for each in held]
    rows += [("finding", *each, None) for each in first]
    return pa.Table.from_batches([batch(rows, arrow_schema(JUDGED_BUCKET))])
