"""A driver in a process of its own, which a test may kill: growing journals as a stream.

`python -m audit_tests.on_spark.watching JOURNALS OUT [--last]` writes notices to `OUT/notices`,
with a checkpoint, and prints a line for each batch. It goes on until it is killed; with `--last`
until all that is there now is read.
"""

from __future__ import annotations

import sys
import time

from reliable_channel_audit.live import notices, start
from reliable_channel_audit.session import session

from .conftest import SMALL


def main() -> None:
    journals, out, *last = sys.argv[1:]
    spark = session("local[2]", settings=SMALL)
    told = notices(spark.readStream.format("sds_journal").load(journals))
    writer = told.writeStream.format("parquet").queryName("notices")
    writer = writer.option("checkpointLocation", f"{out}/checkpoints/notices")
    writer = writer.trigger(processingTime="0 seconds")
    query = start(writer, f"{out}/notices", until_now=bool(last))
    batch = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress.batchId > batch:
            batch = progress.batchId
            print(query.name, batch, flush=True)
        time.sleep(0.02)
    query.awaitTermination()  # raises what it failed with


if __name__ == "__main__":
    main()
