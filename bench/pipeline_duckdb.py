"""What SQL can say of journals, by DuckDB in this process: the yardstick of the pipeline.

It reads the same files, and gives the figures of clean journals that need no message decoded:
deliveries, logs and their order, what was delivered twice or never, acknowledgements and ways. It
has no evidence, no clocks and no causality, takes each participant for one life that wanted
everything since it began, and trusts every line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import duckdb

from reliable_channel_audit.findings import SETTLE_MS

MEMORY: Final = "2GB"
"""As much as the heap of Spark."""
OutOfMemory = duckdb.OutOfMemoryException
THREADS: Final = 2
_COLUMNS: Final = {
    "event": "VARCHAR",
    "at_ms": "BIGINT",
    "channel_id": "VARCHAR",
    "sender_id": "VARCHAR",
    "message_id": "VARCHAR",
    "lamport_timestamp": "BIGINT",
    "content_sha256": "VARCHAR",
    "first_segment_id": "VARCHAR",
    "message_hash": "VARCHAR",
    "source": "VARCHAR",
    "outcome": "VARCHAR",
    "wanted_from_ms": "BIGINT",
}

READ: Final = """
    create or replace table line as
    select * exclude (filename), filename as path from read_json(
        $paths, format = 'newline_delimited', columns = $columns, filename = true,
        maximum_object_size = 33554432
    );
    create or replace table file as
    select path, any_value(channel_id) as channel_id, any_value(sender_id) as participant_id
    from line where event = 'journal_opened' group by path;
    create or replace table life as
    select file.channel_id, participant_id, max(at_ms) as until_ms,
        min(at_ms) filter (event = 'journal_opened') as opened_ms,
        greatest(min(wanted_from_ms), 0) as owed_from_ms
    from line join file using (path) group by all;
    create or replace table noted as
    select file.channel_id, participant_id, message_id, line.sender_id, lamport_timestamp,
        content_sha256, at_ms, first_segment_id, message_hash
    from line join file using (path)
    where event = 'message_logged' and outcome is distinct from 'restored';
    create or replace table delivery as
    select distinct on (channel_id, participant_id, message_id) * from noted;
"""

VERDICT: Final = {
    "participants": "select count(*) from life",
    "deliveries": "select count(*) from delivery",
    "messages": "select count(distinct (channel_id, message_id)) from delivery",
    "logs": """
        select count(distinct (channel_id, log)) from (
            select channel_id, sha256(string_agg(
                format('{} {} {} {}', lamport_timestamp, message_id, sender_id, content_sha256),
                chr(10) order by lamport_timestamp, message_id
            )) as log
            from delivery group by channel_id, participant_id
        )
    """,
    "delivered_twice": "select (select count(*) from noted) - (select count(*) from delivery)",
    "never_delivered": """
        select count(*) from life
        join delivery sent on sent.channel_id = life.channel_id
            and sent.participant_id = sent.sender_id
            and sent.at_ms >= owed_from_ms and sent.at_ms + $settle_ms <= until_ms
        anti join delivery got on got.channel_id = life.channel_id
            and got.participant_id = life.participant_id and got.message_id = sent.message_id
    """,
    "acknowledged_and_lost": """
        select count(*) from line join file using (path)
        anti join delivery on delivery.channel_id = file.channel_id
            and delivery.message_id = line.message_id
            and delivery.participant_id != file.participant_id
        anti join (
            select delivery.channel_id from delivery
            anti join life on life.channel_id = delivery.channel_id
                and life.participant_id = delivery.sender_id
        ) as partial on partial.channel_id = file.channel_id
        where event = 'message_acknowledged'
    """,
    "ids_of_several": """
        select count(*) from (
            select 1 from delivery group by channel_id, message_id
            having count(distinct (sender_id, lamport_timestamp, content_sha256)) > 1
        )
    """,
}

_CAME: Final = """
    from delivery
    left join (
        select file.channel_id, message_hash, any_value(source) as kind
        from line join file using (path) where event = 'wire_out' group by all
    ) as went using (channel_id, message_hash)
    join (
        select path, file.channel_id, participant_id, message_hash, any_value(source) as source
        from line join file using (path)
        where event = 'wire_in' and outcome in ('delivered', 'parked') group by all
    ) as came using (channel_id, participant_id, message_hash)
    join (
        select channel_id, message_id, coalesce(
            min(at_ms) filter (first_segment_id is not null), min(at_ms)
        ) as accepted_ms
        from delivery group by all
    ) as sent using (channel_id, message_id)
    where first_segment_id is null
"""
REPORT: Final = {
    "ways": f"""
        select case when came.source = 'store' then 'store'
            when kind = 'content' then 'live' when kind = 'retry' then 'retransmission'
            else coalesce(kind, 'unknown') end as way,
            count(*), max(at_ms - accepted_ms)
        {_CAME} group by way order by way
    """,
    "acknowledgements": """
        select participant_id, count(*) from line join file using (path)
        where event = 'message_acknowledged' group by participant_id order by participant_id
    """,
}


class Yardstick:
    """Reads journals, and answers what SQL can answer."""

    def __init__(self, directory: Path, scratch: Path) -> None:
        self._directory = directory
        self._database = duckdb.connect(str(scratch / "journals.duckdb"))
        self._database.execute(f"set threads = {THREADS}")
        self._database.execute(f"set memory_limit = '{MEMORY}'")
        self._database.execute("set preserve_insertion_order = false")

    def read(self) -> None:
        """Parse all lines."""
        paths = [str(self._directory / "**" / f"*.jsonl{packed}") for packed in ("", ".gz")]
        there = [each for each in paths if any(self._directory.rglob(Path(each).name))]
        columns = ", ".join(f"{name}: '{kind}'" for name, kind in _COLUMNS.items())
        text = READ.replace("$columns", f"{{{columns}}}").replace("$paths", repr(there))
        for statement in text.split(";"):
            if statement.strip():
                self._database.execute(statement)

    def verdict(self) -> dict[str, int]:
        """Counts of what is there and of what is broken."""
        rows = {
            name: self._rows(query.replace("$settle_ms", str(SETTLE_MS)))
            for name, query in VERDICT.items()
        }
        return {name: number for name, ((number,),) in rows.items()}

    def report(self) -> dict[str, list[tuple[Any, ...]]]:
        """By way, how many messages came and how long the slowest took (ms); by participant, how
        many of its messages were acknowledged."""
        return {name: self._rows(query) for name, query in REPORT.items()}

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._database.execute(query).fetchall()
        return rows
