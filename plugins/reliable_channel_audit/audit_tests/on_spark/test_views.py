"""docs/facts.md: its views have the columns that it lists, in DuckDB and in Spark."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import duckdb
import pandas
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from reliable_channel_audit.check import check
from reliable_channel_audit.tables.delta import write_delta_logs
from reliable_channel_audit.tables.ingest import ingest, parts, remove
from reliable_channel_audit.tables.judging import judge
from reliable_channel_audit.tables.views import VIEWS, create_views, spark_views

from ..generated import write_group
from ..planted import plant

PAGE = (Path(__file__).parents[4] / "docs" / "facts.md").read_text()
SECTIONS = {section.partition("\n")[0]: section for section in re.split("(?m)^##+ ", PAGE)[1:]}
NAMES = {"VARCHAR": "string", "BIGINT": "bigint", "BOOLEAN": "boolean", "DATE": "date"}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The facts of a group of which one participant lacks a message."""
    path = tmp_path_factory.mktemp("facts")
    paths = write_group(path / "journals", loss=0.3)
    plant("missing", paths[1], 1)
    done = ingest([path / "journals"], path / "facts")
    judge(path / "facts", done.group)
    return path / "facts"


@pytest.fixture(scope="module")
def connection(facts: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    create_views(connection, facts)
    return connection


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_of_the_page(
    connection: duckdb.DuckDBPyConnection, facts: Path, spark: SparkSession, view: str
) -> None:
    columns = re.findall(r"^\| `(\w+)` \| (\w+) \| \S[^|]*\|$", SECTIONS[view], re.M)
    found = connection.execute(f"describe {view}").fetchall()
    assert [(name, kind) for name, kind, *_ in found] == columns
    spark_views(spark, facts)
    assert spark.table(view).dtypes == [(name, NAMES[kind]) for name, kind in columns]


def test_duckdb_and_spark_have_the_same_rows(
    connection: duckdb.DuckDBPyConnection, facts: Path, spark: SparkSession
) -> None:
    spark_views(spark, facts)
    for view in VIEWS:
        expected = connection.execute(f"from {view}").fetchall()
        found = [tuple(row) for row in spark.table(view).collect()]
        assert sorted(found, key=repr) == sorted(expected, key=repr), view
    counts = {view: connection.sql(f"from {view}").shape[0] for view in VIEWS}
    assert (counts["delivery"], counts["latency"], counts["log_difference"]) == (479, 359, 1)


def test_pandas_reads_a_kind(facts: Path) -> None:
    assert len(pandas.read_parquet(facts / "kind=delivery")) == 479


def test_channels_and_folders_may_have_odd_names(tmp_path: Path) -> None:
    """A channel whose name is too long for a folder has its hash there."""
    folder, names = tmp_path / "it's odd", ["/ops/it's é=1/50%", "42", "é" * 100]
    for number, name in enumerate(names):
        write_group(folder / "journals" / str(number), messages=10, channel_id=name)
    done = ingest([folder / "journals"], folder / "facts")
    verdict = judge(folder / "facts", done.group).verdict
    assert verdict.to_json() == check([folder / "journals"]).to_json()
    assert {row["channel_id"] for row in parts(folder / "facts")} == {*names}
    write_delta_logs(folder / "facts")
    DeltaTable(folder / "facts" / "kind=delivery").create_checkpoint()  # Parquet, and no fact
    with duckdb.connect() as connection:
        create_views(connection, folder / "facts")
        found = connection.execute("select distinct channel from delivery order by 1").fetchall()
    logged = DeltaTable(folder / "facts" / "kind=delivery").to_pyarrow_table()
    assert sorted({*logged["channel"].to_pylist()}) == [row[0] for row in found]
    assert [row[0][:18] for row in found] == [*sorted(names)[:2], "sha256-" + LONG[:11]]


def test_a_delta_table_has_the_files_that_are_there(tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    write_group(tmp_path / "journals", messages=10)
    judge(facts, ingest([tmp_path / "journals"], facts).group)
    versions = []
    for turn in range(3):
        if turn == 1:
            remove(parts(facts)[0], facts)  # as a part that is packed, and read again
        write_delta_logs(facts)
        for folder in facts.glob("kind=*"):
            table, files = DeltaTable(folder), [*folder.rglob("*=*/*.parquet")]
            expected = sum(pq.read_metadata(path).num_rows for path in files)
            assert table.to_pyarrow_table().num_rows == table.count() == expected, folder
        versions.append(DeltaTable(facts / "kind=delivery").version())
    assert versions == [1, 2, 2]


LONG = sha256(("é" * 100).encode()).hexdigest()


def test_facts_without_a_run_have_views_without_rows(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        create_views(connection, tmp_path)
        for view in VIEWS:
            assert connection.execute(f"from {view}").fetchall() == []


def test_the_questions_of_the_page_have_answers(connection: duckdb.DuckDBPyConnection) -> None:
    pairs, waiting, since = (
        connection.execute(text).fetchall() for text in re.findall(r"```sql\n(.*?)```", PAGE, re.S)
    )
    assert len(pairs) == 10
    assert {row[0] for row in waiting} == {"p000", "p001", "p002", "p003"}
    assert [(row[0], row[2]) for row in since] == [("delivery", 1)]
