"""REST operations below `/lightpush`, which publish through a service node (19/WAKU2-LIGHTPUSH)."""

from __future__ import annotations

from typing import Final

from waku.models import WakuMessage
from waku.node.bodies import BadBase64, BadBody, closed_object, read_json, relay_message, text
from waku.node.http import OK, Request, Response, Route, ServedNode
from waku.node.services import ServiceRefused

__all__ = ["NO_SERVICE", "ROUTES"]

NO_SERVICE: Final = "No suitable service peer & no discovery method"


async def push_v3(node: ServedNode, request: Request) -> Response:
    """Publish a message (POST /lightpush/v3/message)."""
    try:
        pubsub_topic, message = _push_request(request)
    except BadBody as error:
        return _failure(400, f"Invalid push request! {presto_error(str(error))}")
    except BadBase64 as error:
        return _failure(400, f"Invalid message! {error}")
    services = node.service_nodes.find("lightpush")
    if services is None:
        return _failure(503, NO_SERVICE)
    try:
        return Response.json({"relayPeerCount": await services.push(pubsub_topic, message)})
    except ServiceRefused as refusal:
        return _failure(refusal.status, refusal.description)


async def push_v1(node: ServedNode, request: Request) -> Response:
    """Publish a message by the older protocol (POST /lightpush/v1/message)."""
    try:
        pubsub_topic, message = _push_request(request)
    except BadBody as error:
        return Response.text(400, str(error))
    except BadBase64 as error:
        return Response.text(400, f"Invalid message: {error}")
    services = node.service_nodes.find("lightpush")
    if services is None:
        return Response.text(503, NO_SERVICE)
    try:
        await services.push(pubsub_topic, message)
    except ServiceRefused as refusal:
        return Response.text(503, f"Failed to request a message push: {refusal.legacy}")
    return OK


def presto_error(message: str) -> str:
    """Return an error text in the form in which nwaku's REST server quotes it."""
    inner = f'(status: 400 Bad Request, message: "{message}", contentType: "text/plain")'
    return f"(status: 400 Bad Request, headers: , kind: Error, errobj: {inner})"


def _push_request(request: Request) -> tuple[str, WakuMessage]:
    fields = closed_object(read_json(request), required={"message"}, optional={"pubsubTopic"})
    return text(fields.get("pubsubTopic", "")), relay_message(fields["message"])


def _failure(status: int, description: str) -> Response:
    return Response.json({"statusDesc": description}, status)


ROUTES: Final = (
    Route(
        "POST",
        "/lightpush/v3/message",
        push_v3,
        "Publish through the light push service",
        "light push",
        body="PushRequest",
        answer="PushAnswer",
        failures={
            400: "not a push request",
            429: "the service node has had too many requests",
            500: "no shard, or a message that is too large or has a long `meta`",
            503: "no service node, no answer in time, or the message cannot be stored",
            505: "no peer takes messages of the topic, or the service node is away",
        },
        failure="PushAnswer",
    ),
    Route(
        "POST",
        "/lightpush/v1/message",
        push_v1,
        "Publish through the older light push service",
        "light push",
        body="PushRequest",
        failures={400: "not a push request", 503: "it was not published"},
    ),
)
