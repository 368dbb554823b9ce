"""Service peer of a light client. Each request is a separate stream.

Failures of libp2p become errors of `waku.errors`, as in the REST client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import anyio

from waku import errors
from waku._gate import Load, passing
from waku.libp2p import (
    ConnectionClosed,
    InvalidInput,
    LimitExceeded,
    PeerId,
    PeerViolation,
    StreamClosed,
)
from waku.libp2p.driver import IdentifiedPeer, Link, identify, ping
from waku.models import LightPushAnswer, StorePage, StoreQuery, WakuMessage

from . import codec
from .codec import OK, FilterRequest, Metadata, ResponseStatus
from .protocols import (
    FILTER_SUBSCRIBE,
    LIGHT_PUSH_2,
    LIGHT_PUSH_3,
    MAX_ANSWER_BYTES,
    MAX_EXCHANGED_PEERS,
    MAX_MESSAGE_BYTES,
    MAX_PAGE_ENTRIES,
    METADATA,
    OVERHEAD_BYTES,
    PEER_EXCHANGE,
    STORE_3,
)
from .refusals import refusal

__all__ = ["ServicePeer", "check_network"]

T = TypeVar("T")

PING_BYTES: Final = 32
LEGACY_REFUSAL: Final = 400
"""Status for a refusal of light push v2, which has no status numbers."""


class ServicePeer:
    """Connected service peer, with its report about itself."""

    def __init__(
        self,
        link: Link,
        *,
        info: IdentifiedPeer,
        metadata: Metadata | None,
        timeout_ms: int,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.link = link
        self.info = info
        self.metadata = metadata
        """None where the peer does not serve metadata."""
        self.subscribing = anyio.Lock()
        """Subscriptions and their ends, which go on separate streams, keep their order."""
        self._name = str(link.peer_id)
        self._timeout_ms = timeout_ms
        self._max_page_bytes = MAX_PAGE_ENTRIES * (max_message_bytes + OVERHEAD_BYTES)
        self._random_bytes = random_bytes

    @classmethod
    async def greet(
        cls,
        link: Link,
        own: Metadata,
        *,
        timeout_ms: int,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        random_bytes: Callable[[int], bytes],
    ) -> ServicePeer:
        """Ask a new peer for its services and its network.

        Raises:
            WrongNetwork: another cluster, or none of our shards.
            NodeUnreachable, BadAnswer: it does not answer, or not what it should.
        """
        with _translated("connect", timeout_ms):
            info = await identify(link)
            metadata = await _ask_metadata(link, own) if METADATA in info.protocols else None
        peer = cls(
            link,
            info=info,
            metadata=metadata,
            timeout_ms=timeout_ms,
            max_message_bytes=max_message_bytes,
            random_bytes=random_bytes,
        )
        if metadata is not None:
            check_network(link.peer_id, own, metadata)
        return peer

    async def light_push(
        self, message: WakuMessage, pubsub_topic: str, *, urgent: bool = True
    ) -> LightPushAnswer:
        """Publish a message through the peer by light push v3, or by v2 if the peer lacks v3.

        In v3, the peer chooses the shard if the pubsub topic is empty.

        Raises:
            WakuError: as `LightClient.light_push`.
        """
        request_id = self._request_id()
        protocol = LIGHT_PUSH_3 if LIGHT_PUSH_3 in self.info.protocols else LIGHT_PUSH_2
        load = Load(protocol, len(message.payload), message.content_topic, urgent)
        if protocol == LIGHT_PUSH_3:
            request = codec.encode_light_push(request_id, message, pubsub_topic or None)
            data = await self._ask("light_push", load, request, MAX_ANSWER_BYTES)
            answer = self._checked("light_push", request_id, data, codec.decode_answer)
            # nwaku's own client takes a push that reached nobody for a failure, too.
            if not answer.relay_peer_count:
                raise errors.NoPeers(
                    "light_push", status=answer.status, detail="it reached 0 relay peers"
                )
            return LightPushAnswer(answer.relay_peer_count)
        request = codec.encode_light_push_2(request_id, message, pubsub_topic)
        data = await self._ask("light_push", load, request, MAX_ANSWER_BYTES)
        self._checked("light_push", request_id, data, _legacy_answer)
        return LightPushAnswer(1)

    async def filter(
        self,
        kind: codec.FilterKind,
        pubsub_topic: str | None = None,
        content_topics: Sequence[str] = (),
    ) -> None:
        """Subscribe, unsubscribe, or check that the peer still knows this client as a subscriber.

        Raises:
            NotSubscribed: it does not.
            WakuError: as `LightClient.subscribe`.
        """
        call = f"filter_{FilterRequest.Name(kind).lower()}"
        request_id = self._request_id()
        request = codec.encode_filter_request(request_id, kind, pubsub_topic, content_topics)
        data = await self._ask(call, Load(FILTER_SUBSCRIBE), request, MAX_ANSWER_BYTES)
        self._checked(call, request_id, data, codec.decode_answer)

    async def store(self, query: StoreQuery) -> StorePage:
        """Return one page of messages from the peer's Store.

        Raises:
            WakuError: as `LightClient.store`.
        """
        request_id = self._request_id()
        request = codec.encode_store_query(request_id, query)
        data = await self._ask("store", Load(STORE_3), request, self._max_page_bytes)
        page = StorePage(())

        def decode(data: bytes) -> ResponseStatus:
            nonlocal page
            answer, page = codec.decode_store_answer(data)
            return answer

        self._checked("store", request_id, data, decode)
        return page

    async def peers(self) -> list[bytes]:
        """Return unchecked node records of other peers (34/WAKU2-PEER-EXCHANGE).

        Raises:
            RateLimited, BadRequest, NoPeers: the peer refuses.
            EndpointMissing: the peer does not offer this.
            NodeUnreachable, BadAnswer: no answer, or none that can be used.
        """
        request = codec.encode_peer_exchange_query(MAX_EXCHANGED_PEERS)
        load = Load(PEER_EXCHANGE)
        data = await self._ask("peer_exchange", load, request, MAX_ANSWER_BYTES)
        records: list[bytes] = []

        def decode(data: bytes) -> ResponseStatus:
            nonlocal records
            answer, records = codec.decode_peer_exchange_answer(data)
            return answer

        self._checked("peer_exchange", "", data, decode)
        return records

    async def ping(self) -> float:
        """Measure the round trip time to the peer (s).

        Raises:
            NodeUnreachable: no answer in time.
        """
        with _translated("ping", self._timeout_ms):
            return await ping(self.link, self._random_bytes(PING_BYTES))

    async def _ask(self, call: str, load: Load, request: bytes, limit: int) -> bytes:
        """Send one request on a separate stream, once it is its turn, and return the answer."""
        if load.protocol not in self.info.protocols:
            raise errors.EndpointMissing(
                call, detail=f"peer {self.link.peer_id} does not speak {load.protocol}"
            )
        async with passing(self._name, load):
            with _translated(call, self._timeout_ms):
                async with self.link.open([load.protocol]) as stream:
                    data = await stream.request(request, limit)
        if data is None:
            raise errors.BadAnswer(call, detail="the peer ended the stream without an answer")
        return data

    def _checked(
        self, call: str, request_id: str, data: bytes, decode: Callable[[bytes], ResponseStatus]
    ) -> ResponseStatus:
        try:
            answer = decode(data)
        except InvalidInput as error:
            raise errors.BadAnswer(call, detail=str(error)) from error
        if not answer.is_for(request_id):
            raise errors.BadAnswer(call, detail=f"it answers request {answer.request_id!r}")
        if answer.status != OK:
            raise refusal(call, answer)
        return answer

    def _request_id(self) -> str:
        return self._random_bytes(16).hex()


def check_network(peer_id: PeerId, own: Metadata, metadata: Metadata) -> None:
    """Compare the network of a peer with the own network. Details that the peer does not give count
    as equal.

    Raises:
        WrongNetwork: another cluster, or none of our shards.
    """
    if metadata.cluster_id is not None and metadata.cluster_id != own.cluster_id:
        raise errors.WrongNetwork(
            "connect",
            detail=f"peer {peer_id} is in cluster {metadata.cluster_id}, not {own.cluster_id}",
        )
    if own.shards and metadata.shards and not own.shards & metadata.shards:
        raise errors.WrongNetwork(
            "connect",
            detail=f"peer {peer_id} has shards {_listed(metadata.shards)}, "
            f"not {_listed(own.shards)}",
        )


async def _ask_metadata(link: Link, own: Metadata) -> Metadata:
    async with link.open([METADATA]) as stream:
        # T11: js-waku answers after the end of this half.
        data = await stream.request(codec.encode_metadata(own), MAX_ANSWER_BYTES)
    if data is None:
        raise StreamClosed("the peer ended the metadata stream without an answer")
    return codec.decode_metadata(data)


@contextmanager
def _translated(call: str, timeout_ms: int) -> Iterator[None]:
    try:
        with anyio.fail_after(timeout_ms / 1000):
            yield
    except TimeoutError:
        raise errors.NodeUnreachable(
            call, detail=f"no answer within {timeout_ms} ms", timed_out=True
        ) from None
    except (ConnectionClosed, StreamClosed) as error:
        raise errors.NodeUnreachable(call, detail=str(error), sent=True) from error
    except (InvalidInput, LimitExceeded, PeerViolation) as error:
        raise errors.BadAnswer(call, detail=str(error)) from error


def _legacy_answer(data: bytes) -> ResponseStatus:
    request_id, success, text = codec.decode_light_push_2_answer(data)
    return ResponseStatus(request_id, OK if success else LEGACY_REFUSAL, text)


def _listed(shards: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(shards)[:20]))
