"""Description of the REST API, as OpenAPI 3.1 at `/openapi.json` and a page for people at
`/docs`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any, Final

from waku.client import CLIENT_ID_HEADER
from waku.node.http import HTML, JSON, TEXT, Request, Response, Route, ServedNode

__all__ = ["ROUTES", "document"]

_Schema = dict[str, Any]


def _object(required: str = "", **properties: _Schema) -> _Schema:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def _list(items: _Schema) -> _Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT: Final[_Schema] = {"type": "string"}
_INTEGER: Final[_Schema] = {"type": "integer"}
_BOOLEAN: Final[_Schema] = {"type": "boolean"}
_BASE64: Final[_Schema] = {"type": "string", "contentEncoding": "base64"}
_HASH: Final[_Schema] = {"type": "string", "pattern": "^0x[0-9a-f]{64}$"}
_TIMESTAMP: Final[_Schema] = {
    "type": "integer",
    "format": "int64",
    "description": "nanoseconds since 1970",
}
_MESSAGE: Final = {
    "payload": _BASE64,
    "contentTopic": _TEXT,
    "version": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    "timestamp": _TIMESTAMP,
    "meta": _BASE64,
    "ephemeral": _BOOLEAN,
}
_SEND_EVENTS: Final = _object(
    "requestId events",
    requestId=_TEXT,
    events=_list(
        _object(
            "kind messageHash timestamp",
            kind={"enum": ["propagated", "sent", "error"]},
            messageHash=_TEXT,
            error=_TEXT,
            timestamp=_TIMESTAMP,
        )
    ),
)
_PEER: Final = _object(
    "multiaddr protocols shards connected agent origin",
    multiaddr=_TEXT,
    protocols=_list(_TEXT),
    shards=_list(_INTEGER),
    connected=_TEXT,
    agent=_TEXT,
    origin=_TEXT,
    score={"type": "number"},
)

SCHEMAS: Final[dict[str, _Schema]] = {
    "FilterAnswer": _object("requestId statusDesc", requestId=_TEXT, statusDesc=_TEXT),
    "FilterMessages": _list(
        _object("payload contentTopic version timestamp ephemeral", **_MESSAGE)
    ),
    "FilterRequest": _object(
        "requestId contentFilters",
        requestId=_TEXT,
        contentFilters={**_list(_TEXT), "minItems": 1, "maxItems": 100},
        pubsubTopic=_TEXT,
    ),
    "FilterRequestAll": _object("requestId", requestId=_TEXT),
    "FilterSubscriptions": _list(
        _object(
            "peerId filterCriteria",
            peerId=_TEXT,
            filterCriteria=_list(
                _object("pubsubTopic contentTopic", pubsubTopic=_TEXT, contentTopic=_TEXT)
            ),
        )
    ),
    "Health": _object(
        "nodeHealth protocolsHealth",
        nodeHealth=_TEXT,
        protocolsHealth=_list({"type": "object", "additionalProperties": _TEXT}),
    ),
    "Info": _object("listenAddresses enrUri", listenAddresses=_list(_TEXT), enrUri=_TEXT),
    "Peer": _PEER,
    "Peers": _list(_ref("Peer")),
    "PeersOfShard": _object("shard peers", shard=_INTEGER, peers=_list(_ref("Peer"))),
    "PeersOfShards": _list(_ref("PeersOfShard")),
    "PeerStats": {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": _INTEGER},
    },
    "MessagingEventsOf": _SEND_EVENTS,
    "MessagingReceived": _list(
        _object("messageHash message", messageHash=_HASH, message=_ref("RelayMessage"))
    ),
    "MessagingRequest": _object("requestId", requestId=_TEXT),
    "MessagingSend": {
        **_object(
            "payload contentTopic",
            payload=_BASE64,
            contentTopic=_TEXT,
            meta=_BASE64,
            ephemeral=_BOOLEAN,
        ),
        "additionalProperties": True,
    },
    "MessagingSendEvents": _list(_ref("MessagingEventsOf")),
    "PushAnswer": _object(relayPeerCount=_INTEGER, statusDesc=_TEXT),
    "PushRequest": _object("message", pubsubTopic=_TEXT, message=_ref("RelayMessage")),
    "RelayMessage": _object("payload contentTopic", **_MESSAGE, proof=_BASE64),
    "RelayMessages": _list(_ref("RelayMessage")),
    "StoreAnswer": _object(
        "requestId statusCode statusDesc messages",
        requestId=_TEXT,
        statusCode=_INTEGER,
        statusDesc=_TEXT,
        messages=_list(
            _object(
                "messageHash",
                messageHash=_HASH,
                message=_ref("RelayMessage"),
                pubsubTopic=_TEXT,
            )
        ),
        paginationCursor=_HASH,
    ),
    "TopicList": _list(_TEXT),
}

QUERY: Final[dict[str, _Schema]] = {
    "after": {**_INTEGER, "description": "number of the last message that arrived"},
    "ascending": {**_TEXT, "description": "absent or `true`: from the oldest; else backwards"},
    "contentTopics": {**_TEXT, "description": "separated by commas"},
    "cursor": {**_TEXT, "description": "hash in hex: the page after that message"},
    "endTime": {**_TIMESTAMP, "description": "nanoseconds since 1970, inclusive"},
    "hashes": {**_TEXT, "description": "in hex, separated by commas"},
    "includeData": {**_TEXT, "description": "true: messages, not only their hashes"},
    "maxBytes": {**_INTEGER, "description": "the longest answer that the asking node takes"},
    "pageSize": {**_INTEGER, "description": "default 20, at most 100"},
    "peerAddr": {**_TEXT, "description": "multiaddress of the node to ask"},
    "peerId": {**_TEXT, "description": "id of the client"},
    "pubsubTopic": _TEXT,
    "startTime": {**_TIMESTAMP, "description": "nanoseconds since 1970, inclusive"},
    "waitMs": {**_INTEGER, "description": "how long to hold the question, at most 20 s"},
}

ANY_FAILURES: Final = {
    400: f"`{CLIENT_ID_HEADER}` longer than 128 characters, or a body without a content type",
    401: "the node's token is missing",
    403: "a web page of an origin that is not allowed, or a `Host` that is not a name of the node",
    408: "the body took too long",
    413: "the body is too long",
}
"""Answers that every operation may give before its handler is called (`app.py`), by status."""

_INTRODUCTION: Final = f"""\
The REST API of nwaku, served by an embedded node. Topics in a path are percent-encoded. Reading \
messages takes them out. With the header `{CLIENT_ID_HEADER}` a client has separate \
subscriptions and unread messages; without it, all share one set, as with nwaku. A path that is \
not listed here is 404 with an empty text."""


def document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the given routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Embedded Waku node", "version": version, "description": _INTRODUCTION},
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


async def openapi_json(node: ServedNode, request: Request) -> Response:
    return Response.json(document(node.routes, node.agent))


async def page(node: ServedNode, request: Request) -> Response:
    """Answer GET /docs with one page without scripts and without content from other hosts."""
    by_tag: dict[str, list[Route]] = {}
    for route in node.routes:
        by_tag.setdefault(route.tag, []).append(route)
    sections = "".join(
        f"<h2>{escape(tag)}</h2>{''.join(_entry_html(route) for route in routes)}"
        for tag, routes in by_tag.items()
    )
    html = _PAGE.format(agent=escape(node.agent), intro=_code(_INTRODUCTION), sections=sections)
    return Response(200, html.encode(), HTML)


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^0-9A-Za-z]+', '_', route.path)}",
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": _TEXT}
                for name in re.findall(r"{(\w+)}", route.path)
            ),
            *({"name": name, "in": "query", "schema": QUERY[name]} for name in route.query),
            {"name": CLIENT_ID_HEADER, "in": "header", "schema": {**_TEXT, "maxLength": 128}},
        ],
        "responses": {
            "200": {"description": "done", "content": _answer_content(route)},
            **{
                str(status): {"description": text, "content": _failure_content(route)}
                for status, text in sorted({**ANY_FAILURES, **_failures(route)}.items())
            },
        },
    }
    if route.body is not None:
        content = {JSON: {"schema": _ref(route.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answer_content(route: Route) -> dict[str, Any]:
    if route.answer is None:
        return {HTML if route.handler is page else TEXT: {"schema": _TEXT}}
    return {JSON: {"schema": {"type": "object"} if route.answer == "any" else _ref(route.answer)}}


def _failures(route: Route) -> dict[int, str]:
    """What a route may answer instead of 200, besides what any may."""
    return {
        status: f"{text}; {ANY_FAILURES[status]}" if status in ANY_FAILURES else text
        for status, text in route.failures.items()
    }


def _failure_content(route: Route) -> dict[str, Any]:
    content = {media_type: {"schema": _TEXT} for media_type in (TEXT, HTML)}
    return content if route.failure is None else {JSON: {"schema": _ref(route.failure)}, **content}


def _entry_html(route: Route) -> str:
    rows = [f"<code>{escape(name)}</code> in the query" for name in route.query]
    if route.body is not None:
        rows.insert(0, f"body: <code>{escape(route.body)}</code>")
    rows += [f"{status}: {escape(text)}" for status, text in sorted(route.failures.items())]
    details = f"<ul>{''.join(f'<li>{row}</li>' for row in rows)}</ul>" if rows else ""
    heading = f"<code><b>{route.method}</b> {escape(route.path)}</code>"
    return f"<article>{heading}<p>{escape(route.summary)}.</p>{details}</article>"


def _code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Embedded Waku node</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto }}
article {{ border-top: 1px solid #8884; padding: .6rem 0 }}
article p {{ margin: .2rem 0 }}
ul {{ margin: .2rem 0; font-size: .9rem }}
:root {{ color-scheme: light dark }}
</style>
<h1>Embedded Waku node</h1>
<p>{intro}</p>
<p>{agent}; the same as OpenAPI: <a href="openapi.json">openapi.json</a></p>
{sections}
</html>
"""


async def what_it_is(node: ServedNode, request: Request) -> Response:
    """Answer GET / with a short text about the node, for people and probes."""
    what = f"This is a Waku node, {node.agent}. /docs describes its REST API, /health its state."
    return Response.text(200, what + "\n")


ROUTES: Final = (
    Route("GET", "/", what_it_is, "Say what this is", "description"),
    Route("GET", "/openapi.json", openapi_json, "Describe this API", "description", answer="any"),
    Route("GET", "/docs", page, "Describe this API to people", "description"),
)
