"""A driver in a process of its own, which a test may kill: a Store and growing journals as streams.

`python -m audit_tests.on_spark.watching NODE JOURNALS OUT [--last]` writes messages to
`OUT/stored` and notices to `OUT/notices`, each with a checkpoint, and prints a line for each batch.
It goes on until it is killed; with `--last` until all that is there now is read.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from reliable_channel_audit.live import notices, start
from reliable_channel_audit.session import session

from .conftest import SMALL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

LAG_MS = 10_000
"""Far longer than it takes a message that is stamped to be stored, on a busy machine too."""
BATCH_MS = 1_500


def main() -> None:
    node, journals, out, *last = sys.argv[1:]
    spark = session("local[2]", settings=SMALL)
    stored = (
        spark.readStream.format("waku-store")
        .options(
            node=node,
            partitions=2,
            lag_ms=0 if last else LAG_MS,
            batch_ms=60_000 if last else BATCH_MS,
        )
        .load()
    )
    told = notices(spark.readStream.format("sds_journal").load(journals))
    queries = [
        written(stored, out, "stored", ends=True),
        written(told, out, "notices", ends=bool(last)),
    ]
    batches = dict.fromkeys((query.name for query in queries), -1)
    while any(query.isActive for query in queries):
        for query in queries:
            progress = query.lastProgress
            if progress is not None and progress.batchId > batches[query.name]:
                batches[query.name] = progress.batchId
                print(query.name, progress.batchId, flush=True)
        time.sleep(0.02)
    for query in queries:
        query.awaitTermination()  # raises what it failed with


def written(frame: DataFrame, out: str, name: str, *, ends: bool) -> StreamingQuery:
    writer = frame.writeStream.format("parquet").queryName(name)
    writer = writer.option("checkpointLocation", f"{out}/checkpoints/{name}")
    return start(writer.trigger(processingTime="0 seconds"), f"{out}/{name}", until_now=ends)


if __name__ == "__main__":
    main()
