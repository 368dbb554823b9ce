"""REST API of go-waku, with fewer operations than nwaku's and other words for the same answers.

The module copies what a client can notice, such as missing paths, `true`, `null`, and texts of
Store v3. The answers were recorded from go-waku 0.10.1.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from waku.node.http import OK, Request, Response, Route, ServedNode

__all__ = ["in_go_waku_terms"]

_MISSING: Final = frozenset(
    {
        ("GET", "/info"),
        ("GET", "/version"),
        ("POST", "/lightpush/v3/message"),
        ("PUT", "/filter/v2/subscriptions"),
    }
)
_NO_HEALTH: Final = Response.json("Non RLN healthcheck is not implemented", 501)


def in_go_waku_terms(routes: Iterable[Route]) -> tuple[Route, ...]:
    """Return those of nwaku's operations that go-waku also has, with the answers of go-waku."""
    return tuple(
        _translated(route) for route in routes if (route.method, route.path) not in _MISSING
    )


def _translated(route: Route) -> Route:
    translate = _ANSWERS.get((route.method, route.path), _confirmed)

    async def handle(node: ServedNode, request: Request) -> Response:
        if route.path == _STORE:
            try:
                request = replace(request, query=_store_query(request.query))
            except ValueError as error:
                return Response.json({"status_code": 400, "status_desc": str(error)}, 400)
        return translate(await route.handler(node, request))

    return replace(route, handler=handle)


def _confirmed(answer: Response) -> Response:
    return Response.json(True) if answer is OK else answer


def _published(answer: Response) -> Response:
    """A topic that is not followed, and a message that is too large, give no reason."""
    refused = answer.status == 400 and answer.body.startswith(b"Failed to publish: ")
    return Response.text(500, "") if refused else _confirmed(answer)


def _published_by_content_topic(answer: Response) -> Response:
    return Response.text(200, "") if answer is OK else _published(answer)


def _messages(answer: Response) -> Response:
    if answer.status != 200:
        return Response.text(404, "no subscription found for pubsubTopic")
    return Response.json([_message(fields) for fields in json.loads(answer.body)] or None)


def _message(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fields.items() if value and name != "proof"}
    return {**kept, "ephemeral": fields.get("ephemeral") or None}


def _filter_messages(answer: Response) -> Response:
    return answer if answer.status == 200 else Response.text(404, "not subscribed to pubsubTopic")


# -- Store v3 --------------------------------------------------------------------------------------


def _store_query(query: Any) -> dict[str, str]:
    """Hashes from URL-safe base64 to hex; topics are decoded once less than nwaku does.

    Raises:
        ValueError: a hash is not base64.
    """
    found = dict(query)
    for name in ("pubsubTopic", "contentTopics"):
        if name in found:
            found[name] = found[name].replace("%", "%25")
    for name in ("hashes", "cursor"):
        if found.get(name):
            found[name] = ",".join(_hex(text) for text in found[name].split(","))
    return found


def _hex(text: str) -> str:
    try:
        return urlsafe_b64decode(text).hex()
    except binascii.Error:
        raise ValueError("illegal base64 data at input byte 0") from None


def _store_answer(answer: Response) -> Response:
    if answer.status != 200:
        reason = answer.body.decode()
        if "cursor" in reason:
            reason = "400 - BAD_REQUEST: cursor not found"
        elif answer.status == 412:
            reason = "no suitable peers found"
        return Response.json({"messages": None, "error_message": reason}, 500)
    page = json.loads(answer.body)
    fields: dict[str, object] = {
        "request_id": page["requestId"],
        "status_code": page["statusCode"],
        "status_desc": page["statusDesc"],
    }
    if page["messages"]:
        fields["messages"] = [_store_entry(entry) for entry in page["messages"]]
    if "paginationCursor" in page:
        fields["pagination_cursor"] = _base64(page["paginationCursor"])
    return Response.json(fields)


def _store_entry(entry: dict[str, Any]) -> dict[str, object]:
    fields: dict[str, object] = {"message_hash": _base64(entry["messageHash"])}
    if "message" in entry:
        message = _message(entry["message"])
        fields["message"] = {**message, "timestamp": str(message.get("timestamp", 0))}
        fields["pubsub_topic"] = entry["pubsubTopic"]
    return fields


def _base64(digits: str) -> str:
    return b64encode(bytes.fromhex(digits.removeprefix("0x"))).decode()


_STORE: Final = "/store/v3/messages"
_ANSWERS: Final[dict[tuple[str, str], Callable[[Response], Response]]] = {
    ("GET", "/health"): lambda _: _NO_HEALTH,
    ("GET", "/debug/v1/version"): lambda answer: Response.json(answer.body.decode()),
    ("GET", "/relay/v1/messages/{pubsubTopic}"): _messages,
    ("POST", "/relay/v1/messages/{pubsubTopic}"): _published,
    ("GET", "/relay/v1/auto/messages/{contentTopic}"): _messages,
    ("POST", "/relay/v1/auto/messages"): _published_by_content_topic,
    ("GET", "/filter/v2/messages/{contentTopic}"): _filter_messages,
    ("GET", _STORE): _store_answer,
}
