"""Many scenarios, on as many cores as there are."""

import gc
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import active_children
from typing import Final

from .scenario import Scenario
from .simulation import Result, Simulation

LOOK_S: Final = 0.2
"""How often it is asked whether to stop."""


def run_all(
    make: Callable[[int], Scenario],
    seeds: Iterable[int],
    *,
    jobs: int = 1,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Result]:
    """Run the scenario of each seed and give the results, in the order in which they are done.

    `seeds` may be endless; it ends early once `stopped` says so. With more than one job the runs
    are spread over processes, so that `make` must be a function of a module.
    """
    if jobs <= 1:
        for seed in seeds:
            if stopped():
                return
            yield _run(make, seed)
        return
    remaining, strangers = iter(seeds), set(active_children())
    with ProcessPoolExecutor(jobs, initializer=_become_a_worker) as pool:
        running: set[Future[Result]] = set()
        try:
            while not stopped():
                # Some wait beside those that run, so that no core does.
                for seed in islice(remaining, 3 * jobs - len(running)):
                    running.add(pool.submit(_run, make, seed))
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
    scenario = make(seed)
    # What a run makes lives as long as the run, and looking through it takes a fifth of the time.
    gc.disable()
    try:
        return Simulation(scenario).run()
    finally:
        gc.enable()


def _become_a_worker() -> None:
    """Leave interrupts to the parent, which ends its workers, and end when it says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
