"""The facts of the machine that a figure means nothing without."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from google.protobuf.internal import api_implementation

BUSY_LOAD_PER_CPU: Final = 0.5


@dataclass(frozen=True, slots=True)
class Machine:
    """What the benchmark ran on."""

    cpu: str
    cpus: int
    system: str
    python: str
    protobuf: str
    node: str | None
    load_average: float

    @property
    def busy(self) -> bool:
        """Whether other work takes so much of the machine that figures are worth less."""
        return self.load_average > BUSY_LOAD_PER_CPU * self.cpus


def this_machine(node_version: str | None) -> Machine:
    """Describe the machine as it is now."""
    return Machine(
        cpu=_cpu_model(),
        cpus=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        protobuf=f"{version('protobuf')} ({api_implementation.Type()})",
        node=node_version,
        load_average=round(os.getloadavg()[0], 2),
    )


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
