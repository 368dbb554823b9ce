"""REST operations below `/filter/v2` for subscriptions at a service node, and pushed messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from waku.node.bodies import BadBody, closed_object, read_json, text, text_list
from waku.node.clients import Client
from waku.node.envelope import relay_json
from waku.node.http import Request, Response, Route, ServedNode
from waku.node.lightpush_api import NO_SERVICE, presto_error
from waku.node.services import Criterion, ServiceRefused, Services
from waku.node.sharding import NoShard

__all__ = ["ROUTES"]


async def subscribe(node: ServedNode, request: Request) -> Response:
    """Subscribe to content topics (POST and PUT /filter/v2/subscriptions)."""
    asked = _asked(node, request)
    if isinstance(asked, Response):
        return asked
    cache = node.clients.get(request.client_id).filter_cache
    # The cache first: a push may come before the answer is read.
    added = [topic for topic in asked.content_topics if cache.subscribe_content(topic)]
    answer = await _ask(
        node, request, asked.request_id, lambda s, client: s.subscribe(client, asked.criteria)
    )
    if answer.status != 200:
        for topic in added:
            cache.unsubscribe_content(topic)
    return answer


async def unsubscribe(node: ServedNode, request: Request) -> Response:
    """Unsubscribe from content topics (DELETE /filter/v2/subscriptions)."""
    asked = _asked(node, request)
    if isinstance(asked, Response):
        return asked
    answer = await _ask(
        node, request, asked.request_id, lambda s, client: s.unsubscribe(client, asked.criteria)
    )
    if answer.status == 200:
        for topic in asked.content_topics:
            node.clients.get(request.client_id).filter_cache.unsubscribe_content(topic)
    return answer


async def unsubscribe_all(node: ServedNode, request: Request) -> Response:
    """Unsubscribe from all content topics (DELETE /filter/v2/subscriptions/all)."""
    try:
        body = read_json(request, plain_text=False)
        request_id = text(closed_object(body, required={"requestId"}, optional=set())["requestId"])
    except BadBody as error:
        return _undecodable(error)
    answer = await _ask(node, request, request_id, lambda s, client: s.unsubscribe_all(client))
    if answer.status == 200:
        node.clients.get(request.client_id).filter_cache.clear()
    return answer


async def ping(node: ServedNode, request: Request) -> Response:
    """Ping the service node (GET /filter/v2/subscriptions/{requestId})."""
    return await _ask(node, request, request.path_values[0], lambda s, client: s.ping(client))


async def messages(node: ServedNode, request: Request) -> Response:
    """Answer GET /filter/v2/messages/{contentTopic} with the unread messages."""
    topic = request.path_values[0]
    found = node.clients.get(request.client_id).filter_cache.take_content(topic)
    if found is None:
        return Response.text(400, f"Not subscribed to topic: {topic}")
    fields = [relay_json(message) for message in found]
    for message in fields:
        del message["proof"]
    return Response.json(fields)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a client wants changed."""

    request_id: str
    content_topics: list[str]
    criteria: list[Criterion]


def _asked(node: ServedNode, request: Request) -> _Asked | Response:
    """Read a change, or say why it goes to no service node."""
    try:
        body = closed_object(
            read_json(request, plain_text=False),
            required={"requestId", "contentFilters"},
            optional={"pubsubTopic"},
        )
        request_id, content_topics = text(body["requestId"]), text_list(body["contentFilters"])
        pubsub_topic = text(body.get("pubsubTopic", ""))
        if not content_topics:
            raise BadBody
    except BadBody as error:
        return _undecodable(error)
    if node.service_nodes.find("filter") is None:
        return _answer(request_id, f"SERVICE_UNAVAILABLE: {NO_SERVICE}", 503)
    if not pubsub_topic and node.options.static_sharding:
        # nwaku answers so, and has done nothing.
        return Response.json({"requestId": request_id, "statusDesc": "UNKNOWN"})
    try:
        criteria = [(pubsub_topic or node.shard_for(topic), topic) for topic in content_topics]
    except NoShard:
        return _answer(request_id, "BAD_RESPONSE: can't get shard", 500)
    return _Asked(request_id, content_topics, criteria)


async def _ask(
    node: ServedNode,
    request: Request,
    request_id: str,
    act: Callable[[Services, Client], Awaitable[None]],
) -> Response:
    services = node.service_nodes.find("filter")
    if services is None:
        return _answer(request_id, f"SERVICE_UNAVAILABLE: {NO_SERVICE}", 503)
    try:
        await act(services, node.clients.get(request.client_id))
    except ServiceRefused as refusal:
        return _answer(request_id, refusal.description, refusal.status)
    return _answer(request_id, "OK", 200)


def _answer(request_id: str, description: str, status: int) -> Response:
    return Response.json({"requestId": request_id, "statusDesc": description}, status)


def _undecodable(error: BadBody) -> Response:
    # nwaku writes a full stop here where its other APIs have a colon.
    reason = presto_error(str(error).replace("could not decode: ", "could not decode. "))
    return _answer("unknown", f"BAD_REQUEST: Failed to decode request: {reason}", 400)


_FAILURES: Final = {
    400: "not a filter request, or too many topics",
    404: "not subscribed",
    429: "the service node has had too many requests",
    500: "a content topic has no shard, or the service node's answer cannot be used",
    503: "no service node, or no answer in time",
    504: "the service node is away",
}
_SUBSCRIPTIONS: Final = "/filter/v2/subscriptions"

ROUTES: Final = (
    *(
        Route(
            method,
            _SUBSCRIPTIONS,
            subscribe,
            "Subscribe to content topics",
            "filter",
            body="FilterRequest",
            answer="FilterAnswer",
            failures=_FAILURES,
            failure="FilterAnswer",
        )
        for method in ("POST", "PUT")
    ),
    Route(
        "DELETE",
        _SUBSCRIPTIONS,
        unsubscribe,
        "Unsubscribe from content topics",
        "filter",
        body="FilterRequest",
        answer="FilterAnswer",
        failures=_FAILURES,
        failure="FilterAnswer",
    ),
    Route(
        "DELETE",
        f"{_SUBSCRIPTIONS}/all",
        unsubscribe_all,
        "Unsubscribe from everything",
        "filter",
        body="FilterRequestAll",
        answer="FilterAnswer",
        failures=_FAILURES,
        failure="FilterAnswer",
    ),
    Route(
        "GET",
        f"{_SUBSCRIPTIONS}/{{requestId}}",
        ping,
        "Ask whether there is a subscription",
        "filter",
        answer="FilterAnswer",
        failures={code: text for code, text in _FAILURES.items() if code != 400},
        failure="FilterAnswer",
    ),
    Route(
        "GET",
        "/filter/v2/messages/{contentTopic}",
        messages,
        "Take the unread messages of a content topic",
        "filter",
        answer="FilterMessages",
        failures={400: "not subscribed"},
    ),
)
