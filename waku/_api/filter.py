"""Filter v2: being sent only the wanted messages by another node."""

from __future__ import annotations

from collections.abc import Iterable

from waku import _failures, _json
from waku._api.base import Api, in_path
from waku._gate import Load
from waku._request import Answer, Repeat, Request
from waku.errors import BadRequest
from waku.models import FilterAnswer, WakuMessage

__all__ = ["FilterApi"]

SUBSCRIPTIONS = "/filter/v2/subscriptions"
MESSAGES = "/filter/v2/messages"
LOAD = Load("filter")


class FilterApi(Api):
    """12/WAKU2-FILTER through the node, which is the client of a service node.

    Every call but `filter_messages` may raise `NoPeers` (no service node) and `RateLimited`.
    `request_id` None takes a new id. Subscriptions and pings that fail are not repeated here: stock
    nodes serve one filter request a second, and go-waku leaves the stream of one beyond open.
    """

    async def filter_subscribe(
        self,
        content_topics: Iterable[str],
        pubsub_topic: str | None = None,
        request_id: str | None = None,
    ) -> FilterAnswer:
        """Subscribe to content topics, at most 100 a call. Repeating is harmless.

        Raises:
            BadRequest: no content topics, too many, a bad one, or no pubsub topic on static
                sharding.
            NodeFailure: go-waku, for any reason: a bad topic or a rate limit.
        """
        return await self._manage(
            "filter_subscribe", "POST", request_id, content_topics, pubsub_topic
        )

    async def filter_update(
        self,
        content_topics: Iterable[str],
        pubsub_topic: str | None = None,
        request_id: str | None = None,
    ) -> FilterAnswer:
        """Add content topics to the subscription (nwaku, by PUT).

        Raises:
            BadRequest: as `filter_subscribe`.
            EndpointMissing: go-waku. Use `filter_subscribe`.
        """
        return await self._manage("filter_update", "PUT", request_id, content_topics, pubsub_topic)

    async def filter_unsubscribe(
        self,
        content_topics: Iterable[str],
        pubsub_topic: str | None = None,
        request_id: str | None = None,
    ) -> FilterAnswer:
        """End the subscription to content topics.

        Raises:
            NotSubscribed: there was none.
            BadRequest: no content topics.
        """
        return await self._manage(
            "filter_unsubscribe", "DELETE", request_id, content_topics, pubsub_topic
        )

    async def filter_unsubscribe_all(self, request_id: str | None = None) -> FilterAnswer:
        """End all subscriptions.

        Raises:
            NotSubscribed: there was none.
        """
        body = {"requestId": request_id or self._next_request_id()}
        path = f"{SUBSCRIPTIONS}/all"
        request = Request(
            "filter_unsubscribe_all", "DELETE", path, Repeat.SAFE, body=body, load=LOAD
        )
        return await self._session.call(request, _filter_answer)

    async def filter_ping(self, request_id: str | None = None) -> FilterAnswer:
        """Ask the service node whether it still has a subscription of this node.

        Raises:
            NotSubscribed: it has none. Subscribe again.
        """
        path = f"{SUBSCRIPTIONS}/{in_path(request_id or self._next_request_id())}"
        request = Request("filter_ping", "GET", path, Repeat.UNSENT, load=LOAD)
        return await self._session.call(request, _filter_answer)

    async def filter_messages(
        self, content_topic: str, pubsub_topic: str | None = None
    ) -> list[WakuMessage]:
        """Take the messages of a content topic that came since the last call.

        `pubsub_topic` is for go-waku only, where static subscriptions are kept by both. nwaku does
        not know that path. What cannot be read goes to the client's `on_rejected`.

        Raises:
            NotSubscribed: subscribe first.
            BadAnswer: the answer was no list. Its messages are gone from the node.
        """
        topics = [content_topic] if pubsub_topic is None else [pubsub_topic, content_topic]
        path = "/".join([MESSAGES, *map(in_path, topics)])
        request = Request("filter_messages", "GET", path, Repeat.UNSENT)
        return await self._session.call(request, self._read_messages)

    async def _manage(
        self,
        call: str,
        method: str,
        request_id: str | None,
        content_topics: Iterable[str],
        pubsub_topic: str | None,
    ) -> FilterAnswer:
        body: dict[str, object] = {
            "requestId": request_id or self._next_request_id(),
            "contentFilters": list(content_topics),
        }
        if pubsub_topic is not None:
            body["pubsubTopic"] = pubsub_topic
        request = Request(call, method, SUBSCRIPTIONS, Repeat.UNSENT, body=body, load=LOAD)
        return await self._session.call(request, _filter_answer)


def _filter_answer(answer: Answer) -> FilterAnswer:
    """Read an answer whose words count more than its status: nodes say 200 to some failures."""
    fields = _json.object_of(answer.json())
    request_id = _json.text(_json.field(fields, "requestId", "request_id"))
    status_desc = _json.text(_json.field(fields, "statusDesc", "status_desc"))
    if status_desc == "UNKNOWN":  # nwaku: static sharding and no pubsub topic
        detail = "UNKNOWN: is the pubsub topic missing?"
        raise BadRequest(answer.request.name, status=answer.status, detail=detail)
    if status_desc != "OK":
        raise _failures.from_text(answer.request, answer.status, status_desc)
    return FilterAnswer(request_id, status_desc)
