"""Policies, which are pure functions: those with a name, and how those of others are held to their
word."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, get_args

from .errors import PluginError
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
    "checked_id_function",
    "checked_repair_policy",
    "checked_retry_policy",
]

RETRY_POLICIES: Final[Mapping[str, RetryPolicy]] = {"fixed": fixed, "doubling": doubling}
ID_FUNCTIONS: Final[Mapping[str, IdFunction]] = {
    "lip-173": reliable_channel_id,
    "js-waku": js_waku_id,
}
MAX_ID_CHARACTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class Policies:
    """What a channel does in its own way."""

    retry: RetryPolicy = fixed
    repair: RepairPolicy = both
    id_function: IdFunction | None = None
    """Where None, that of the wire profile."""


def checked_retry_policy(policy: RetryPolicy, whose: str) -> RetryPolicy:
    """The policy; whatever it raises, or returns beside a time, is told as `whose`."""

    def checked(message: Unacknowledged) -> int:
        interval_ms = _called(lambda: policy(message), whose)
        if isinstance(interval_ms, int) and interval_ms >= 1:
            return interval_ms
        raise PluginError(
            f"{whose} returned {interval_ms!r}; allowed is a whole number of milliseconds from 1"
        )

    return checked


def checked_repair_policy(policy: RepairPolicy, whose: str) -> RepairPolicy:
    """The policy; whatever it raises, or returns beside a step, is told as `whose`."""

    def checked(missing: Missing) -> RepairStep:
        step = _called(lambda: policy(missing), whose)
        if not isinstance(step, RepairStep):
            raise PluginError(f"{whose} returned {step!r:.80}; allowed is a RepairStep")
        for name in ("look_at_ms", "ask_at_ms"):
            at_ms = getattr(step, name)
            if at_ms is not None and (not isinstance(at_ms, int) or isinstance(at_ms, bool)):
                raise PluginError(
                    f"{whose} returned a step whose {name} is {at_ms!r:.80}; allowed are None and "
                    "whole numbers of milliseconds"
                )
        if step.look not in get_args(Look):
            allowed = ", ".join(map(repr, get_args(Look)))
            raise PluginError(
                f"{whose} returned a step whose look is {step.look!r:.80}; allowed are {allowed}"
            )
        return step

    return checked


def checked_id_function(id_function: IdFunction, whose: str) -> IdFunction:
    """The id function; whatever it raises, or returns beside a text, is told as `whose`."""

    def checked(sender_id: str, timestamp_ns: int, content: bytes) -> str:
        message_id = _called(lambda: id_function(sender_id, timestamp_ns, content), whose)
        if isinstance(message_id, str) and 1 <= len(message_id) <= MAX_ID_CHARACTERS:
            return message_id
        raise PluginError(
            f"{whose} returned {message_id!r:.80}; allowed is a text of 1 to {MAX_ID_CHARACTERS} "
            "characters"
        )

    return checked


def _called(call: Callable[[], object], whose: str) -> object:
    try:
        return call()
    except Exception as error:
        raise PluginError(f"{whose} failed: {error!r}") from error
