"""Execution of the runs whose results are missing, in batches that executors write.

The results do not depend on the number of processes, the batch size, or interruptions.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from ..sim import spread
from .results import batch_path, read_results, write_batch
from .runs import Record, Run

Batch = Sequence[Run]
Executor = Callable[[Path, Sequence[Batch]], Iterator[int]]
"""Function that runs batches, writes their results, and yields the size of each finished batch."""


def execute(
    runs: Sequence[Run],
    directory: Path,
    executor: Executor,
    *,
    batch_size: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Mapping[str, Record]:
    """Run the missing runs, and return the records of all runs by id.

    `progress` is called with the number of finished runs, first with the number of existing
    results.

    Raises:
        ValueError: the directory has a file that is not a record; or the executors wrote elsewhere.
    """
    directory.mkdir(parents=True, exist_ok=True)
    there = read_results(directory)
    missing = [run for run in runs if run.id not in there]
    progress(len(runs) - len(missing))
    count = 0
    for done in executor(directory, list(_batches(missing, batch_size))):
        count += done
        progress(done)
    found, wanted = read_results(directory), {run.id for run in runs}
    if count > len(missing) - len(absent := wanted - found.keys()):
        raise ValueError(
            f"{count} runs ended, but {len(absent)} runs are not in {directory}; all executors "
            "need the same directory"
        )
    return {key: record for key, record in found.items() if key in wanted}


def local_processes(jobs: int, *, stopped: Callable[[], bool] = lambda: False) -> Executor:
    """Return an executor that runs batches in several processes of this machine."""

    def run(directory: Path, batches: Sequence[Batch]) -> Iterator[int]:
        return spread(partial(run_batch, directory), batches, jobs=jobs, stopped=stopped)

    return run


def run_batch(directory: Path, batch: Batch) -> int:
    """Run a batch unless its results exist, write its results, and return its size."""
    if not batch_path(directory, (run.id for run in batch)).exists():
        write_batch(directory, list(map(_record, batch)))
    return len(batch)


def _record(run: Run) -> Record:
    record = run.record()
    gc.collect()  # a run leaves much behind, and the next one may be as large
    return record


def _batches(runs: Sequence[Run], size: int) -> Iterator[Batch]:
    remaining = iter(runs)
    while batch := tuple(islice(remaining, size)):
        yield batch
