"""Views over a directory of facts, in SQL that DuckDB, Polars and Spark understand.

A kind of facts is a table with the columns of `layout.SCHEMAS`, with `channel` and `day` from its
path. The views are the documented tables: `docs/facts.md` lists their columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from . import layout

TABLES: Final = {kind: f"{kind}_rows" for kind in layout.SCHEMAS}
"""The name of each kind as a table."""
VIEWS: Final = {
    "delivery": """
select channel, day, participant_id, message_id, sender_id, lamport_timestamp, at_ms, is_own, source,
    missing_since_ms, line
from delivery_rows
""",
    "latency": """
select came.channel, came.day, came.message_id, came.sender_id, came.participant_id,
    sent.at_ms as accepted_ms, came.at_ms as at_ms, came.at_ms - sent.at_ms as latency_ms,
    case when came.source = 'store' then 'store' when went.source = 'content' then 'live'
        when went.source = 'retry' then 'retransmission' when went.source = 'repair' then 'repair'
        else 'unknown' end as way
from delivery_rows as came
join delivery_rows as sent
    on came.channel = sent.channel and came.message_id = sent.message_id and sent.is_own
left join (
    select channel, message_hash, min(source) as source from wire_rows
    where not is_in and message_hash is not null group by channel, message_hash
) as went on came.channel = went.channel and came.message_hash = went.message_hash
where not came.is_own
""",
    "repair": """
select channel, day, participant_id, event, message_id, at_ms, line from repair_rows
""",
    "acknowledgement": """
select sent.channel, sent.day, sent.participant_id, sent.message_id, sent.at_ms as accepted_ms,
    told.at_ms as acknowledged_ms, told.at_ms - sent.at_ms as latency_ms, told.source,
    told.acknowledged_by
from delivery_rows as sent
left join acknowledgement_rows as told
    on sent.channel = told.channel and sent.participant_id = told.participant_id
    and sent.message_id = told.message_id
where sent.is_own
""",
    "log_difference": """
select run_id, channel, day, hour_ms, message_id, participant_id, in_logs from log_difference_rows
""",
    "verdict": """
select run_id, judged_ms, day, audit, value, cases, broken, why from verdict_rows
""",
}
"""The documented views, by name."""


class Sql(Protocol):
    """What runs a statement: a connection of DuckDB."""

    def execute(self, query: str, /) -> object: ...


class Spark(Protocol):
    """A session of Spark, as far as views need it."""

    def sql(self, query: str, /) -> object: ...


def statements(directory: Path) -> list[str]:
    """The tables and views of a directory of facts as statements of DuckDB."""
    found = []
    for kind, table in TABLES.items():
        files = f"{directory}/kind={kind}/**/*.parquet"
        read = f"select * from read_parquet('{files}', hive_partitioning = true)"
        if not any(directory.glob(f"kind={kind}/**/*.parquet")):
            read = _nothing(kind)
        found.append(f"create or replace view {table} as {read}")
    return found + [f"create or replace view {name} as {text}" for name, text in VIEWS.items()]


def create_views(connection: Sql, directory: Path) -> None:
    """Make the views in a connection of DuckDB."""
    for statement in statements(directory):
        connection.execute(statement)
