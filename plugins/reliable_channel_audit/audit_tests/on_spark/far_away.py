"""An audit or a sweep elsewhere, as a process of its own: a session cannot change its master.

`python -m audit_tests.on_spark.far_away MASTER_OR_REMOTE audit JOURNALS` prints the verdict
as JSON, `… sweep RESULTS` the digest; and both `some are done` once some tasks have ended.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from reliable_channel_audit.session import SHUFFLES, TASKS_A_CORE, session
from reliable_channel_audit.tables.ingest import ingest
from reliable_channel_audit.tables.judging import judge
from reliable_channel_lab.sweep import digest, execute
from reliable_channel_lab.sweep.on_spark import spark_executor
from reliable_channel_lab.sweep.quiet import QuietRun

from .cluster import QUICK_JAVA
from .conftest import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": QUICK_JAVA}
TASKS = 8
RUNS = [QuietRun(seed=seed, participants=200, rounds=50) for seed in range(1, TASKS + 1)]


def main() -> None:
    where, what, directory = sys.argv[1:]
    if where.startswith("sc://"):
        spark = session(remote=where, settings={SHUFFLES: "3"})
        assert spark.conf.get(SHUFFLES) == "3"
    else:
        settings = {name: value for name, value in SMALL.items() if name != SHUFFLES}
        spark = session(where, settings={**settings, **EXECUTORS})
        assert int(spark.conf.get(SHUFFLES)) == TASKS_A_CORE * spark.sparkContext.defaultParallelism
        threading.Thread(target=tell_when_some_are_done, args=[spark], daemon=True).start()
    print(audit(spark, directory) if what == "audit" else sweep(spark, directory), flush=True)
    spark.stop()


def audit(spark: SparkSession, directory: str) -> str:
    with TemporaryDirectory() as facts:
        done = ingest([directory], Path(facts), with_open=True, spark=spark, partitions=TASKS)
        return judge(Path(facts), done.group).verdict.to_json()


def sweep(spark: SparkSession, directory: str) -> str:
    return digest(execute(RUNS, Path(directory), spark_executor(spark), batch_size=1))


def tell_when_some_are_done(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            if (info := tracker.getStageInfo(stage)) and info.numTasks == TASKS:
                if info.numCompletedTasks >= 2:
                    print("some are done", flush=True)
                    return
        time.sleep(0.05)


if __name__ == "__main__":
    main()
