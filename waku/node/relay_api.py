"""REST operations below `/relay/v1` to subscribe, read and publish, by shard and content topic."""

from __future__ import annotations

import json
from typing import Final

from waku.models import WakuMessage
from waku.node.bodies import (
    BadBase64,
    BadBody,
    NoBody,
    read_json,
    relay_message,
    text_list,
)
from waku.node.envelope import relay_json
from waku.node.errors import PublishRefused, RelayFull, StoreUnavailable
from waku.node.http import (
    NOT_FOUND,
    OK,
    TELL_TOPICS_S,
    Request,
    Response,
    Route,
    ServedNode,
)
from waku.node.sharding import NoShard
from waku.topics import InvalidTopic, PubsubTopic

__all__ = ["ROUTES"]

PUBLISHED_S: Final = 0.1
"""Time (s) for which an answer about a message waits for slow peers."""


async def subscribe(node: ServedNode, request: Request) -> Response:
    """Subscribe to pubsub topics (POST /relay/v1/subscriptions)."""
    topics = _pubsub_topics(request)
    if isinstance(topics, Response):
        return topics
    client = node.clients.get(request.client_id)
    for topic in topics:
        node.relay.subscribe(client, topic)
    node.announce_topics()
    await node.peers_told(TELL_TOPICS_S)
    return OK


async def unsubscribe(node: ServedNode, request: Request) -> Response:
    """Unsubscribe from pubsub topics (DELETE /relay/v1/subscriptions)."""
    topics = _pubsub_topics(request)
    if isinstance(topics, Response):
        return topics
    client = node.clients.get(request.client_id)
    for topic in topics:
        node.relay.unsubscribe(client, topic)
    node.announce_topics()
    await node.peers_told(TELL_TOPICS_S)
    return OK


async def messages(node: ServedNode, request: Request) -> Response:
    """Answer GET /relay/v1/messages/{pubsubTopic} with the unread messages."""
    client = node.clients.get(request.client_id)
    return _messages(client.relay_cache.take_pubsub(request.path_values[0]), NOT_FOUND)


async def publish(node: ServedNode, request: Request) -> Response:
    """Publish a message (POST /relay/v1/messages/{pubsubTopic})."""
    try:
        message = relay_message(read_json(request))
        node.publish(request.path_values[0], message)
    except NoBody:
        return Response.text(400, "")
    except (BadBody, BadBase64) as error:
        return Response.text(400, str(error))
    except PublishRefused as error:
        return _not_published(error)
    await node.peers_told(PUBLISHED_S)
    return OK


async def auto_subscribe(node: ServedNode, request: Request) -> Response:
    """Subscribe to content topics (POST /relay/v1/auto/subscriptions)."""
    topics = _content_topics(node, request, "Subscribe")
    if isinstance(topics, Response):
        return topics
    client = node.clients.get(request.client_id)
    for topic in topics:
        node.relay.subscribe_content(client, topic)
    node.announce_topics()
    await node.peers_told(TELL_TOPICS_S)
    return OK


async def auto_unsubscribe(node: ServedNode, request: Request) -> Response:
    """Unsubscribe from content topics (DELETE /relay/v1/auto/subscriptions)."""
    topics = _content_topics(node, request, "Unsubscribe")
    if isinstance(topics, Response):
        return topics
    client = node.clients.get(request.client_id)
    for topic in topics:
        node.relay.unsubscribe_content(client, topic)
    node.announce_topics()
    await node.peers_told(TELL_TOPICS_S)
    return OK


async def auto_messages(node: ServedNode, request: Request) -> Response:
    """Answer GET /relay/v1/auto/messages/{contentTopic} with the unread messages."""
    topic = request.path_values[0]
    client = node.clients.get(request.client_id)
    return _messages(client.relay_cache.take_content(topic), Response.text(404, topic))


async def auto_publish(node: ServedNode, request: Request) -> Response:
    """Publish a message by its content topic (POST /relay/v1/auto/messages)."""
    try:
        message = relay_message(read_json(request))
    except (NoBody, BadBase64):
        return Response.text(400, "")
    except BadBody as error:
        return Response.text(400, str(error))
    if node.options.static_sharding:
        return Response.text(400, "Failed to publish. Autosharding is disabled")
    try:
        node.publish(node.shard_for(message.content_topic), message, unfollowed=True)
    except NoShard as error:
        return Response.text(400, f"Failed to publish. Autosharding error: {error}")
    except PublishRefused as error:
        return _not_published(error)
    await node.peers_told(PUBLISHED_S)
    return OK


