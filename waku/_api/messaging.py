"""`/messaging/v1`: the messaging layer of logos-delivery.

Read from the source of logos-delivery 69fbffa3 (August 2026), and not tried against a live node.
What later versions add is read where it comes: sequence numbers, `history`, more kinds of events.
"""

from __future__ import annotations

from collections.abc import Iterable

from waku import _json
from waku._api.base import Api, confirmation, in_path, publishing
from waku._request import Answer, Repeat, Request
from waku.errors import EndpointMissing
from waku.messaging import MessagingMessage, SendEvents

__all__ = ["MessagingApi"]

SUBSCRIPTIONS = "/messaging/v1/subscriptions"
MESSAGES = "/messaging/v1/messages"
SEND_EVENTS = "/messaging/v1/events/send"
RECEIVED = "/messaging/v1/events/received"


class MessagingApi(Api):
    """Sending and receiving by content topic. The node does sharding, retries and confirmation.

    Reading events clears them at the node, so one reader a node. The node keeps the last 50
    received messages and drops older ones silently: ask Store for what is missing.
    """

    async def has_messaging(self) -> bool:
        """Return True if the node serves this API: logos-delivery with `--entry-layer messaging`.

        Raises:
            WakuError: the node could not be asked.
        """
        request = Request("has_messaging", "OPTIONS", RECEIVED, Repeat.SAFE)
        try:
            await self._session.call(request, lambda answer: None)
        except EndpointMissing:
            return False
        return True

    async def messaging_subscribe(self, content_topics: Iterable[str]) -> None:
        """Subscribe to content topics. Those before one that fails stay.

        Raises:
            BadRequest: a content topic that has no shard. On static sharding all.
            EndpointMissing: the node has no messaging layer.
        """
        await self._topics("messaging_subscribe", "POST", content_topics)

    async def messaging_unsubscribe(self, content_topics: Iterable[str]) -> None:
        """End subscriptions to content topics."""
        await self._topics("messaging_unsubscribe", "DELETE", content_topics)

    async def messaging_send(
        self,
        payload: bytes,
        content_topic: str,
        *,
        ephemeral: bool = False,
        meta: bytes = b"",
        urgent: bool = True,
    ) -> str:
        """Send a message, and return the id of the request, which its events name.

        What is not `urgent` lets other messages to this node go first.

        Raises:
            BadRequest: an empty payload or content topic.
            RateLimited: the node's send queue is full (later versions).
            NodeFailure: it cannot be sent.
            NodeUnreachable: with `sent` true it may have been sent. Sending it again makes a second
                message, as the node stamps each.
        """
        body: dict[str, object] = {
            "payload": _json.base64_text(payload),
            "contentTopic": content_topic,
        }
        if ephemeral:
            body["ephemeral"] = True
        if meta:
            body["meta"] = _json.base64_text(meta)
        load = publishing(payload, content_topic, urgent)
        request = Request("messaging_send", "POST", MESSAGES, Repeat.UNSENT, body=body, load=load)
        return await self._session.call(request, _request_id)

    async def messaging_send_events(self) -> list[SendEvents]:
        """Take the events of all requests that came since the last call."""
        request = Request("messaging_send_events", "GET", SEND_EVENTS, Repeat.UNSENT)
        return await self._session.call(
            request, lambda answer: self._read_each(answer, answer.json(), SendEvents.from_json)
        )

    async def messaging_events_of(self, request_id: str) -> SendEvents:
        """Take the events of one request.

        Raises:
            NotFound: no such request, or its events were read.
        """
        path = f"{SEND_EVENTS}/{in_path(request_id)}"
        request = Request("messaging_events_of", "GET", path, Repeat.UNSENT)
        return await self._session.call(request, lambda answer: SendEvents.from_json(answer.json()))

    async def messaging_received(self) -> list[MessagingMessage]:
        """Take the messages that arrived since the last call, oldest first.

        What the node cannot have meant goes to the client's `on_rejected`.

        Raises:
            BadAnswer: the answer was no list. Its messages are gone from the node.
        """
        request = Request("messaging_received", "GET", RECEIVED, Repeat.UNSENT)
        return await self._session.call(
            request,
            lambda answer: self._read_each(answer, answer.json(), MessagingMessage.from_json),
        )

    async def _topics(self, call: str, method: str, topics: Iterable[str]) -> None:
        request = Request(call, method, SUBSCRIPTIONS, Repeat.SAFE, body=list(topics))
        await self._session.call(request, confirmation)


def _request_id(answer: Answer) -> str:
    return _json.text(_json.object_of(answer.json()).get("requestId"))
