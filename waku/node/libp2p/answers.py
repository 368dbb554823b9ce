"""Answers to the requests of each libp2p protocol, from the services of the node."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from waku.libp2p import InvalidInput
from waku.models import HASH_BYTES, StoreEntry, StorePage
from waku.node.envelope import carried_size
from waku.node.errors import PublishRefused
from waku.node.host import ServiceHost
from waku.node.libp2p.options import ListenLimits
from waku.node.services import Criterion, ServiceRefused, Subscriber
from waku.p2p import serving_codec as serving
from waku.p2p.codec import (
    OK,
    FilterRequest,
    Metadata,
    ResponseStatus,
    decode_metadata,
    encode_metadata,
)
from waku.p2p.protocols import (
    FILTER_SUBSCRIBE,
    LIGHT_PUSH_2,
    LIGHT_PUSH_3,
    MAX_ANSWER_BYTES,
    MAX_EXCHANGED_PEERS,
    METADATA,
    PEER_EXCHANGE,
    STORE_3,
)

__all__ = ["Answers", "Asking", "Respond"]

BAD_REQUEST: Final = 400
TOO_LARGE: Final = 413
PUSH_OVERHEAD_BYTES: Final = 64 * 1024
"""Maximum size of a light push besides its message (bytes), which is nwaku's limit."""


class Asking(Protocol):
    def admit(self) -> None:
        """Count one request against the peer's budget.

        Raises:
            ServiceRefused: it asks too much.
        """

    def spent(self, cpu_s: float) -> None:
        """Charge the CPU time of a request to the peer's budget."""

    def filter_subscriber(self) -> Subscriber:
        """Return the peer as a subscriber of the filter service."""


Respond: TypeAlias = Callable[[Asking, bytes], Awaitable[bytes]]


