"""A sweep on Spark: the same results as in processes of this machine, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from reliable_channel_lab.plugin import register_commands
from reliable_channel_lab.sweep import digest, execute, local_processes, read_results
from reliable_channel_lab.sweep.execution import run_batch
from reliable_channel_lab.sweep.on_spark import spark_executor
from reliable_channel_lab.sweep.quiet import QuietRun

from .conftest import SMALL
from .far_away import RUNS as LONG_RUNS

RUNS = [QuietRun(seed=seed, participants=3 + 17 * (seed > 3), rounds=2) for seed in range(1, 7)]


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


def test_whoever_is_stopped_goes_on_later(spark: SparkSession, tmp_path: Path) -> None:
    executor = spark_executor(spark, stopped=lambda: any(tmp_path.glob("*.jsonl")))
    some = execute(LONG_RUNS, tmp_path, executor, batch_size=1)
    assert 0 < len(some) < len(LONG_RUNS)
    every = execute(LONG_RUNS, tmp_path, spark_executor(spark), batch_size=1)
    assert every.keys() == {run.id for run in LONG_RUNS}
    assert some.items() <= every.items()


def test_the_command_passes_on_what_spark_is_told(spark: SparkSession, tmp_path: Path) -> None:
    name, before = "spark.sql.shuffle.partitions", SMALL["spark.sql.shuffle.partitions"]
    file = tmp_path / "sweep.toml"
    file.write_text("[experiments.a]\nrun = 'quiet'\nparticipants = 3\nrounds = 1\n")
    command = ["sweep", str(file), "--master", "local[2]", "--conf", f"{name}=3"]
    try:
        app = typer.Typer()
        register_commands(app)
        told = CliRunner().invoke(app, command)
        assert told.exit_code == 0, told.output
        assert "1 runs in" in told.output
        assert spark.conf.get(name) == "3"
    finally:
        spark.conf.set(name, before)
