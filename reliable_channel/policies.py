"""Policies, which are pure functions: those with a name, and the guard around all others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args

from .guard import Contract, Guard, instance
from .repair_policies import REPAIR_POLICIES, Look, Missing, RepairPolicy, RepairStep, both
from .sds.ids import IdFunction, js_waku_id, reliable_channel_id
from .sds.retries import RetryPolicy, Unacknowledged, doubling, fixed

__all__ = [
    "ID_FUNCTIONS",
    "REPAIR_POLICIES",
    "RETRY_POLICIES",
    "IdFunction",
    "Missing",
    "Policies",
    "RepairPolicy",
    "RepairStep",
    "RetryPolicy",
    "Unacknowledged",
    "guarded_id_function",
    "guarded_repair_policy",
    "guarded_retry_policy",
]

RETRY_POLICIES: Final[Mapping[str, RetryPolicy]] = {"fixed": fixed, "doubling": doubling}
ID_FUNCTIONS: Final[Mapping[str, IdFunction]] = {
    "lip-173": reliable_channel_id,
    "js-waku": js_waku_id,
}
MAX_ID_CHARACTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one channel."""

    retry: RetryPolicy = fixed
    repair: RepairPolicy = both
    id_function: IdFunction | None = None
    """None: the id function of the wire profile."""


INTERVAL: Final = Contract(
    lambda value: isinstance(value, int) and value >= 1, "a whole number of milliseconds from 1"
)
MESSAGE_ID: Final = Contract(
    lambda value: isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARACTERS,
    f"a text of 1 to {MAX_ID_CHARACTERS} characters",
)
TIME: Final = Contract(
    lambda value: value is None or (isinstance(value, int) and not isinstance(value, bool)),
    "None or a whole number of milliseconds",
)
LOOK: Final = Contract(
    lambda value: value in get_args(Look), f"one of {', '.join(map(repr, get_args(Look)))}"
)


def guarded_retry_policy(policy: RetryPolicy, guard: Guard) -> RetryPolicy:
    """The policy under guard."""
    return guard.function("retry_policy", policy, INTERVAL)


def guarded_repair_policy(policy: RepairPolicy, guard: Guard) -> RepairPolicy:
    """The policy under guard, with each field of its step checked."""
    decide = guard.function("retrieval_strategy", policy, instance(RepairStep))

    def guarded(missing: Missing) -> RepairStep:
        step = decide(missing)
        for name, contract in (("look_at_ms", TIME), ("ask_at_ms", TIME), ("look", LOOK)):
            guard.checked(
                f"`{name}` of retrieval_strategy", getattr(step, name), contract, "must be"
            )
        return step

    return guarded


def guarded_id_function(id_function: IdFunction, guard: Guard) -> IdFunction:
    """The id function under guard."""
    return guard.function("id_function", id_function, MESSAGE_ID)
