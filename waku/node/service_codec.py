"""Requests of services and their answers, as `/mesh/v1` carries them between joined nodes.

    {"kind": "ask", "id": 7, "service": "push", "pubsubTopic": …, "message": {…}}
    {"kind": "ask", "id": 8, "service": "subscribe", "criteria": [[…, …], …]}
    {"kind": "ask", "id": 9, "service": "query", "query": {…}}
    {"kind": "answer", "id": 7, "status": 200, "relayPeerCount": 2}
    {"kind": "push", "pubsubTopic": …, "message": {…}}
    {"kind": "topic", "topic": "/waku/2/rs/1/0", "follows": true}

The other node wrote what is read here: every reader raises `ValueError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from waku import _json
from waku.models import HASH_BYTES, StoreEntry, StorePage, StoreQuery, WakuMessage
from waku.node.envelope import Envelope, carried_size
from waku.node.filter import MAX_TOPICS_PER_REQUEST
from waku.node.services import Criterion, ServiceRefused
from waku.node.store import MAX_PAGE_SIZE

__all__ = [
    "FilterAction",
    "FilterAsked",
    "PushAsked",
    "Request",
    "StoreAsked",
    "answer_json",
    "fitting",
    "page_of",
    "pushed_json",
    "refusal_of",
    "request_json",
    "request_of",
    "taken_of",
]

OK: Final = 200
STATUSES: Final = (400, 404, 420, 429, 500, 503, 504, 505)
MAX_TEXT: Final = 1_000
"""Characters of a refusal; of topics nwaku has no limit, and a body does."""
PAGE_BYTES: Final = 512 * 1024
"""What the messages of a page take on their way at most; the rest comes with the next page."""
MAX_PEERS: Final = 1_000_000
MAX_HASHES: Final = 1_000

FilterAction: TypeAlias = Literal["ping", "subscribe", "unsubscribe", "unsubscribe_all"]
_ACTIONS: Final = ("ping", "subscribe", "unsubscribe", "unsubscribe_all")


@dataclass(frozen=True, slots=True)
class PushAsked:
    """A light push; an empty pubsub topic leaves the choice to the service node."""

    pubsub_topic: str
    message: WakuMessage


@dataclass(frozen=True, slots=True)
class FilterAsked:
    """A change of the asking node's filter subscription, or a ping."""

    action: FilterAction
    criteria: tuple[Criterion, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreAsked:
    """A query for one page."""

    query: StoreQuery


Request: TypeAlias = PushAsked | FilterAsked | StoreAsked


def request_json(request: Request) -> dict[str, object]:
    """Write a request."""
    match request:
        case PushAsked(pubsub_topic, message):
            fields = {"pubsubTopic": pubsub_topic, "message": message.to_json()}
            return {"service": "push", **fields}
        case FilterAsked(action, criteria):
            return {"service": action, "criteria": [list(criterion) for criterion in criteria]}
        case StoreAsked(query):
            return {"service": "query", "query": _query_json(query)}


def request_of(value: Mapping[str, Any]) -> Request:
    """Read a request.

    Raises:
        ValueError: it is none.
    """
    match value:
        case {"service": "push", "pubsubTopic": pubsub_topic, "message": message}:
            return PushAsked(_json.text(pubsub_topic), WakuMessage.from_json(message))
        case {"service": "query", "query": dict(query)}:
            return StoreAsked(_query_of(query))
        case {"service": str(action), "criteria": [*criteria]} if action in _ACTIONS:
            if len(criteria) > MAX_TOPICS_PER_REQUEST + 1:  # one more is refused in nwaku's words
                raise ValueError(f"{len(criteria)} criteria in a request")
            return FilterAsked(cast("FilterAction", action), tuple(map(_criterion, criteria)))
    raise ValueError("not a request of a service")


def answer_json(result: int | StorePage | ServiceRefused | None) -> dict[str, object]:
    """Write an answer: what a push or a query gave, nothing for filter, or why there is none."""
    match result:
        case ServiceRefused():
            texts = {"desc": result.description[:MAX_TEXT], "legacy": result.legacy[:MAX_TEXT]}
            return {"status": result.status, **texts}
        case StorePage():
            return {"status": OK, **_page_json(result)}
        case None:
            return {"status": OK}
        case count:
            return {"status": OK, "relayPeerCount": count}


def refusal_of(answer: Mapping[str, Any], *also: int) -> ServiceRefused | None:
    """Read why a request was refused; None where it was not.

    Args:
        answer: to a request.
        also: statuses that this service has beside those of HTTP.

    Raises:
        ValueError: not an answer.
    """
    match answer:
        case {"status": 200}:
            return None
        case {"status": int(status), "desc": str(description), "legacy": str(legacy)}:
            if status in STATUSES or status in also:
                return ServiceRefused(status, description[:MAX_TEXT], legacy=legacy[:MAX_TEXT])
    raise ValueError("not an answer of a service")


def taken_of(answer: Mapping[str, Any]) -> int:
    """Read how many relay peers a push went to.

    Raises:
        ValueError: it does not name a number.
    """
    match answer:
        case {"relayPeerCount": int(count)} if 0 < count <= MAX_PEERS:
            return count
    raise ValueError("an answer to a push without the number of peers")


def page_of(answer: Mapping[str, Any], query: StoreQuery) -> StorePage:
    """Read a page, and check it against its query.

    Raises:
        ValueError: not a page, more entries than were asked for, or another message than its hash
            names.
    """
    match answer:
        case {"messages": [*messages]} if len(messages) <= min(query.page_size or 20, 100):
            entries = tuple(_entry_of(entry, query.include_data) for entry in messages)
            cursor = answer.get("cursor")
            return StorePage(entries, None if cursor is None else _hash_of(cursor))
    raise ValueError("not a page of what was asked for")


def pushed_json(envelope: Envelope) -> dict[str, object]:
    """Write a message that filter pushes."""
    return {"kind": "push", **envelope.to_json()}


def fitting(page: StorePage, *, ascending: bool, room_bytes: int = PAGE_BYTES) -> StorePage:
    """Return the start of a page that fits into so many bytes, at least one entry, and its cursor.

    Backward pages start at their newest entry, which is listed last.
    """
    kept, room = 0, room_bytes
    for entry in page.entries if ascending else reversed(page.entries):
        room -= _entry_size(entry)
        if kept and room < 0:
            break
        kept += 1
    if kept == len(page.entries):
        return page
    entries = page.entries[:kept] if ascending else page.entries[-kept:]
    return StorePage(entries, entries[-1 if ascending else 0].message_hash)


def _query_json(query: StoreQuery) -> dict[str, object]:
    return {
        "pubsubTopic": query.pubsub_topic,
        "contentTopics": list(query.content_topics),
        "hashes": [digest.hex() for digest in query.hashes],
        "startTime": query.start_time_ns,
        "endTime": query.end_time_ns,
        "includeData": query.include_data,
        "ascending": query.ascending,
        "cursor": None if query.cursor is None else query.cursor.hex(),
        "pageSize": query.page_size,
    }


def _query_of(value: Mapping[str, Any]) -> StoreQuery:
    match value:
        case {
            "pubsubTopic": pubsub_topic,
            "contentTopics": [*content_topics],
            "hashes": [*hashes],
            "startTime": int() | None as start_time_ns,
            "endTime": int() | None as end_time_ns,
            "includeData": bool(include_data),
            "ascending": bool(ascending),
            "cursor": str() | None as cursor,
            "pageSize": int() | None as page_size,
        } if len(content_topics) <= MAX_TOPICS_PER_REQUEST and len(hashes) <= MAX_HASHES:
            times = [time for time in (start_time_ns, end_time_ns) if time is not None]
            if not all(-(2**63) <= time < 2**63 for time in times):
                raise ValueError("a time out of range")
            return StoreQuery(
                pubsub_topic=_json.optional_text(pubsub_topic),
                content_topics=tuple(map(_json.text, content_topics)),
                hashes=tuple(map(_hash_of, hashes)),
                start_time_ns=start_time_ns,
                end_time_ns=end_time_ns,
                include_data=include_data,
                ascending=ascending,
                cursor=None if cursor is None else _hash_of(cursor),
                page_size=None if page_size is None else min(page_size, MAX_PAGE_SIZE),
            )
    raise ValueError("not a query of Store")


def _page_json(page: StorePage) -> dict[str, object]:
    return {
        "messages": [_entry_json(entry) for entry in page.entries],
        "cursor": None if page.cursor is None else page.cursor.hex(),
    }


def _entry_size(entry: StoreEntry) -> int:
    if entry.message is None:
        return 2 * HASH_BYTES
    return 2 * HASH_BYTES + carried_size(entry.pubsub_topic or "", entry.message)


def _entry_json(entry: StoreEntry) -> dict[str, object]:
    if entry.message is None:
        return {"hash": entry.message_hash.hex()}
    fields = {"pubsubTopic": entry.pubsub_topic, "message": entry.message.to_json()}
    return {"hash": entry.message_hash.hex(), **fields}


def _entry_of(value: object, include_data: bool) -> StoreEntry:
    match value:
        case {"hash": digest, "message": _} if include_data:
            envelope = Envelope.from_json(value)
            if envelope.hash != _hash_of(digest):
                raise ValueError(f"the message is not the one of hash {digest}")
            return StoreEntry(envelope.hash, envelope.message, envelope.pubsub_topic)
        case {"hash": digest} if not include_data:
            return StoreEntry(_hash_of(digest))
    raise ValueError("not an entry of what was asked for")


def _hash_of(value: object) -> bytes:
    if not isinstance(value, str) or len(value) != 2 * HASH_BYTES:
        raise ValueError("not a hash")
    return bytes.fromhex(value)


def _criterion(value: object) -> Criterion:
    match value:
        case [pubsub_topic, content_topic]:
            return _json.text(pubsub_topic), _json.text(content_topic)
    raise ValueError("not a filter criterion")
