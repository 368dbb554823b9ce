"""`/lightpush`: publishing through a service node (19/WAKU2-LIGHTPUSH, v3 and the older v1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from waku.models import WakuMessage
from waku.node.bodies import BadBase64, BadBody, closed_object, read_json, relay_message, text
from waku.node.envelope import MAX_META_BYTES
from waku.node.http import OK, Answer, Request, Route
from waku.node.node import PublishRefused, StoreUnavailable
from waku.node.sharding import GENERATION, NoShard

if TYPE_CHECKING:
    from waku.node.node import EmbeddedNode

__all__ = ["NO_SERVICE", "ROUTES"]

NO_SERVICE: Final = "No suitable service peer & no discovery method"


class PushRefused(Exception):
    """The service node refuses; `status` is that of the protocol, and of HTTP in v3.

    `legacy` is what the older protocol has for the description.
    """

    def __init__(self, status: int, description: str, *, legacy: str | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.legacy = description if legacy is None else legacy


def _nobody() -> PushRefused:
    text = "No peers for topic, skipping publish"
    return PushRefused(505, text, legacy="not_published_to_any_peer")


async def push_v3(node: EmbeddedNode, request: Request) -> Answer:
    """POST /lightpush/v3/message."""
    try:
        pubsub_topic, message = _push_request(request)
    except BadBody as error:
        return _failure(400, f"Invalid push request! {presto_error(str(error))}")
    except BadBase64 as error:
        return _failure(400, f"Invalid message! {error}")
    service = node.service("lightpush")
    if service is None:
        return _failure(503, NO_SERVICE)
    try:
        return Answer.json({"relayPeerCount": push(service, pubsub_topic, message)})
    except PushRefused as error:
        return _failure(error.status, str(error))


async def push_v1(node: EmbeddedNode, request: Request) -> Answer:
    """POST /lightpush/v1/message."""
    try:
        pubsub_topic, message = _push_request(request)
    except BadBody as error:
        return Answer.text(400, str(error))
    except BadBase64 as error:
        return Answer.text(400, f"Invalid message: {error}")
    service = node.service("lightpush")
    if service is None:
        return Answer.text(503, NO_SERVICE)
    try:
        push(service, pubsub_topic, message)
    except PushRefused as error:
        return Answer.text(503, f"Failed to request a message push: {error.legacy}")
    return OK


def push(service: EmbeddedNode, pubsub_topic: str, message: WakuMessage) -> int:
    """Publish for a light client; return how many took it, a self-serving node being one.

    Raises:
        PushRefused: no topic, too large, or nobody to take it. To nwaku, and to us without
            `self_service`, a repeat has nobody to take it.
    """
    if not pubsub_topic:
        if service.options.static_sharding:
            text = "Pubsub topic must be specified when static sharding is enabled"
            raise PushRefused(500, text)
        try:
            pubsub_topic = service.shard_for(message.content_topic)
        except NoShard as error:
            unreadable = str(error) != GENERATION
            problem = "Invalid content-topic:" if unreadable else "Autosharding error: "
            raise PushRefused(500, f"{problem}{error}") from error
    if len(message.meta) > MAX_META_BYTES:
        # What nwaku's client makes of a service node that cannot decode the request.
        reason = 'decode_rpc_failure: (kind: InvalidLengthField, field: "meta")'
        raise PushRefused(500, "response failure, requestId mismatch", legacy=reason)
    itself = int(service.options.self_service and service.relay.follows(pubsub_topic))
    try:
        service.check_size(message)
        if not itself and not service.mesh.followers(pubsub_topic):
            raise _nobody()
        taken = service.publish(pubsub_topic, message, unfollowed=True) + itself
    except StoreUnavailable as error:
        raise PushRefused(503, str(error)) from error
    except PublishRefused as error:
        raise PushRefused(500, str(error)) from error
    if not taken:
        raise _nobody()
    return taken


def presto_error(message: str) -> str:
    """Return how nwaku's REST server writes an error that it puts into another text."""
    inner = f'(status: 400 Bad Request, message: "{message}", contentType: "text/plain")'
    return f"(status: 400 Bad Request, headers: , kind: Error, errobj: {inner})"


def _push_request(request: Request) -> tuple[str, WakuMessage]:
    fields = closed_object(read_json(request), required={"message"}, optional={"pubsubTopic"})
    return text(fields.get("pubsubTopic", "")), relay_message(fields["message"])


def _failure(status: int, description: str) -> Answer:
    return Answer.json({"statusDesc": description}, status)


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
            500: "no shard, or a message that is too large or has a long `meta`",
            503: "no service node, or the message cannot be stored",
            505: "nobody takes messages of the topic",
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
