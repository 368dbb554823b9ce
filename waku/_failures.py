"""What a refusal means: from status and text to one class of `waku.errors`.

The nodes agree on neither: go-waku answers 503 to nearly every light push that fails and 500 with
an empty body to a publish, nwaku answers 400 to what go-waku calls 404. So the text decides first,
then the call, then the status.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from waku import errors
from waku._request import Request
from waku.errors import WakuError

__all__ = ["MAX_MESSAGE_BYTES", "by_words", "from_answer", "from_text"]

MAX_MESSAGE_BYTES: Final = 150 * 1024
"""The limit of both nodes on the encoded message, where no network and no option names another."""

ErrorClass: TypeAlias = Callable[..., WakuError]

_BY_TEXT: Final[tuple[tuple[ErrorClass, tuple[str, ...]], ...]] = (
    (errors.MessageTooLarge, ("message size exceed",)),
    (errors.RateLimited, ("rate limit",)),
    # go-waku, whatever the reason: mostly a service node that is away or limits the rate.
    (errors.NodeFailure, ("subscription failed",)),
    (
        errors.EndpointMissing,
        # The last is nwaku's for a path that it does not know, with status 400.
        ("is not mounted to the node", "is not implemented", "invalid path or method used"),
    ),
    (
        errors.NotSubscribed,
        (
            "not subscribed to",
            "no subscription found",
            "peer has no subscription",
            "subscription not found",
            "can't unsubscribe",
        ),
    ),
    (
        errors.NoPeers,
        (
            "no suitable",
            "no peers for topic",
            "not_published_to_any_peer",
            "peer_dial_failure",
            "missing known store-peer",
            "protocols not supported",
        ),
    ),
    (
        errors.BadRequest,
        (
            "autosharding",
            "pubsub topic must be specified",
            "invalid content topic",
            "invalid content-topic",
            "can't get shard",
            "missing payload",
            "missing contenttopic",
            "invalid length for meta",
        ),
    ),
)
"""Phrases in lower case; the first found in the node's text decides."""

_BY_STATUS: Final[dict[int, ErrorClass]] = {
    405: errors.EndpointMissing,  # go-waku, a verb it does not know
    412: errors.NoPeers,  # nwaku, no store peer
    413: errors.MessageTooLarge,  # light push v3
    429: errors.RateLimited,
    501: errors.EndpointMissing,
    505: errors.NoPeers,  # light push v3 of nwaku
}

_OUR_MISTAKE: Final = frozenset({400, 401, 403, 407, 414, 431})
"""Refusals of the request itself. Further ones come from what stands in between, such as a proxy
or a load balancer, and say nothing of the message."""

_SUBSCRIPTION_CALLS: Final = frozenset(
    {"relay_messages", "relay_auto_messages", "filter_messages", "filter_ping"}
)
"""A 404 with any text means "no such subscription" here: nwaku's text is the topic itself."""

_UNKNOWN_PATH: Final = frozenset({"", "404 page not found"})
_INNER_STATUS: Final = re.compile(r"([45][0-9]{2}) - ")


def from_answer(
    request: Request,
    status: int,
    body: bytes,
    *,
    is_page: bool = False,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
) -> WakuError:
    """Return the error for an HTTP answer that is not a success.

    No Waku node answers with a page (`is_page`, or HTML). A silent refusal of a message beyond
    `max_message_bytes` is taken for one of its size.
    """
    said = _said(body)
    if is_page or said.startswith("<"):
        return _of_page(status)(request.name, status=status, detail=said)
    return from_text(request, status, said, max_message_bytes=max_message_bytes)


def from_text(
    request: Request, status: int, text: str, *, max_message_bytes: int = MAX_MESSAGE_BYTES
) -> WakuError:
    """Return the error for a status and the node's own words.

    The status may be that of a protocol, carried inside an HTTP answer.
    """
    if inner := _INNER_STATUS.match(text):  # go-waku wraps a store peer's refusal into a 500
        status = int(inner[1])
    kind = _class_for(request, status, text, max_message_bytes)
    return kind(request.name, status=status, detail=text)


def by_words(said: str) -> ErrorClass | None:
    """Return the error that a node's own words, in lower case, stand for; None if unknown."""
    for error, phrases in _BY_TEXT:
        if any(phrase in said for phrase in phrases):
            return error
    return None


def _class_for(request: Request, status: int, text: str, max_message_bytes: int) -> ErrorClass:
    said = text.lower()
    # A store peer's refusal has status 300 or 400 inside an answer.
    if "cursor" in request.params and "cursor" in said and status != 404:
        return errors.CursorExpired
    if not 400 <= status <= 599 and status != 200:
        return errors.BadAnswer  # a redirect: this is not a Waku node
    if status == 404:
        return _missing(request, text)
    if (error := by_words(said)) is not None:
        return error
    if status == 500 and not text:
        return _silent_failure(request, max_message_bytes)
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.BadRequest if status in _OUR_MISTAKE else errors.NodeFailure


def _of_page(status: int) -> ErrorClass:
    if status == 429:
        return errors.RateLimited
    return errors.NodeFailure if status >= 500 else errors.BadAnswer


def _missing(request: Request, text: str) -> ErrorClass:
    """Distinguish the three meanings of a 404: no subscription, no such thing, no such API."""
    if "endpoints are not available" in text:  # nwaku and logos-delivery name the API
        starting = "while initializing" in text
        return errors.NodeFailure if starting else errors.EndpointMissing
    if text not in _UNKNOWN_PATH:
        no_subscription = request.call in _SUBSCRIPTION_CALLS or "subscription" in text
        return errors.NotSubscribed if no_subscription else errors.NotFound
    # nwaku says nothing to a reader without a subscription, as it does to an unknown path.
    silent = request.call == "relay_messages" and not text
    return errors.NotSubscribed if silent else errors.EndpointMissing


def _silent_failure(request: Request, max_message_bytes: int) -> ErrorClass:
    """Guess what go-waku's empty 500 stands for: it has two reasons and gives neither."""
    match request.call, request.body:
        case "relay_publish", {"payload": str(payload)}:
            too_large = len(payload) * 3 // 4 > max_message_bytes
            return errors.MessageTooLarge if too_large else errors.NotSubscribed
        case "relay_unsubscribe", _:
            return errors.NotSubscribed
    return errors.NodeFailure


def _said(body: bytes) -> str:
    """Return the sentence in a refusal: a text, a JSON string, or one field of an object."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict):
        for key in ("statusDesc", "status_desc", "error_message"):
            if isinstance(value.get(key), str):
                return str(value[key])
    return value if isinstance(value, str) else text
