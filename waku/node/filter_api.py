"""`/filter/v2`: subscribing at a service node and reading what it pushed (12/WAKU2-FILTER)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from waku.node.bodies import BadBody, closed_object, read_json, text, text_list
from waku.node.clients import Client
from waku.node.envelope import relay_json
from waku.node.filter import Criterion, FilterRefused, FilterService
from waku.node.http import Answer, Request, Route
from waku.node.lightpush_api import NO_SERVICE, presto_error
from waku.node.sharding import NoShard

if TYPE_CHECKING:
    from waku.node.node import EmbeddedNode

__all__ = ["ROUTES"]


async def subscribe(node: EmbeddedNode, request: Request) -> Answer:
    """POST and PUT /filter/v2/subscriptions."""
    return _change(node, request, FilterService.subscribe, _keep)


async def unsubscribe(node: EmbeddedNode, request: Request) -> Answer:
    """DELETE /filter/v2/subscriptions."""
    return _change(node, request, FilterService.unsubscribe, _forget)


async def unsubscribe_all(node: EmbeddedNode, request: Request) -> Answer:
    """DELETE /filter/v2/subscriptions/all."""
    try:
        body = read_json(request, plain_text=False)
        request_id = text(closed_object(body, required={"requestId"}, optional=set())["requestId"])
    except BadBody as error:
        return _undecodable(error)
    client = node.clients.get(request.client_id)
    answer = _ask(node, request_id, lambda service: service.unsubscribe_all(client))
    if answer.status == 200:
        client.filter_cache.clear()
    return answer


async def ping(node: EmbeddedNode, request: Request) -> Answer:
    """GET /filter/v2/subscriptions/{requestId}."""
    client = node.clients.get(request.client_id)
    return _ask(node, request.path_values[0], lambda service: service.ping(client))


async def messages(node: EmbeddedNode, request: Request) -> Answer:
    """GET /filter/v2/messages/{contentTopic}."""
    topic = request.path_values[0]
    found = node.clients.get(request.client_id).filter_cache.take_content(topic)
    if found is None:
        return Answer.text(400, f"Not subscribed to topic: {topic}")
    fields = [relay_json(message) for message in found]
    for message in fields:
        del message["proof"]
    return Answer.json(fields)


def _change(
    node: EmbeddedNode,
    request: Request,
    act: Callable[[FilterService, Client, list[Criterion]], None],
    then: Callable[[Client, list[str]], None],
) -> Answer:
    """Ask the service to change a subscription; when it does, let the client's cache follow."""
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
    if node.service("filter") is None:
        return _answer(request_id, f"SERVICE_UNAVAILABLE: {NO_SERVICE}", 503)
    if not pubsub_topic and node.options.static_sharding:
        # nwaku answers so, and has done nothing.
        return Answer.json({"requestId": request_id, "statusDesc": "UNKNOWN"})
    try:
        criteria = [(pubsub_topic or node.shard_for(topic), topic) for topic in content_topics]
    except NoShard:
        return _answer(request_id, "BAD_RESPONSE: can't get shard", 500)
    client = node.clients.get(request.client_id)
    answer = _ask(node, request_id, lambda service: act(service, client, criteria))
    if answer.status == 200:
        then(client, content_topics)
    return answer


def _keep(client: Client, content_topics: list[str]) -> None:
    for topic in content_topics:
        client.filter_cache.subscribe_content(topic)


def _forget(client: Client, content_topics: list[str]) -> None:
    for topic in content_topics:
        client.filter_cache.unsubscribe_content(topic)


def _ask(node: EmbeddedNode, request_id: str, act: Callable[[FilterService], None]) -> Answer:
    service = node.service("filter")
    if service is None:
        return _answer(request_id, f"SERVICE_UNAVAILABLE: {NO_SERVICE}", 503)
    try:
        act(service.filter)
    except FilterRefused as refusal:
        return _answer(request_id, refusal.description, refusal.status)
    return _answer(request_id, "OK", 200)


def _answer(request_id: str, description: str, status: int) -> Answer:
    return Answer.json({"requestId": request_id, "statusDesc": description}, status)


def _undecodable(error: BadBody) -> Answer:
    # nwaku writes a full stop here where its other APIs have a colon.
    reason = presto_error(str(error).replace("could not decode: ", "could not decode. "))
    return _answer("unknown", f"BAD_REQUEST: Failed to decode request: {reason}", 400)


_FAILURES: Final = {
    400: "not a filter request, or too many topics",
    404: "not subscribed",
    500: "a content topic has no shard",
    503: "no service node",
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
        failures={404: "there is none", 503: "no service node"},
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
