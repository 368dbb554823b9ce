"""Light push, legacy and v3: publishing through another node."""

from __future__ import annotations

from waku import _json
from waku._api.base import Api, confirmation, publishing
from waku._request import Answer, Repeat, Request
from waku.models import LightPushAnswer, WakuMessage

__all__ = ["LightPushApi"]


class LightPushApi(Api):
    """Light push (19/WAKU2-LIGHTPUSH) through the node."""

    async def lightpush(
        self, message: WakuMessage, pubsub_topic: str | None = None, *, urgent: bool = True
    ) -> LightPushAnswer:
        """Publish through a service node, protocol v3 (nwaku only).

        `pubsub_topic` None leaves the shard to autosharding. What is not `urgent` lets other
        messages to this node go first.

        Raises:
            NoPeers: no service node, or none of its relay peers on the shard. A service node says
                this, too, of a message that it has published already.
            MessageTooLarge: over 150 KiB encoded.
            BadRequest: no pubsub topic on static sharding, or a message the node refuses.
            EndpointMissing: go-waku. Use `lightpush_v1`.
        """
        request = _push("lightpush", "/lightpush/v3/message", message, pubsub_topic, urgent)
        return await self._session.call(request, _relay_peer_count)

    async def lightpush_v1(
        self, message: WakuMessage, pubsub_topic: str | None = None, *, urgent: bool = True
    ) -> None:
        """Publish through a service node, legacy protocol (both nodes).

        Raises:
            NoPeers, MessageTooLarge, BadRequest: as `lightpush`.
            RateLimited: go-waku's service takes one message a second.
        """
        request = _push("lightpush_v1", "/lightpush/v1/message", message, pubsub_topic, urgent)
        await self._session.call(request, confirmation)


def _push(
    call: str, path: str, message: WakuMessage, pubsub_topic: str | None, urgent: bool
) -> Request:
    body: dict[str, object] = {"message": message.to_json()}
    if pubsub_topic is not None:
        body["pubsubTopic"] = pubsub_topic
    load = publishing(message.payload, message.content_topic, urgent)
    return Request(call, "POST", path, Repeat.UNSENT, body=body, load=load)


def _relay_peer_count(answer: Answer) -> LightPushAnswer:
    fields = _json.object_of(answer.json())
    count = _json.field(fields, "relayPeerCount", "relay_peer_count")
    return LightPushAnswer(0 if count is None else _json.integer(count))
