"""The calls of a node to one that it has joined, and how much it takes for an answer.

    POST /mesh/v1/hello       both name themselves; the other keeps an outbox for us from now on
    POST /mesh/v1/messages    what we have for the other
    GET  /mesh/v1/messages    what the other has for us; waits for something, names what arrived
    GET  /store/v3/messages   what we missed

A joined node is not trusted more than any other: each answer has a deadline as a whole, and is
refused where it is compressed, longer than `NodeOptions.max_body_bytes`, or of too many values.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
import httpx

from waku._request import Answer, Repeat, Request
from waku._session import Session
from waku.client import WakuClient
from waku.errors import BadRequest, EndpointMissing, NoPeers, PageLimitReached, WakuError
from waku.models import StoreQuery
from waku.node.envelope import Envelope
from waku.node.mesh import PeerInfo
from waku.node.outbox import BATCH_MESSAGES, batch_json

if TYPE_CHECKING:
    from waku.node.identity import NodeAddress
    from waku.node.options import NodeOptions
    from waku.node.outbox import Item

__all__ = ["POLL_S", "Delivery", "LinkLost", "MeshClient", "MoreThanFetched", "Refused"]

POLL_S: Final = 20.0
"""How long the other node may keep our question for messages before it answers that it has none."""
CLOSE_GRACE_S: Final = 1.0
CATCH_UP_PAGES: Final = 100
CATCH_UP_PAGE_SIZE: Final = 100
REFUSALS: Final = (400, 413)
"""Statuses of what the other node will not take, however often it is sent."""


class LinkLost(Exception):
    """The other node stopped answering, answers what cannot be used, or has forgotten us."""


class Refused(Exception):
    """The other node will not take what was sent, however often it is sent."""


class MoreThanFetched(Exception):
    """The other node's store has more than `CATCH_UP_PAGES` pages of what we missed."""


class MeshClient:
    """One node elsewhere, called over HTTP.

    Args:
        address: where it answers.
        options: of our own node, for the limits.
        transport: httpx transport to reach it by.
    """

    def __init__(
        self,
        address: NodeAddress,
        options: NodeOptions,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        timeout_s = options.peer_timeout_s
        headers = {} if address.token is None else {"Authorization": f"Bearer {address.token}"}
        self._limit_bytes = options.body_limit_bytes
        self._http = httpx.AsyncClient(
            base_url=address.url,
            headers={**headers, "Accept-Encoding": "identity"},
            timeout=timeout_s + POLL_S,  # for a read; the sessions end an answer as a whole
            transport=transport,
            trust_env=False,
        )
        self._calls = self._session(timeout_s)
        self._polls = self._session((timeout_s + POLL_S) / 2)
        self._store = WakuClient(
            address.url,
            timeout_s=timeout_s,
            retries=None,
            transport=transport,
            headers=headers,
            max_answer_bytes=CATCH_UP_PAGE_SIZE * 2 * options.max_message_bytes,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        with anyio.move_on_after(CLOSE_GRACE_S, shield=True):
            await self._http.aclose()
            await self._store.aclose()

    async def hello(self, ours: Mapping[str, object]) -> PeerInfo:
        """Introduce us, and return how the other node introduces itself.

        Raises:
            WakuError: it does not answer, or refuses.
        """
        request = Request("hello", "POST", "/mesh/v1/hello", Repeat.UNSENT, body=ours)
        return await self._calls.call(request, lambda answer: PeerInfo.from_json(answer.json()))

    async def give(self, peer_id: str, batch: list[Item]) -> None:
        """Hand over messages, requests and answers.

        Raises:
            Refused: it does not take them.
            LinkLost: it does not answer.
        """
        body = {"peerId": peer_id, **batch_json(batch)}
        request = Request("give", "POST", "/mesh/v1/messages", Repeat.UNSENT, body=body)
        try:
            await self._calls.call(request, lambda answer: None)
        except BadRequest as error:
            if error.status in REFUSALS:
                raise Refused(str(error)) from error
            raise LinkLost(str(error)) from error
        except WakuError as error:
            raise LinkLost(str(error)) from error

    async def take(self, peer_id: str, after: int) -> tuple[Delivery, int]:
        """Return what the other node has for us, and the number of the last item; waits for some.

        Raises:
            LinkLost: it does not answer, or with something else.
        """
        params = {
            "peerId": peer_id,
            "after": str(after),
            "waitMs": str(int(POLL_S * 1000)),
            "maxBytes": str(self._limit_bytes),
        }
        request = Request("take", "GET", "/mesh/v1/messages", Repeat.UNSENT, params=params)
        try:
            return await self._polls.call(request, _delivery)
        except WakuError as error:
            raise LinkLost(str(error)) from error

    async def stored(self, since_ns: int) -> AsyncIterator[Envelope]:
        """Yield what the other node's store has; nothing where it keeps nothing.

        Raises:
            MoreThanFetched: there is more.
            LinkLost: it does not answer.
        """
        query = StoreQuery(start_time_ns=max(1, since_ns), page_size=CATCH_UP_PAGE_SIZE)
        try:
            async with aclosing(self._store.store_all(query, max_pages=CATCH_UP_PAGES)) as entries:
                async for entry in entries:
                    await anyio.lowlevel.checkpoint()  # a page may be long
                    if entry.message is not None and entry.pubsub_topic is not None:
                        # The hash is made anew: the other node may have written any.
                        yield Envelope.of(entry.pubsub_topic, entry.message)
        except PageLimitReached as error:
            raise MoreThanFetched(str(error)) from error
        except (EndpointMissing, NoPeers):
            return
        except WakuError as error:
            raise LinkLost(str(error)) from error

    def _session(self, timeout_s: float) -> Session:
        return Session(
            self._http, timeout_s=timeout_s, retries=None, max_answer_bytes=self._limit_bytes
        )


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a node hands over at once."""

    envelopes: list[Envelope]
    services: list[object]
    """Requests, answers and filter pushes, unread."""

    @classmethod
    def of(cls, value: Mapping[Any, Any]) -> Delivery:
        """Read what `batch_json` wrote.

        Raises:
            ValueError: a message is none, or there are more items than a batch has.
        """
        match value:
            case {"messages": [*messages]}:
                services = value.get("services", [])
                if isinstance(services, list):
                    number = len(messages) + len(services)
                    if number > BATCH_MESSAGES:
                        raise ValueError(
                            f"a batch has at most {BATCH_MESSAGES} items (got {number})"
                        )
                    return cls([Envelope.from_json(message) for message in messages], services)
        raise ValueError("messages are expected")


def _delivery(answer: Answer) -> tuple[Delivery, int]:
    match answer.json():
        case {"last": int(last), **fields}:
            return Delivery.of(fields), last
    raise ValueError("expected messages and the number of the last one")
