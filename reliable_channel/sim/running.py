"""Many scenarios, on as many cores as there are."""

import gc
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
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
    remaining = iter(seeds)
    with ProcessPoolExecutor(jobs, initializer=_leave_signals_to_the_parent) as pool:
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
            for future in running:
                future.cancel()


def _run(make: Callable[[int], Scenario], seed: int) -> Result:
    scenario = make(seed)
    # What a run makes lives as long as the run, and looking through it takes a fifth of the time.
    gc.disable()
    try:
        return Simulation(scenario).run()
    finally:
        gc.enable()


def _leave_signals_to_the_parent() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
