"""REST operations below `/messaging/v1` to send and receive by content topic, as in
logos-delivery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from waku.messaging import SendEvents
from waku.models import WakuMessage
from waku.node.bodies import BadBase64, BadBody, base64_of, read_json, text_list
from waku.node.envelope import relay_json
from waku.node.errors import PublishRefused
from waku.node.http import TELL_TOPICS_S, Request, Response, Route, ServedNode
from waku.node.sharding import NoShard

__all__ = ["ROUTES"]

_DONE: Final = Response(200, b"")


async def subscribe(node: ServedNode, request: Request) -> Response:
    """Subscribe to a content topic (POST /messaging/v1/subscriptions)."""
    return await _each(node, request, node.messaging.subscribe, "Subscribe")


async def unsubscribe(node: ServedNode, request: Request) -> Response:
    """Unsubscribe from a content topic (DELETE /messaging/v1/subscriptions)."""
    return await _each(node, request, node.messaging.unsubscribe, "Unsubscribe")


async def send(node: ServedNode, request: Request) -> Response:
    """Send a message (POST /messaging/v1/messages)."""
    try:
        message = _message(read_json(request), node.options.now_ns())
    except BadBody as error:
        return Response.text(400, str(error))
    except (BadBase64, ValueError) as error:
        return Response.text(400, f"Invalid message: {error}")
    try:
        request_id = node.messaging.send(request.client_id, message)
    except (NoShard, PublishRefused) as error:
        return Response.text(500, f"Send failed: {error}")
    return Response.json({"requestId": request_id})


async def send_events(node: ServedNode, request: Request) -> Response:
    """Answer GET /messaging/v1/events/send with the events about all requests."""
    return Response.json([_events_json(each) for each in node.messaging.events(request.client_id)])


async def events_of(node: ServedNode, request: Request) -> Response:
    """Answer GET /messaging/v1/events/send/{requestId} with the events about one request."""
    request_id = request.path_values[0]
    found = node.messaging.events_of(request.client_id, request_id)
    if found is None:
        return Response.text(404, f"No send events for requestId: {request_id}")
    return Response.json(_events_json(found))


async def received(node: ServedNode, request: Request) -> Response:
    """Answer GET /messaging/v1/events/received with the received messages."""
    return Response.json(
        [
            {"messageHash": f"0x{each.message_hash.hex()}", "message": relay_json(each.message)}
            for each in node.messaging.received(request.client_id)
        ]
    )


async def options(node: ServedNode, request: Request) -> Response:
    """Answer OPTIONS of every messaging path, for browsers."""
    return _DONE


async def _each(
    node: ServedNode, request: Request, act: Callable[[str | None, str], None], verb: str
) -> Response:
    """Do it topic by topic: those before one that fails stay, as on logos-delivery."""
    try:
        topics = text_list(read_json(request))
    except BadBody as error:
        return Response.text(400, str(error))
    try:
        for topic in topics:
            act(request.client_id, topic)
    except NoShard as error:
        return Response.text(500, f"{verb} failed: Autosharding error: {error}")
    await node.peers_told(TELL_TOPICS_S)
    return _DONE


def _message(value: object, now_ns: int) -> WakuMessage:
    """The message that a body asks for, stamped here; unknown fields are ignored."""
    fields = value if isinstance(value, dict) else {}
    for name in ("payload", "contentTopic"):
        if not isinstance(fields.get(name), str) or not fields[name].strip():
            raise BadBody(f"Field `{name}` is missing or empty")
    meta, ephemeral = fields.get("meta") or "", fields.get("ephemeral") or False
    if not isinstance(meta, str) or not isinstance(ephemeral, bool):
        raise BadBody
    return WakuMessage(
        base64_of(fields["payload"]),
        fields["contentTopic"],
        timestamp=now_ns,
        meta=base64_of(meta),
        ephemeral=ephemeral,
    )


def _events_json(found: SendEvents) -> dict[str, object]:
    return {
        "requestId": found.request_id,
        "events": [
            {
                "kind": event.kind,
                "messageHash": f"0x{event.message_hash.hex()}" if event.message_hash else "",
                **({"error": event.error} if event.error else {}),
                "timestamp": event.timestamp_ns,
            }
            for event in found.events
        ],
    }


_SUBSCRIPTIONS: Final = "/messaging/v1/subscriptions"
_MESSAGES: Final = "/messaging/v1/messages"
_SEND: Final = "/messaging/v1/events/send"
_RECEIVED: Final = "/messaging/v1/events/received"
_NO_SHARD: Final = "a content topic has no shard"

ROUTES: Final = (
    Route(
        "POST",
        _SUBSCRIPTIONS,
        subscribe,
        "Subscribe to content topics",
        "messaging",
        body="TopicList",
        failures={400: "no list of texts", 500: _NO_SHARD},
    ),
    Route(
        "DELETE",
        _SUBSCRIPTIONS,
        unsubscribe,
        "Unsubscribe from content topics",
        "messaging",
        body="TopicList",
        failures={400: "no list of texts", 500: _NO_SHARD},
    ),
    Route(
        "POST",
        _MESSAGES,
        send,
        "Send a message, which the node stamps",
        "messaging",
        body="MessagingSend",
        answer="MessagingRequest",
        failures={400: "a field is missing, empty or no base64", 500: "no shard, or too large"},
    ),
    Route(
        "GET",
        _SEND,
        send_events,
        "Take the events of all messages that were sent",
        "messaging",
        answer="MessagingSendEvents",
    ),
    Route(
        "GET",
        f"{_SEND}/{{requestId}}",
        events_of,
        "Take the events of one message that was sent",
        "messaging",
        answer="MessagingEventsOf",
        failures={404: "no events of that request"},
    ),
    Route(
        "GET",
        _RECEIVED,
        received,
        "Take the messages that arrived; the last 50 are kept",
        "messaging",
        answer="MessagingReceived",
    ),
    *(
        Route("OPTIONS", path, options, "Answer a browser's preflight", "messaging")
        for path in (_SUBSCRIPTIONS, _MESSAGES, _SEND, f"{_SEND}/{{requestId}}", _RECEIVED)
    ),
)
