"""Runner of many scenarios on all processor cores of the machine."""

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import islice
from multiprocessing import active_children, parent_process
from typing import Final, TypeVar

from .scenario import Scenario
from .simulation import Result, Simulation

_Task = TypeVar("_Task")
_Outcome = TypeVar("_Outcome")

LOOK_S: Final = 0.2
"""Polling interval of the function `stopped`."""


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    make: Callable[[int], Scenario],
    seeds: Iterable[int],
    *,
    jobs: int = 1,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Result]:
    """Run the scenario of each seed, and yield the results as they finish.

    `seeds` may be an endless iterable. The runs end early once `stopped` returns True. With several
    jobs, runs use several processes, so `make` must be a module's function.
    """
    return spread(partial(_run, make), seeds, jobs=jobs, stopped=stopped)


def spread(
    run: Callable[[_Task], _Outcome],
    tasks: Iterable[_Task],
    *,
    jobs: int = 1,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[_Outcome]:
    """Run each task, as `run_all` runs scenarios. Each result must contain its task."""
    alone = partial(_without_collecting, run)
    if jobs <= 1:
        for task in tasks:
            if stopped():
                return
            yield alone(task)
        return
    remaining, strangers = iter(tasks), set(active_children())
    with ProcessPoolExecutor(jobs, initializer=_become_a_worker) as pool:
        running: set[Future[_Outcome]] = set()
        try:
            while not stopped():
                # Some wait beside those that run, so that no core does.
                for task in islice(remaining, 3 * jobs - len(running)):
                    running.add(pool.submit(alone, task))
                if not running:
                    return
                done, running = wait(running, LOOK_S, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            # Interrupted: what still runs may run for long, and nobody will read it.
            if running:
                for worker in set(active_children()) - strangers:
                    worker.terminate()


def _run(make: Callable[[int], Scenario], seed: int) -> Result:
    return Simulation(make(seed)).run()


def _without_collecting(run: Callable[[_Task], _Outcome], task: _Task) -> _Outcome:
    """What a run makes lives as long as the run, and looking through it takes a fifth of the
    time."""
    gc.disable()
    try:
        return run(task)
    finally:
        gc.enable()


def _become_a_worker() -> None:
    """Leave interrupts to the parent, which ends its workers, and end when it says so, or when it
    was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
