"""REST operations below `/store/v3` to query the node's own Store or a peer's Store."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from waku.models import HASH_BYTES, StoreEntry, StorePage, StoreQuery
from waku.node.envelope import relay_json
from waku.node.errors import DialFailed
from waku.node.http import Request, Response, Route, ServedNode
from waku.node.identity import BadAddress, check_address
from waku.node.lightpush_api import NO_SERVICE
from waku.node.services import ServiceRefused
from waku.node.store import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE

__all__ = ["ROUTES"]

_TRUE: Final = frozenset({"true", "1", "yes", "y", "on"})
_FALSE: Final = frozenset({"false", "0", "no", "n", "off"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]+(_[0-9]+)*")
"""What Nim reads as an integer."""


class BadParameter(ValueError):
    """A parameter of the query cannot be read. The text of the error is nwaku's."""


async def messages(node: ServedNode, request: Request) -> Response:
    """Answer GET /store/v3/messages with a page of messages."""
    try:
        query = _read_query(request.query)
        address = request.query.get("peerAddr", "")
        peer_id = _peer_id(address)
    except BadParameter as error:
        return Response.text(400, str(error))
    if peer_id is None and node.archive is not None:
        return await _own_page(node, query)
    if peer_id is not None and peer_id not in (node.peer_id, *node.mesh.peers()):
        with suppress(DialFailed):  # then it is not found below
            await node.dial(address, stay=False)
    services = node.service_nodes.find("store", peer_id)
    if services is None:
        if peer_id is None:
            return Response.text(412, NO_SERVICE)
        return _refused_inside(504, f"PEER_DIAL_FAILURE: {peer_id}")
    try:
        return Response.json(_page_json(await services.query(query), secrets.token_hex(10)))
    except ServiceRefused as refusal:
        if refusal.status == 429:
            return Response.text(429, "Request rate limit reached")
        if refusal.status == 500:
            return Response.text(500, refusal.description)
        return _refused_inside(refusal.status, refusal.description)


async def legacy_messages(node: ServedNode, request: Request) -> Response:
    """Answer GET /store/v1/messages with an error. As in nwaku, the legacy store is not
    available."""
    return Response.text(412, NO_SERVICE)


async def _own_page(node: ServedNode, query: StoreQuery) -> Response:
    try:
        return Response.json(_page_json(await node.services.query(query), ""))
    except ServiceRefused as refusal:
        if refusal.status == 400:
            return Response.text(400, refusal.description)
        return Response.text(500, f"error in handleSelfStoreRequest: {refusal.description}")


def _refused_inside(status: int, description: str) -> Response:
    # The status of the protocol, inside an answer that is 200: as nwaku has it.
    return Response.json(
        {"requestId": "", "statusCode": status, "statusDesc": description, "messages": []}
    )


def _page_json(page: StorePage, request_id: str) -> dict[str, object]:
    fields: dict[str, object] = {
        "requestId": request_id,
        "statusCode": 200,
        "statusDesc": "OK",
        "messages": [_entry_json(entry) for entry in page.entries],
    }
    if page.cursor is not None:
        fields["paginationCursor"] = f"0x{page.cursor.hex()}"
    return fields


def _entry_json(entry: StoreEntry) -> dict[str, object]:
    fields: dict[str, object] = {"messageHash": f"0x{entry.message_hash.hex()}"}
    if entry.message is not None:
        message = relay_json(entry.message)
        if not message["proof"]:
            del message["proof"]
        fields["message"] = message
        fields["pubsubTopic"] = entry.pubsub_topic
    return fields


def _read_query(query: Mapping[str, str]) -> StoreQuery:
    # In nwaku's order: of several bad parameters the first is named.
    include_data = _include_data(query.get("includeData", ""))
    start_time_ns = _time(query.get("startTime", ""))
    end_time_ns = _time(query.get("endTime", ""))
    # nwaku decodes these once more than the rest.
    pubsub_topic = unquote(query.get("pubsubTopic", ""))
    content_topics = unquote(query.get("contentTopics", ""))
    hashes = unquote(query.get("hashes", ""))
    wanted = tuple(dict.fromkeys(_hash(text) for text in hashes.split(",") if text))
    cursor = unquote(query.get("cursor", ""))
    return StoreQuery(
        pubsub_topic=pubsub_topic or None,
        content_topics=tuple(topic for topic in content_topics.split(",") if topic),
        hashes=wanted,
        start_time_ns=start_time_ns,
        end_time_ns=end_time_ns,
        include_data=include_data,
        # nwaku takes whatever is not exactly "true" for false.
        ascending=query.get("ascending", "") in ("", "true"),
        cursor=_hash(cursor) if cursor else None,
        page_size=_page_size(query.get("pageSize", "")),
    )


def _peer_id(address: str) -> str | None:
    if not address:
        return None
    try:
        peer_id = check_address(address)
    except BadAddress as error:
        raise BadParameter(f"Failed parsing remote peer info: {error}") from error
    if peer_id is None:
        raise BadParameter("Failed parsing remote peer info: no peer id in the address")
    return peer_id


def _hash(text: str) -> bytes:
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    strange = re.search(r"[^0-9a-fA-F]", digits)
    if strange is not None:
        what = f"{strange[0]} is not a hexadecimal character"
        raise BadParameter(f"Exception converting hex string to bytes: {what}")
    if len(digits) != 2 * HASH_BYTES:
        raise BadParameter(
            f"waku message hash parsing error: invalid hash length: {len(digits) // 2}"
        )
    return bytes.fromhex(digits)


def _include_data(text: str) -> bool:
    word = text.lower()
    if word in _TRUE:
        return True
    if not word or word in _FALSE:
        return False
    raise BadParameter(f"include data parsing error: cannot interpret as a bool: {text}")


def _time(text: str) -> int | None:
    value = _integer(text, "time")
    return value if value is not None and value > 0 else None


def _page_size(text: str) -> int:
    value = _integer(text, "page size")
    if not value:
        return DEFAULT_PAGE_SIZE
    # nwaku's size is unsigned: a negative one is a huge one.
    return MAX_PAGE_SIZE if value < 0 else min(value, MAX_PAGE_SIZE)


def _integer(text: str, what: str) -> int | None:
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise BadParameter(f"{what} parsing error: invalid integer: {text}")
    if len(text) > 40 or not -(2**63) <= int(text) < 2**63:
        raise BadParameter(f"{what} parsing error: Parsed integer outside of valid range")
    return int(text)


_QUERY: Final = (
    "peerAddr",
    "includeData",
    "pubsubTopic",
    "contentTopics",
    "startTime",
    "endTime",
    "hashes",
    "cursor",
    "ascending",
    "pageSize",
)

ROUTES: Final = (
    Route(
        "GET",
        "/store/v3/messages",
        messages,
        "Find kept messages, page by page",
        "store",
        answer="StoreAnswer",
        query=_QUERY,
        failures={
            400: "a parameter cannot be read",
            412: "no store node",
            429: "the store node has had too many requests",
            500: "the cursor is not known, or the store cannot be read",
        },
    ),
    Route(
        "GET",
        "/store/v1/messages",
        legacy_messages,
        "The legacy store, which is not served",
        "store",
        failures={412: "always"},
    ),
)
