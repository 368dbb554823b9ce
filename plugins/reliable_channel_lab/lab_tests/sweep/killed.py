"""A sweep whose fourth run kills the process that started it.

`python killed.py DIRECTORY JOBS` runs it.
"""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from reliable_channel_lab.sweep import Run, execute, local_processes
from reliable_channel_lab.sweep.quiet import QuietRun
from reliable_channel_lab.sweep.runs import Value

RUNS: Sequence[Run] = [
    QuietRun(seed=seed, participants=participants, rounds=2)
    for participants in (3, 20)
    for seed in (1, 2, 3)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadly(Run):
    kind: ClassVar = "deadly"
    measures: ClassVar = ()
    victim: int

    def measure(self) -> dict[str, Value]:
        os.kill(self.victim, signal.SIGKILL)
        while True:
            signal.pause()


if __name__ == "__main__":
    runs = [*RUNS[:3], Deadly(seed=1, victim=os.getpid()), *RUNS[3:]]
    execute(runs, Path(sys.argv[1]), local_processes(int(sys.argv[2])), batch_size=1)