async def options(node: ServedNode, request: Request) -> Response:
    """Answer OPTIONS of every relay path, which browsers send before a cross-origin request."""
    return OK


def _not_published(error: PublishRefused) -> Response:
    status = 503 if isinstance(error, StoreUnavailable | RelayFull) else 400
    return Response.text(status, f"Failed to publish: {error}")


def _messages(found: list[WakuMessage] | None, unknown: Response) -> Response:
    return unknown if found is None else Response.json([relay_json(message) for message in found])


def _pubsub_topics(request: Request) -> list[str] | Response:
    try:
        topics = text_list(read_json(request))
    except NoBody:
        return Response.text(400, "")
    except BadBody as error:
        return Response.text(400, str(error))
    invalid = [topic for topic in topics if not _is_static_shard(topic)]
    if invalid:
        listed = ", ".join(json.dumps(topic, ensure_ascii=False) for topic in invalid)
        return Response.text(400, f"Invalid pubsub topic(s): @[{listed}]")
    return topics


def _content_topics(node: ServedNode, request: Request, verb: str) -> list[str] | Response:
    try:
        topics = text_list(read_json(request))
    except BadBody as error:
        return Response.text(400, str(error))
    if not node.options.static_sharding:
        try:
            for topic in topics:
                node.shard_for(topic)
        except NoShard as error:
            return Response.text(500, f"{verb} failed:Autosharding error: {error}")
    return topics


def _is_static_shard(topic: str) -> bool:
    try:
        PubsubTopic.parse(topic)
    except InvalidTopic:
        return False
    return True


_UNDECODABLE: Final = "the body is not what is expected"
_NOT_STORED: Final = "the message cannot be stored, and was not sent"
_SUBSCRIPTIONS: Final = "/relay/v1/subscriptions"
_MESSAGES: Final = "/relay/v1/messages/{pubsubTopic}"
_AUTO_SUBSCRIPTIONS: Final = "/relay/v1/auto/subscriptions"
_AUTO_MESSAGES: Final = "/relay/v1/auto/messages"

ROUTES: Final = (
    Route(
        "POST",
        _SUBSCRIPTIONS,
        subscribe,
        "Subscribe to pubsub topics",
        "relay",
        body="TopicList",
        failures={400: "a topic is not a static shard, or no list of texts"},
    ),
    Route(
        "DELETE",
        _SUBSCRIPTIONS,
        unsubscribe,
        "Unsubscribe from pubsub topics",
        "relay",
        body="TopicList",
        failures={400: "a topic is not a static shard, or no list of texts"},
    ),
    Route(
        "GET",
        _MESSAGES,
        messages,
        "Take the unread messages of a pubsub topic",
        "relay",
        answer="RelayMessages",
        failures={404: "not subscribed"},
    ),
    Route(
        "POST",
        _MESSAGES,
        publish,
        "Publish a message on a pubsub topic",
        "relay",
        body="RelayMessage",
        failures={400: "not subscribed, too large, or not a message", 503: _NOT_STORED},
    ),
    Route(
        "POST",
        _AUTO_SUBSCRIPTIONS,
        auto_subscribe,
        "Subscribe to content topics",
        "relay (auto)",
        body="TopicList",
        failures={400: _UNDECODABLE, 500: "a content topic has no shard"},
    ),
    Route(
        "DELETE",
        _AUTO_SUBSCRIPTIONS,
        auto_unsubscribe,
        "Unsubscribe from content topics",
        "relay (auto)",
        body="TopicList",
        failures={400: _UNDECODABLE, 500: "a content topic has no shard"},
    ),
    Route(
        "GET",
        f"{_AUTO_MESSAGES}/{{contentTopic}}",
        auto_messages,
        "Take the unread messages of a content topic",
        "relay (auto)",
        answer="RelayMessages",
        failures={404: "nothing is known of the topic"},
    ),
    Route(
        "POST",
        _AUTO_MESSAGES,
        auto_publish,
        "Publish a message on the shard of its content topic",
        "relay (auto)",
        body="RelayMessage",
        failures={400: "no shard, too large, or not a message", 503: _NOT_STORED},
    ),
    *(
        Route("OPTIONS", path, options, "Answer a browser's preflight", "relay")
        for path in (
            _SUBSCRIPTIONS,
            _MESSAGES,
            _AUTO_SUBSCRIPTIONS,
            _AUTO_MESSAGES,
            f"{_AUTO_MESSAGES}/{{contentTopic}}",
        )
    ),
)
