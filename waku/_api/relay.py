"""Relay v1: static shards by pubsub topic, and autosharding by content topic (`relay_auto_*`)."""

from __future__ import annotations

from collections.abc import Iterable

from waku._api.base import Api, confirmation, in_path, publishing
from waku._request import Repeat, Request
from waku.models import WakuMessage

__all__ = ["RelayApi"]

SUBSCRIPTIONS = "/relay/v1/subscriptions"
AUTO_SUBSCRIPTIONS = "/relay/v1/auto/subscriptions"
MESSAGES = "/relay/v1/messages"
AUTO_MESSAGES = "/relay/v1/auto/messages"


class RelayApi(Api):
    """11/WAKU2-RELAY through the node.

    Reading messages clears them at the node, so one reader a topic. `Waku-Client-Id` gives each
    client a separate cache on the embedded node, real nodes have one for all. nwaku keeps the
    last 50 messages, go-waku 1000.
    """

    async def relay_subscribe(self, pubsub_topics: Iterable[str]) -> None:
        """Subscribe the node to shards. Repeating is harmless.

        Raises:
            BadRequest: nwaku, a topic that is not a static shard.
            EndpointMissing: the node runs without relay.
        """
        await self._confirm("relay_subscribe", "POST", SUBSCRIPTIONS, list(pubsub_topics))

    async def relay_unsubscribe(self, pubsub_topics: Iterable[str]) -> None:
        """End subscriptions to shards.

        Raises:
            NotSubscribed: go-waku, there was none. nwaku takes it for done.
        """
        await self._confirm("relay_unsubscribe", "DELETE", SUBSCRIPTIONS, list(pubsub_topics))

    async def relay_publish(
        self, pubsub_topic: str, message: WakuMessage, *, urgent: bool = True
    ) -> None:
        """Publish on a shard. Success does not mean that a peer took it.

        What is not `urgent` lets other messages to this node go first.

        Raises:
            NotSubscribed: the node itself is not subscribed to the shard.
            MessageTooLarge: over 150 KiB encoded.
            BadRequest: an empty payload or content topic, or longer `meta` than the node takes.
            NodeUnreachable: with `sent` true, the message may be out. The same one may be sent
                again, as nodes drop repeats.
        """
        path = f"{MESSAGES}/{in_path(pubsub_topic)}"
        await self._publish("relay_publish", path, message, urgent)

    async def relay_messages(self, pubsub_topic: str) -> list[WakuMessage]:
        """Take the messages that came since the last call.

        What the node cannot have meant goes to the client's `on_rejected`.

        Raises:
            NotSubscribed: subscribe first. Nodes without relay also answer so.
            BadAnswer: the answer was no list. Its messages are gone from the node.
        """
        return await self._drain("relay_messages", f"{MESSAGES}/{in_path(pubsub_topic)}")

    async def relay_auto_subscribe(self, content_topics: Iterable[str]) -> None:
        """Subscribe the node to the shards of content topics. Repeating is harmless.

        Raises:
            BadRequest: a content topic of another shape, or of a generation above 0.
        """
        await self._confirm(
            "relay_auto_subscribe", "POST", AUTO_SUBSCRIPTIONS, list(content_topics)
        )

    async def relay_auto_unsubscribe(self, content_topics: Iterable[str]) -> None:
        """End subscriptions to content topics."""
        await self._confirm(
            "relay_auto_unsubscribe", "DELETE", AUTO_SUBSCRIPTIONS, list(content_topics)
        )

    async def relay_auto_publish(self, message: WakuMessage, *, urgent: bool = True) -> None:
        """Publish on the shard of the message's content topic.

        What is not `urgent` lets other messages to this node go first.

        Raises:
            BadRequest: autosharding is off, or the content topic has another shape.
            MessageTooLarge: over 150 KiB encoded.
        """
        await self._publish("relay_auto_publish", AUTO_MESSAGES, message, urgent)

    async def relay_auto_messages(self, content_topic: str) -> list[WakuMessage]:
        """Take the messages of a content topic that came since the last call.

        Raises:
            NotSubscribed: subscribe first.
            BadAnswer: the answer was no list. Its messages are gone from the node.
        """
        return await self._drain("relay_auto_messages", f"{AUTO_MESSAGES}/{in_path(content_topic)}")

    async def _publish(self, call: str, path: str, message: WakuMessage, urgent: bool) -> None:
        load = publishing(message.payload, message.content_topic, urgent)
        request = Request(call, "POST", path, Repeat.UNSENT, body=message.to_json(), load=load)
        await self._session.call(request, confirmation)

    async def _confirm(self, call: str, method: str, path: str, topics: list[str]) -> None:
        request = Request(call, method, path, Repeat.SAFE, body=topics)
        await self._session.call(request, confirmation)

    async def _drain(self, call: str, path: str) -> list[WakuMessage]:
        request = Request(call, "GET", path, Repeat.UNSENT)
        return await self._session.call(request, self._read_messages)
