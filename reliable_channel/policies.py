"""The policies of a channel, which are pure functions."""

from dataclasses import dataclass

from .repair_policies import Missing, RepairPolicy, RepairStep, both
from .sds.ids import IdFunction
from .sds.retries import RetryPolicy, Unacknowledged, fixed

__all__ = [
    "IdFunction",
    "Missing",
    "Policies",
    "RepairPolicy",
    "RepairStep",
    "RetryPolicy",
    "Unacknowledged",
]


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one channel."""

    retry: RetryPolicy = fixed
    repair: RepairPolicy = both
    id_function: IdFunction | None = None
    """None: the id function of the wire profile."""
