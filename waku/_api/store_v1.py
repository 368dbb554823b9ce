"""Store v1 of the REST API: the legacy store (13/WAKU2-STORE v2), which go-waku serves."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from dataclasses import replace

from waku import _failures, _json
from waku._api.base import Api
from waku._api.store import shielded
from waku._gate import Load
from waku._paging import MAX_PAGES
from waku._request import Answer, Flavour, Repeat, Request
from waku.errors import BadAnswer, PageLimitReached
from waku.models import StoreV1Cursor, StoreV1Page, StoreV1Query, WakuMessage

__all__ = ["StoreV1Api"]

PATH = "/store/v1/messages"


class StoreV1Api(Api):
    """The legacy store through the node. Newer nwaku does not have it."""

    async def store_v1(self, query: StoreV1Query) -> StoreV1Page:
        """Return one page, the oldest message first also when the pages go backward.

        Raises:
            NoPeers: no legacy store node.
            EndpointMissing: the node is too new.
            BadRequest: a parameter the node does not take.
        """
        flavour = self._session.flavour
        if query.cursor is not None:
            flavour = await self.flavour()
        params = _params(query, flavour)
        request = Request("store_v1", "GET", PATH, Repeat.SAFE, params=params, load=Load("store"))
        return await self._session.call(request, self._v1_page)

    async def store_v1_all(
        self, query: StoreV1Query, *, max_pages: int = MAX_PAGES
    ) -> AsyncIterator[WakuMessage]:
        """Yield the messages of all pages.

        Raises:
            BadAnswer: the cursor came back to where it was.
            PageLimitReached: `max_pages` pages and no end.
            WakuError: as `store_v1`. The messages so far are good.
        """
        cursors: set[StoreV1Cursor] = set()
        page_query = query
        for _ in range(max_pages):
            page = await self.store_v1(page_query)
            for message in page.messages:
                yield message
            if page.cursor is None:
                return
            if page.cursor in cursors:
                detail = f"the cursor stands still at {page.cursor.digest.hex()}"
                raise BadAnswer(f"store_v1_all (GET {PATH})", status=200, detail=detail)
            cursors.add(page.cursor)
            page_query = replace(query, cursor=page.cursor)
        raise PageLimitReached(
            f"store_v1_all (GET {PATH})", detail=f"no end after {max_pages} pages"
        )

    def _v1_page(self, answer: Answer) -> StoreV1Page:
        fields = _json.object_of(answer.json())
        if error := _json.optional_text(fields.get("error_message")):
            raise _failures.from_text(answer.request, answer.status, error)
        if "messages" not in fields:
            raise ValueError("expected a store answer")
        cursor = fields.get("cursor")
        return StoreV1Page(
            messages=tuple(self._read_each(answer, fields["messages"], WakuMessage.from_json)),
            cursor=None if cursor is None else _cursor(cursor),
        )


def _params(query: StoreV1Query, flavour: Flavour | None) -> dict[str, str]:
    go_waku = flavour is Flavour.GO_WAKU

    def encoded(value: str) -> str:
        return value if go_waku else shielded(value)

    params = {"ascending": "true" if query.ascending else "false"}
    cursor = query.cursor
    # A cursor belongs to a pubsub topic: both nodes look it up there.
    pubsub_topic = query.pubsub_topic or (cursor.pubsub_topic if cursor else "")
    if query.peer_addr is not None:
        params["peerAddr"] = query.peer_addr
    if pubsub_topic:
        params["pubsubTopic"] = encoded(pubsub_topic)
    if query.content_topics:
        params["contentTopics"] = ",".join(map(encoded, query.content_topics))
    if query.start_time_ns is not None:
        params["startTime"] = str(query.start_time_ns)
    if query.end_time_ns is not None:
        params["endTime"] = str(query.end_time_ns)
    if query.page_size is not None:
        params["pageSize"] = str(query.page_size)
    if cursor is not None:
        params["senderTime"] = str(cursor.sender_time_ns)
        params["storeTime"] = str(cursor.store_time_ns)
        params["digest"] = (
            urlsafe_b64encode(cursor.digest).decode("ascii")
            if go_waku
            else encoded(_json.base64_text(cursor.digest))
        )
    return params


def _cursor(value: object) -> StoreV1Cursor:
    fields = _json.object_of(value)
    return StoreV1Cursor(
        digest=_json.base64_bytes(fields.get("digest")),
        sender_time_ns=_json.integer(_json.field(fields, "senderTime", "sender_time")),
        store_time_ns=_json.integer(_json.field(fields, "storeTime", "store_time")),
        pubsub_topic=_json.optional_text(_json.field(fields, "pubsubTopic", "pubsub_topic")) or "",
    )
