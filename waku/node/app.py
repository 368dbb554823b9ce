"""ASGI app of the REST API, which finds the route of a request and sends the answer.

The app does not use the router of a web framework. nwaku treats a percent-encoded topic as one
segment of a path, and answers a wrong method with 404. Routers that decode a path before they match
it, or return 405, cannot do the same.
"""

from __future__ import annotations

from typing import Final

import anyio

from waku._asgi import App, Receive, Scope, Send
from waku.client import CLIENT_ID_HEADER
from waku.node import (
    admin_api,
    debug_api,
    filter_api,
    go_waku_api,
    lightpush_api,
    messaging_api,
    metrics_api,
    openapi,
    relay_api,
    store_api,
)
from waku.node.access import Access
from waku.node.http import (
    HTML,
    NOT_FOUND,
    Request,
    Response,
    Route,
    Routes,
    ServedNode,
    parse_query,
)

__all__ = ["App", "NodeApp", "Receive", "Scope", "Send"]

MAX_CLIENT_ID_CHARACTERS: Final = 128

SAFE: Final = ("node", "description")
"""Tags of the routes whose GET request changes nothing."""
_CLIENT_ID: Final = CLIENT_ID_HEADER.lower().encode()
_NO_CONTENT_TYPE: Final = Response(400, b"Invalid content type", HTML)
_TOO_LARGE: Final = Response.text(413, "")
_TOO_SLOW: Final = Response.text(408, "The body of the request took too long")
_CLOSING: Final = (_TOO_LARGE, _TOO_SLOW)
"""Answers after which the rest of the body is not waited for."""
_BAD_CLIENT_ID: Final = Response.text(400, f"{CLIENT_ID_HEADER}: at most 128 characters")


class BodyTooLarge(Exception):
    """The body of a request exceeds the size limit."""


class Disconnected(Exception):
    """The caller disconnected while it sent the body of a request."""


class NodeApp:
    """REST API of one node, as an ASGI app."""

    def __init__(self, node: ServedNode) -> None:
        self._node = node
        options = node.options
        self._access = Access(options)
        self._options = options
        served = options.rest_apis
        routes = (
            *debug_api.ROUTES,
            *(metrics_api.ROUTES if options.behave_as is None else ()),
            *(relay_api.ROUTES if options.relay and "relay" in served else ()),
            *(lightpush_api.ROUTES if "lightpush" in served else ()),
            *(messaging_api.ROUTES if options.messaging else ()),
            *(filter_api.ROUTES if "filter" in served else ()),
            *(store_api.ROUTES if "store" in served else ()),
            *(admin_api.ROUTES if options.admin else ()),
            *openapi.ROUTES,
        )
        if options.behave_as == "go-waku":
            routes = go_waku_api.in_go_waku_terms(routes)
        self.router: Final = Routes(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"an embedded node answers only HTTP (got {scope['type']})")
        headers = dict(scope["headers"])
        method = scope["method"]
        answer = self._access.refusal(method, scope.get("server"), headers)
        if answer is None:
            answer = await self._answer(scope, headers, receive)
        answer_headers = [
            (b"content-type", answer.content_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            *self._access.answer_headers(method, headers),
        ]
        if answer in _CLOSING:
            answer_headers.append((b"connection", b"close"))
        await send(
            {"type": "http.response.start", "status": answer.status, "headers": answer_headers}
        )
        body = b"" if method == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive
    ) -> Response:
        raw_path = scope["raw_path"].decode("latin-1")
        route, path_values = self._found(scope["method"], raw_path)
        body, answer = await self._answer_by(route, path_values, scope, headers, receive)
        method, path = ("", "other") if route is None else (route.method, route.path)
        self._node.metrics.answered(
            method, path, answer.status, request_bytes=len(body), answer_bytes=len(answer.body)
        )
        return answer

    def _found(self, method: str, raw_path: str) -> tuple[Route | None, tuple[str, ...]]:
        """The route of a path. HEAD has that of a GET, if that changes nothing: reading messages
        empties a cache."""
        found = self.router.find("GET" if method == "HEAD" else method, raw_path)
        if found is None or (method == "HEAD" and found[0].tag not in SAFE):
            return None, ()
        return found

    async def _answer_by(
        self,
        route: Route | None,
        path_values: tuple[str, ...],
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
    ) -> tuple[bytes, Response]:
        """The body that was read, and the answer."""
        if route is None:
            return b"", NOT_FOUND
        body: bytes | None = None
        with anyio.move_on_after(self._options.request_timeout_s):
            try:
                body = await _read_body(receive, self._options.body_limit_bytes)
            except BodyTooLarge:
                return b"", _TOO_LARGE
            except Disconnected:
                return b"", _TOO_SLOW  # no client reads it
        if body is None:
            return b"", _TOO_SLOW
        content_type = headers.get(b"content-type")
        if body and content_type is None:
            return body, _NO_CONTENT_TYPE
        client_id = headers.get(_CLIENT_ID, b"").decode("latin-1") or None
        if client_id is not None and len(client_id) > MAX_CLIENT_ID_CHARACTERS:
            return body, _BAD_CLIENT_ID
        raw_query = scope["query_string"]
        request = Request(
            path_values,
            parse_query(raw_query.decode("latin-1")) if raw_query else {},
            body,
            _media_type(content_type),
            client_id,
        )
        return body, await route.handler(self._node, request)


async def _read_body(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Disconnected
        part: bytes = event.get("body", b"")
        size += len(part)
        if size > limit:
            raise BodyTooLarge
        parts.append(part)
        if not event.get("more_body"):
            return b"".join(parts)


def _media_type(content_type: bytes | None) -> str | None:
    if content_type is None:
        return None
    return content_type.decode("latin-1").partition(";")[0].strip().lower()
