"""Times of repair requests and answers in the `nim` dialect (nim-sds, SDS-R).

The formulas are those of `buffers.py`, but with the string hash of Nim. All participants of a
channel should use the formulas of one dialect. With different formulas each participant still asks
and answers in time, but two may do so at once.
"""

from typing import Final

from ..bloom import remainder
from ..dialects.nim import magnitude, string_hash
from ..options import RepairOptions
from .buffers import RepairTimers


def nim_t_req(participant_id: str, message_id: str, now_ms: int, options: RepairOptions) -> int:
    """Return the time at which `participant_id` asks for a missing message."""
    span = options.t_max_ms - options.t_min_ms
    spread_ms = _spread(string_hash(participant_id + message_id), span) if span else 0
    return now_ms + options.t_min_ms + spread_ms


def nim_t_resp(
    participant_id: str, sender_id: str, message_id: str, now_ms: int, options: RepairOptions
) -> int:
    """Return the time at which `participant_id` answers a request for a message of `sender_id`.
    Unlike in the specification, both factors are reduced before they are multiplied."""
    t_max_ms = options.t_max_ms
    distance = _spread(string_hash(participant_id) ^ string_hash(sender_id), t_max_ms)
    return now_ms + remainder(distance * _spread(string_hash(message_id), t_max_ms), t_max_ms)


def nim_in_response_group(
    participant_id: str, sender_id: str, message_id: str, groups: int
) -> bool:
    """Return True if `participant_id` may answer a request for a message of `sender_id`. If no
    sender is given, no participant may answer."""
    if not sender_id:
        return False
    if groups <= 1:
        return True
    own, theirs = string_hash(participant_id + message_id), string_hash(sender_id + message_id)
    return _spread(own, groups) == _spread(theirs, groups)


def _spread(hashed: int, over: int) -> int:
    return remainder(magnitude(hashed), over)


NIM_TIMERS: Final = RepairTimers(nim_t_req, nim_t_resp, nim_in_response_group)
