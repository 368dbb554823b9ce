"""Execution of a sweep's batches on Spark. Each batch is a task, which runs the batch and writes
the file of results.

All executors must be able to write into the directory of results. A task only reports that its
batch is finished. If an executor is killed, another executor takes over the task. If the driver is
killed, only the running batches are lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .execution import Batch, Executor, run_batch
from .kinds import run_of
from .results import batch_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOOK_S: Final = 0.5
"""Polling interval for the files in the directory of results."""
_BATCHES: Final = "number long, directory string, runs string"
_DONE: Final = "done long"


def spark_executor(spark: SparkSession, *, stopped: Callable[[], bool] = lambda: False) -> Executor:
    """Return an executor that runs batches on a Spark session, which may be Spark Connect."""

    def run(directory: Path, batches: Sequence[Batch]) -> Iterator[int]:
        if not batches:
            return
        rows = [
            (number, str(directory.resolve()), json.dumps([run.settings for run in batch]))
            for number, batch in enumerate(batches)
        ]
        done = run_all(spark.createDataFrame(rows, _BATCHES), len(rows))
        with ThreadPoolExecutor(1) as waiting:
            job = waiting.submit(done.collect)
            sizes = {batch_path(directory, (run.id for run in each)): len(each) for each in batches}
            while not job.done():
                wait_for([job], LOOK_S)
                for path in [path for path in sizes if path.exists()]:
                    yield sizes.pop(path)
                if stopped():
                    spark.interruptAll()
                    wait_for([job])
                    return
            job.result()
        yield from sizes.values()

    return run


def run_all(batches: DataFrame, count: int) -> DataFrame:
    """Run each batch as a task, and return the number of its finished runs. Each row of `batches`
    is one batch."""
    spread = batches.repartitionByRange(count, "number")
    return spread.select("directory", "runs").mapInArrow(_run_rows, _DONE)


def _run_rows(tables: Iterator[Any]) -> Iterator[Any]:
    import pyarrow

    for table in tables:
        for row in table.to_pylist():
            done = run_batch(Path(row["directory"]), list(map(run_of, json.loads(row["runs"]))))
            yield pyarrow.RecordBatch.from_pydict({"done": [done]})
