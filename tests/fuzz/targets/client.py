"""What a node answers to `waku`: whatever it says, a value or a `WakuError`."""

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar, cast

from waku._api.admin import AdminApi
from waku._api.filter import FilterApi
from waku._api.lightpush import LightPushApi
from waku._api.node import NodeApi
from waku._api.relay import RelayApi
from waku._api.store import StoreApi
from waku._api.store_v1 import StoreV1Api
from waku._failures import from_answer
from waku._request import Answer, Flavour, Request
from waku._session import Session, _understand
from waku.errors import DETAIL_LIMIT, InvalidTopic, WakuError
from waku.hashing import message_hash
from waku.models import (
    HASH_BYTES,
    Rejected,
    StorePage,
    StoreQuery,
    StoreV1Query,
    WakuMessage,
)
from waku.topics import ContentTopic, PubsubTopic, shard_for

from ..target import JSON_WORDS, Target
from ..vectors import exchanges, written

T = TypeVar("T")
TOPIC: Final = "/app/1/chat/proto"
SHARD: Final = str(PubsubTopic(1, 0))
MESSAGE: Final = WakuMessage(b"payload", TOPIC, timestamp=1)
STATUSES: Final = (400, 404, 405, 412, 413, 429, 500, 503, 505, 301)


class _Client(RelayApi, LightPushApi, FilterApi, StoreApi, StoreV1Api, NodeApi, AdminApi):
    pass


CALLS: Final[dict[str, Callable[[_Client], Awaitable[object]]]] = {
    "/store/v3/messages": lambda c: c.store(StoreQuery(content_topics=(TOPIC,))),
    "/relay/v1/messages": lambda c: c.relay_messages(SHARD),
    "/relay/v1/auto/messages": lambda c: c.relay_auto_messages(TOPIC),
    "/filter/v2/messages": lambda c: c.filter_messages(TOPIC),
    "/filter/v2/subscriptions": lambda c: c.filter_subscribe([TOPIC]),
    "/lightpush/v3/message": lambda c: c.lightpush(MESSAGE),
    "/relay/v1/auto/subscriptions": lambda c: c.relay_auto_subscribe([TOPIC]),
    "/store/v1/messages": lambda c: c.store_v1(StoreV1Query(content_topics=(TOPIC,))),
    "/info": lambda c: c.info(),
    "/version": lambda c: c.version(),
    "/health": lambda c: c.health(),
    "/admin/v1/peers": lambda c: c.peers(),
    "/admin/v1/peers/relay": lambda c: c.relay_peers(),
    "/admin/v1/peers/stats": lambda c: c.peer_stats(),
    "/admin/v1/filter/subscriptions": lambda c: c.filter_subscriptions(),
}
PATHS: Final = tuple(CALLS)


class _Says:
    """A session in which every answer is the same, so that no call ever waits."""

    def __init__(self, status: int, body: bytes) -> None:
        self.flavour: Flavour | None = None
        self.store_flavour: Flavour | None = None
        self._status, self._body = status, body

    async def call(self, request: Request, read: Callable[[Answer], T]) -> T:
        if self._status >= 300:
            raise from_answer(request, self._status, self._body)
        return _understand(Answer(request, self._status, self._body), read)


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        return cast("T", finished.value)
    raise AssertionError("it waits for something")


def _answers(data: bytes) -> None:
    """The first byte says to which call this is the answer, the second whether it is a refusal."""
    if len(data) < 2:
        return
    path, body = PATHS[data[0] % len(PATHS)], data[2:]
    status = 200 if data[1] < 0x80 else STATUSES[data[1] % len(STATUSES)]
    rejected: list[Rejected] = []
    session = cast("Session", _Says(status, body))
    client = _Client(session, client_id="fuzz", on_rejected=rejected.append)
    try:
        found = at_once(cast("Coroutine[Any, Any, object]", CALLS[path](client)))
    except WakuError as error:
        assert len(error.detail) <= DETAIL_LIMIT
        str(error).encode(errors="surrogateescape")
        return
    assert status == 200, "a refusal was taken for an answer"
    items = found.entries if isinstance(found, StorePage) else found
    if isinstance(items, (list, tuple)):
        assert len(items) + len(rejected) <= len(body)
    for message in _messages(items):
        assert WakuMessage.from_json(json.loads(json.dumps(message.to_json()))) == message
        assert len(message_hash(SHARD, message)) == HASH_BYTES
    if isinstance(found, StorePage):
        assert all(len(entry.message_hash) == HASH_BYTES for entry in found.entries)
        assert found.cursor is None or len(found.cursor) == HASH_BYTES
    repr(found)


def _messages(items: object) -> Iterator[WakuMessage]:
    for item in items if isinstance(items, (list, tuple)) else ():
        message = getattr(item, "message", item)
        if isinstance(message, WakuMessage):
            yield message


def _recorded() -> Iterator[bytes]:
    """What nwaku answered, by the call that asks for it."""
    by_path = {path: bytes([n]) for n, path in enumerate(PATHS)}
    for request, response in exchanges():
        paths = [path for path in PATHS if request["path"].startswith(path)]
        status = response["status"]
        if paths and status is not None:  # nwaku ended its process over one
            refused = 0x80 + (STATUSES.index(status) if status in STATUSES else 0) + 2
            mark = b"\0" if status < 300 else bytes([refused])
            yield by_path[max(paths, key=len)] + mark + written(response["body"])


def check_topic(text: str) -> None:
    """A topic is read, or is no topic; what was read is written as it was."""
    try:
        content_topic = ContentTopic.parse(text)
    except InvalidTopic as error:
        assert len(str(error)) < 12 * DETAIL_LIMIT  # a surrogate is written with six characters
    else:
        assert ContentTopic.parse(str(content_topic)) == content_topic
        assert text.removeprefix("/0") == str(content_topic) or text == str(content_topic)
        assert 0 <= shard_for(content_topic, 8) < 8
    try:
        pubsub_topic = PubsubTopic.parse(text)
    except InvalidTopic:
        return
    assert PubsubTopic.parse(str(pubsub_topic)) == pubsub_topic


TARGETS: Final = (Target("waku_answers", _answers, _recorded, JSON_WORDS),)
