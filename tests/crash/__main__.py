"""`python -m tests.crash --kills 200`: the long run; prints what it found and exits 1 on a broken
promise, leaving journals and states behind."""

import argparse
import sys
from functools import partial
from pathlib import Path
from secrets import randbelow
from tempfile import mkdtemp

import anyio

from .story import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=randbelow(10**6))
    parser.add_argument("--auto", action="store_true", help="participants tune themselves")
    options = parser.parse_args()
    directory = Path(mkdtemp(prefix="crash-"))
    print(f"journals and states in {directory}")
    outcome = anyio.run(
        partial(
            run,
            directory,
            kills=options.kills,
            seed=options.seed,
            self_tuned=options.auto,
        )
    )
    for line in outcome.broken:
        print(f"BROKEN {line}")
    print(
        f"{outcome.kills} kills, {outcome.node_kills} of them of the node; {outcome.accepted} "
        f"messages accepted, {outcome.redelivered} emitted again; all equal after "
        f"{outcome.settled_s:.0f} s; {len(outcome.broken)} promises broken"
    )
    return int(bool(outcome.broken))


if __name__ == "__main__":
    sys.exit(main())
