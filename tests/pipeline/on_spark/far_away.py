"""An audit elsewhere, as a process of its own: a session cannot change its master.

`python -m tests.pipeline.on_spark.far_away MASTER_OR_REMOTE JOURNALS` prints the verdict as JSON,
and `reading` once the first tasks have ended.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from reliable_channel.pipeline.audit import read_facts, verdict
from reliable_channel.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
}


def main() -> None:
    where, journals = sys.argv[1:]
    if where.startswith("sc://"):
        spark = session(remote=where)
    else:
        spark = session(where, settings=SMALL)
        threading.Thread(target=tell_when_some_are_read, args=[spark], daemon=True).start()
    facts = read_facts(spark, [journals], partitions=8)
    print(verdict(facts, [journals]).to_json(), flush=True)
    spark.stop()


def tell_when_some_are_read(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            if (info := tracker.getStageInfo(stage)) and info.numTasks == 8:
                if info.numCompletedTasks >= 2:
                    print("reading", flush=True)
                    return
        time.sleep(0.05)


if __name__ == "__main__":
    main()
