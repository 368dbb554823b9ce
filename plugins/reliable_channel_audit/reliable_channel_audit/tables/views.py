"""Views of a directory of facts, in SQL for both DuckDB and Spark.

Each kind of facts is a table with the columns of `layout.SCHEMAS`, `channel` and `day`. The views
are the documented tables, whose columns `docs/facts.md` lists.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from . import layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES: Final = {kind: f"{kind}_rows" for kind in layout.SCHEMAS}
"""Names of the SQL tables, by kind of facts."""
VIEWS: Final = {
    "delivery": """
select channel, day, participant_id, message_id, sender_id, lamport_timestamp, at_ms, is_own,
    source, missing_since_ms, line
from delivery_rows
""",
    "latency": """
select came.channel, came.day, came.message_id, came.sender_id, came.participant_id,
    sent.at_ms as accepted_ms, came.at_ms as at_ms, came.at_ms - sent.at_ms as latency_ms,
    case when coalesce(came.source, earlier.source) = 'store' then 'store'
        when went.source = 'content' then 'live'
        when went.source = 'retry' then 'retransmission' when went.source = 'repair' then 'repair'
        else 'unknown' end as way
from delivery_rows as came
join delivery_rows as sent
    on came.channel = sent.channel and came.message_id = sent.message_id and sent.is_own
left join (
    select channel, message_hash, min(source) as source from wire_rows
    where not is_in and message_hash is not null group by channel, message_hash
) as went on came.channel = went.channel and came.message_hash = went.message_hash
left join (
    select channel, participant_id, message_hash, min(source) as source from wire_rows
    where outcome in ('delivered', 'parked') and message_hash is not null group by all
) as earlier on came.source is null and came.channel = earlier.channel
    and came.participant_id = earlier.participant_id and came.message_hash = earlier.message_hash
where not came.is_own
""",
    "repair": """
select channel, day, participant_id, event, message_id, at_ms, line from repair_rows
""",
    "acknowledgement": """
select sent.channel, sent.day, sent.participant_id, sent.message_id, sent.at_ms as accepted_ms,
    emitted.at_ms as acknowledged_ms, emitted.at_ms - sent.at_ms as latency_ms, emitted.source,
    emitted.acknowledged_by
from delivery_rows as sent
left join acknowledgement_rows as emitted
    on sent.channel = emitted.channel and sent.participant_id = emitted.participant_id
    and sent.message_id = emitted.message_id
where sent.is_own
""",
    "log_difference": """
select run_id, channel, day, hour_ms, message_id, participant_id, in_logs from log_difference_rows
""",
    "verdict": """
select run_id, judged_ms, day, audit, value, cases, broken, why from verdict_rows
""",
}
"""Documented views as SQL, by name."""


class Sql(Protocol):
    """Interface of a connection to DuckDB."""

    def execute(self, query: str, /) -> object: ...


def create_views(connection: Sql, directory: Path) -> None:
    """Create the tables and views of a directory of facts in DuckDB."""
    quoted = str(directory).replace("'", "''")
    for kind, table in TABLES.items():
        if any(directory.glob(f"kind={kind}/*=*/**/*.parquet")):
            hive = ", ".join(f"'{each.name}': {_SQL[each.type]}" for each in partitions_of(kind))
            found = f"""select * exclude (kind) from read_parquet(
                '{quoted}/kind={kind}/*=*/**/*.parquet', hive_partitioning = true,
                hive_types = {{{hive}}}
            )"""
        else:
            found = _nothing(kind)
        connection.execute(f"create or replace view {table} as {found}")
    for name, text in VIEWS.items():
        connection.execute(f"create or replace view {name} as {text}")


def spark_views(spark: SparkSession, directory: Path) -> None:
    """Create the tables and views of a directory of facts as temporary views in Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema

    for kind, table in TABLES.items():
        schema, folder = from_arrow_schema(plain_schema(kind)), directory / f"kind={kind}"
        reader = spark.read.schema(schema)
        is_there = folder.exists()
        rows = reader.parquet(str(folder)) if is_there else spark.createDataFrame([], schema)
        rows.createOrReplaceTempView(table)
    for name, text in VIEWS.items():
        spark.sql(f"create or replace temporary view {name} as {text}")


def partitions_of(kind: str) -> list[pa.Field]:
    """Return the columns that are in the paths of a kind."""
    day = pa.field("day", pa.date32())
    return [day] if kind in layout.OF_RUNS else [pa.field("channel", pa.string()), day]


def plain_schema(kind: str) -> pa.Schema:
    """Return all columns of a kind, in types that every database knows."""
    columns = [each.with_type(_PLAIN.get(each.type, each.type)) for each in layout.SCHEMAS[kind]]
    return pa.schema([*columns, *partitions_of(kind)])


def _nothing(kind: str) -> str:
    """A table without rows."""
    columns = [f"cast(null as {_SQL[each.type]}) as {each.name}" for each in plain_schema(kind)]
    return f"select {', '.join(columns)} where false"


_PLAIN: Final = {layout.NAME: pa.string(), layout.DIGEST: pa.binary()}
_SQL: Final = {
    pa.string(): "varchar",
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.bool_(): "boolean",
    pa.binary(): "blob",
    pa.date32(): "date",
    pa.list_(pa.int32()): "integer[]",
    pa.list_(pa.string()): "varchar[]",
}