class Answers:
    """Answers of a node to the requests of each protocol.

    Args:
        node: whose services they are.
        limits: bounds of a page and of topics.
        records: node records for peers that ask for others.
    """

    def __init__(
        self, node: ServiceHost, limits: ListenLimits, records: Callable[[], Sequence[bytes]]
    ) -> None:
        self._node = node
        self._limits = limits
        self._records = records

    def offered(self) -> dict[str, tuple[Respond, int]]:
        """Return the protocols that the options switch on, with handler and maximum request
        length."""
        options = self._node.options
        push_bytes = options.max_message_bytes + PUSH_OVERHEAD_BYTES
        offered: dict[str, tuple[Respond, int]] = {
            METADATA: (self.metadata, MAX_ANSWER_BYTES),
            PEER_EXCHANGE: (self.peer_exchange, MAX_ANSWER_BYTES),
        }
        if options.lightpush:
            offered[LIGHT_PUSH_3] = self.light_push, push_bytes
            offered[LIGHT_PUSH_2] = self.light_push_2, push_bytes
        if options.filter:
            offered[FILTER_SUBSCRIBE] = self.filter, MAX_ANSWER_BYTES
        if options.store:
            offered[STORE_3] = self.store, MAX_ANSWER_BYTES
        return offered

    async def metadata(self, asking: Asking, data: bytes) -> bytes:
        """Answer a metadata request with the cluster and the shards of the node. The answer does
        not depend on the metadata in the request (T11, T12)."""
        try:
            decode_metadata(data)
        except InvalidInput:
            pass  # js-waku and go-waku send what they like; the answer is the same
        return encode_metadata(Metadata(self._node.options.cluster_id, self._node.shards))

    async def light_push(self, asking: Asking, data: bytes) -> bytes:
        """Answer a request of light push v3."""
        request_id = ""
        try:
            asked = serving.decode_light_push(data)
            request_id = asked.request_id
            taken = await self._push(asking, asked)
        except InvalidInput as error:
            return _refused(request_id, BAD_REQUEST, f"BAD_REQUEST: {error}")
        except ServiceRefused as refusal:
            return _refused(request_id, refusal.status, refusal.description)
        return serving.encode_answer(ResponseStatus(request_id, OK, "OK", taken))

    async def light_push_2(self, asking: Asking, data: bytes) -> bytes:
        """Answer a request of light push v2, which has no status numbers."""
        request_id = ""
        try:
            asked = serving.decode_light_push_2(data)
            request_id = asked.request_id
            await self._push(asking, asked)
        except InvalidInput as error:
            return serving.encode_light_push_2_answer(request_id, success=False, text=str(error))
        except ServiceRefused as refusal:
            return serving.encode_light_push_2_answer(
                request_id, success=False, text=refusal.legacy
            )
        return serving.encode_light_push_2_answer(request_id, success=True, text="OK")

    async def filter(self, asking: Asking, data: bytes) -> bytes:
        """Answer a request of filter v2, to subscribe, unsubscribe or ping."""
        request_id = ""
        try:
            asked = serving.decode_filter_request(data)
            request_id = asked.request_id
            asking.admit()
            await self._filter(asking, asked)
        except InvalidInput as error:
            return _refused(request_id, BAD_REQUEST, f"BAD_REQUEST: {error}")
        except ServiceRefused as refusal:
            return _refused(request_id, refusal.status, refusal.description)
        return serving.encode_answer(ResponseStatus(request_id, OK, "OK"))

    async def store(self, asking: Asking, data: bytes) -> bytes:
        """Answer a query of Store v3 with a page, or with messages by hash."""
        request_id, page = "", StorePage(())
        begun_s = time.thread_time()
        try:
            request_id, query = serving.decode_store_query(data)
            asking.admit()
            page = _fitting(
                await self._node.services.query(query),
                ascending=query.ascending,
                limit_bytes=self._limits.page_bytes,
            )
            answer = ResponseStatus(request_id, OK, "OK")
        except InvalidInput as error:
            answer = ResponseStatus(request_id, BAD_REQUEST, f"BAD_REQUEST: {error}")
        except ServiceRefused as refusal:
            answer = ResponseStatus(request_id, refusal.status, refusal.description)
        encoded = serving.encode_store_answer(answer, page)
        asking.spent(time.thread_time() - begun_s)
        return encoded

    async def peer_exchange(self, asking: Asking, data: bytes) -> bytes:
        """Answer a peer exchange request with records of this node and of the option
        `known_peers`."""
        try:
            count = serving.decode_peer_exchange_query(data)
            asking.admit()
        except InvalidInput as error:
            return serving.encode_peer_exchange_answer(
                ResponseStatus("", BAD_REQUEST, str(error)), ()
            )
        except ServiceRefused as refusal:
            answer = ResponseStatus("", refusal.status, refusal.description)
            return serving.encode_peer_exchange_answer(answer, ())
        records = self._records()[: min(count, MAX_EXCHANGED_PEERS)]
        return serving.encode_peer_exchange_answer(ResponseStatus("", OK, "OK"), records)

    async def _push(self, asking: Asking, asked: serving.PushAsked) -> int:
        asking.admit()
        try:
            self._node.check_size(asked.message)
        except PublishRefused as error:
            raise ServiceRefused(TOO_LARGE, str(error)) from error
        return await self._node.services.push(asked.pubsub_topic, asked.message)

    async def _filter(self, asking: Asking, asked: serving.FilterAsked) -> None:
        services, subscriber = self._node.services, asking.filter_subscriber()
        if asked.kind == FilterRequest.SUBSCRIBER_PING:
            await services.ping(subscriber)
        elif asked.kind == FilterRequest.UNSUBSCRIBE_ALL:
            await services.unsubscribe_all(subscriber)
        else:
            criteria = self._criteria(asked)
            if asked.kind == FilterRequest.SUBSCRIBE:
                await services.subscribe(subscriber, criteria)
            else:
                await services.unsubscribe(subscriber, criteria)

    def _criteria(self, asked: serving.FilterAsked) -> list[Criterion]:
        if not asked.pubsub_topic or not asked.content_topics:
            raise ServiceRefused(
                BAD_REQUEST, "BAD_REQUEST: pubsub_topic and content_topics must be specified"
            )
        most = self._limits.topic_bytes
        for topic in (asked.pubsub_topic, *asked.content_topics):
            if len(topic.encode()) > most:
                raise ServiceRefused(
                    BAD_REQUEST, f"BAD_REQUEST: a topic may have {most} bytes (`topic_bytes`)"
                )
        return [(asked.pubsub_topic, topic) for topic in asked.content_topics]


def _refused(request_id: str, status: int, text: str) -> bytes:
    return serving.encode_answer(ResponseStatus(request_id, status, text))


def _fitting(page: StorePage, *, ascending: bool, limit_bytes: int) -> StorePage:
    """Return the start of a page that fits into so many bytes, at least one entry, and its cursor.

    Backward pages start at their newest entry, which is listed last.
    """
    kept, left_bytes = 0, limit_bytes
    for entry in page.entries if ascending else reversed(page.entries):
        left_bytes -= _entry_size(entry)
        if kept and left_bytes < 0:
            break
        kept += 1
    if kept == len(page.entries):
        return page
    entries = page.entries[:kept] if ascending else page.entries[-kept:]
    return StorePage(entries, entries[-1 if ascending else 0].message_hash)


def _entry_size(entry: StoreEntry) -> int:
    if entry.message is None:
        return HASH_BYTES
    return HASH_BYTES + carried_size(entry.pubsub_topic or "", entry.message)
