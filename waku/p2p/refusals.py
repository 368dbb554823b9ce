"""Translation of a service peer's status into an error class of `waku.errors`.

The statuses come from 19/WAKU2-LIGHTPUSH (with 420 and 5xx), 12/WAKU2-FILTER and 13/WAKU2-STORE.
"""

from __future__ import annotations

from typing import Final

from waku import _failures, errors
from waku.errors import WakuError

from .codec import ResponseStatus

__all__ = ["refusal"]

_BY_STATUS: Final[dict[int, type[WakuError]]] = {
    404: errors.NotSubscribed,
    413: errors.MessageTooLarge,
    429: errors.RateLimited,
    504: errors.OutOfRlnProofs,
    505: errors.NoPeers,
}
_RLN_WORDS: Final = ("rln", "rate limit proof", "rate_limit_proof")


def refusal(call: str, answer: ResponseStatus) -> WakuError:
    """Return the error for an answer whose status is not 200."""
    return _class_for(answer)(call, status=answer.status, detail=answer.text)


def _class_for(answer: ResponseStatus) -> _failures.ErrorClass:
    said = answer.text.lower()
    # T16: a cursor that is gone is 300 or 400, by the family.
    if "cursor" in said:
        return errors.CursorExpired
    if "message size exceed" in said:
        return errors.MessageTooLarge  # 420 too: nwaku's status of every message that is invalid
    if answer.status in _BY_STATUS:
        return _BY_STATUS[answer.status]
    if any(word in said for word in _RLN_WORDS):
        return errors.RlnProofRequired  # 420; a generic 400 of older nodes, and light push v2
    if (error := _failures.by_words(said)) is not None:
        return error
    return errors.BadRequest if 400 <= answer.status < 500 else errors.NodeFailure
