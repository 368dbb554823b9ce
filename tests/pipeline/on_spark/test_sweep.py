"""A sweep on Spark: the same results as in processes of this machine, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reliable_channel.sweep import digest, execute, local_processes, read_results
from reliable_channel.sweep.execution import run_batch
from reliable_channel.sweep.on_spark import spark_executor
from tests.sweep.killed import RUNS


@pytest.mark.parametrize("batch_size", [1, 4])
def test_the_digest_is_that_of_local_processes(
    spark: SparkSession, tmp_path: Path, batch_size: int
) -> None:
    told: list[int] = []
    executor = spark_executor(spark)
    there = execute(RUNS, tmp_path / "spark", executor, batch_size=batch_size, progress=told.append)
    here = execute(RUNS, tmp_path / "here", local_processes(1), batch_size=2)
    assert digest(there) == digest(here)
    assert sum(told) == len(RUNS)
    assert len(list((tmp_path / "spark").iterdir())) == -(-len(RUNS) // batch_size)


def test_what_is_there_is_not_run_again(spark: SparkSession, tmp_path: Path) -> None:
    run_batch(tmp_path, RUNS[:4])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    execute(RUNS, tmp_path, spark_executor(spark), batch_size=2)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(read_results(tmp_path)) == len(RUNS)
