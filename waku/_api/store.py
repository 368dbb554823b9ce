"""Store v3: asking a store node for messages, page by page."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Sequence

from waku import _failures, _json
from waku._api.base import Api
from waku._gate import Load
from waku._paging import MAX_PAGES, all_entries
from waku._request import Answer, Flavour, Repeat, Request
from waku.models import HASH_BYTES, StoreEntry, StorePage, StoreQuery, WakuMessage

__all__ = ["StoreApi", "shielded"]

PATH = "/store/v3/messages"
HASHES_PER_QUERY = 50
"""Hashes in one query, so that its address stays under 4 kB."""


class StoreApi(Api):
    """13/WAKU2-STORE v3 through the node.

    The families write hashes and cursors differently: nwaku in hex, go-waku in URL-safe base64. A
    query without either goes out at once. One with either asks for the node's family first, unless
    an earlier answer of Store has shown it.
    """

    async def store(self, query: StoreQuery) -> StorePage:
        """Return one page.

        Raises:
            NoPeers: no store node, or it cannot be dialled.
            CursorExpired: start again without a cursor.
            BadRequest: a combination the node does not take (see `StoreQuery`).
        """
        flavour = self._session.store_flavour or self._session.flavour
        if flavour is None and (query.hashes or query.cursor is not None):
            flavour = await self.flavour()
        params = _params(query, flavour)
        request = Request("store", "GET", PATH, Repeat.ANSWERED, params=params, load=Load("store"))
        return await self._session.call(request, self._page)

    def store_all(
        self, query: StoreQuery, *, max_pages: int = MAX_PAGES
    ) -> AsyncGenerator[StoreEntry, None]:
        """Yield the entries of all pages, each message once.

        A lost cursor starts the query again, up to three times, without repeating entries.

        Raises:
            BadAnswer: the cursor came back to where it was, or the pages repeat themselves.
            PageLimitReached: `max_pages` pages and no end.
            CursorExpired: once too often.
            WakuError: as `store`. The entries so far are good.
        """
        return all_entries(
            self.store, query, max_pages=max_pages, call=f"store_all (GET {PATH})", status=200
        )

    async def store_by_hash(
        self, hashes: Sequence[bytes], *, peer_addr: str | None = None
    ) -> list[StoreEntry]:
        """Return the stored messages with these hashes, in as many queries as needed.

        Raises:
            WakuError: as `store`.
        """
        entries: list[StoreEntry] = []
        for start in range(0, len(hashes), HASHES_PER_QUERY):
            wanted = tuple(hashes[start : start + HASHES_PER_QUERY])
            query = StoreQuery(hashes=wanted, page_size=HASHES_PER_QUERY, peer_addr=peer_addr)
            entries += (await self.store(query)).entries
        return entries

    def _page(self, answer: Answer) -> StorePage:
        fields = _json.object_of(answer.json())
        if "status_code" in fields:
            self._session.store_flavour = Flavour.GO_WAKU
        elif "statusCode" in fields:
            self._session.store_flavour = Flavour.NWAKU
        elif "messages" not in fields:
            raise ValueError("expected a store answer")
        status = _json.field(fields, "statusCode", "status_code")
        if status is not None and status != 200:  # nwaku: 504 for a peer it could not dial
            desc = _json.optional_text(_json.field(fields, "statusDesc", "status_desc"))
            raise _failures.from_text(answer.request, _json.integer(status), desc or "")
        cursor = _json.field(fields, "paginationCursor", "pagination_cursor")
        request_id = _json.optional_text(_json.field(fields, "requestId", "request_id"))
        return StorePage(
            entries=tuple(self._read_each(answer, fields.get("messages"), _entry)),
            cursor=None if cursor is None or cursor == "" else _hash(cursor),
            request_id=request_id or "",
        )


def shielded(value: str) -> str:
    """Shield a value in a query from nwaku, which decodes it once more than HTTP does."""
    return value.replace("%", "%25").replace("+", "%2B")


def _params(query: StoreQuery, flavour: Flavour | None) -> dict[str, str]:
    """Return the query string's parts. Booleans are always written, as their defaults differ."""
    go_waku = flavour is Flavour.GO_WAKU

    def topic(value: str) -> str:
        return value if go_waku else shielded(value)

    def digest(value: bytes) -> str:
        return urlsafe_b64encode(value).decode("ascii") if go_waku else "0x" + value.hex()

    params = {
        "includeData": "true" if query.include_data else "false",
        "ascending": "true" if query.ascending else "false",  # nwaku: only "true" is forward
    }
    if query.peer_addr is not None:
        params["peerAddr"] = query.peer_addr
    if query.pubsub_topic is not None:
        params["pubsubTopic"] = topic(query.pubsub_topic)
    if query.content_topics:
        params["contentTopics"] = ",".join(map(topic, query.content_topics))
    if query.start_time_ns is not None:
        params["startTime"] = str(query.start_time_ns)
    if query.end_time_ns is not None:
        params["endTime"] = str(query.end_time_ns)
    if query.hashes:
        params["hashes"] = ",".join(map(digest, query.hashes))
    if query.cursor is not None:
        params["cursor"] = digest(query.cursor)
    if query.page_size is not None:
        params["pageSize"] = str(query.page_size)
    return params


def _entry(value: object) -> StoreEntry:
    fields = _json.object_of(value)
    message = fields.get("message")
    return StoreEntry(
        message_hash=_hash(_json.field(fields, "messageHash", "message_hash")),
        message=None if message is None else WakuMessage.from_json(message),
        pubsub_topic=_json.optional_text(_json.field(fields, "pubsubTopic", "pubsub_topic")),
    )


def _hash(value: object) -> bytes:
    """Read 32 bytes, from hex with 0x or without (nwaku), or from base64 (go-waku)."""
    text = _json.text(value)
    digits = text.removeprefix("0x")
    # 32 bytes are 64 digits of hex but at most 44 characters of base64: no text is both.
    if len(digits) == 2 * HASH_BYTES:
        return binascii.unhexlify(digits)
    digest = _json.base64_bytes(text)
    if len(digest) != HASH_BYTES:
        raise ValueError(f"expected a hash of {HASH_BYTES} bytes, found {len(digest)}")
    return digest
