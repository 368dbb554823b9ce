"""What the protocols share: sending, plain confirmations, and lists with a bad item in them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TypeVar
from urllib.parse import quote

from waku import _json
from waku._gate import Load
from waku._request import Answer, Flavour, Repeat, Request
from waku._session import Session
from waku.errors import EndpointMissing
from waku.models import Rejected, WakuMessage

__all__ = ["EMBEDDED_AGENT", "Api", "confirmation", "in_path", "publishing"]

T = TypeVar("T")

EMBEDDED_AGENT = "py-waku-"
"""Prefix of the version of an embedded node."""
REPORTED_ITEMS = 20
"""Unreadable items of one answer that are reported one by one. A list may hold 100,000 of them."""
_CONFIRMATIONS = frozenset({"", "OK", "true", "null"})


class Api:
    """The part of a client that every protocol's calls stand on."""

    def __init__(
        self, session: Session, *, client_id: str, on_rejected: Callable[[Rejected], None]
    ) -> None:
        self._session = session
        self._client_id = client_id
        self._on_rejected = on_rejected
        self._request_numbers = count(1)

    async def flavour(self) -> Flavour:
        """Return the node's software, after one request.

        `GET /version` shows it: nwaku and logos-delivery return their version. Our own node begins
        it with `py-waku`, and go-waku answers 404 (it has only `/debug/v1/version`).

        Raises:
            WakuError: the node could not be asked.
        """
        if self._session.flavour is None:
            request = Request("flavour", "GET", "/version", Repeat.SAFE)
            try:
                self._session.flavour = await self._session.call(request, _flavour)
            except EndpointMissing:
                self._session.flavour = Flavour.GO_WAKU
        return self._session.flavour

    def _next_request_id(self) -> str:
        return f"{self._client_id}-{next(self._request_numbers)}"

    def _read_messages(self, answer: Answer) -> list[WakuMessage]:
        return self._read_each(answer, answer.json(), WakuMessage.from_json)

    def _read_each(self, answer: Answer, items: object, read: Callable[[object], T]) -> list[T]:
        """Read what can be read of a list and report the rest: one bad item costs only itself."""
        good: list[T] = []
        call, bad = answer.request.name, 0
        for item in _json.list_of(items, lambda item: item):
            try:
                good.append(read(item))
            except ValueError as error:
                bad += 1
                if bad <= REPORTED_ITEMS:
                    self._on_rejected(Rejected(call, str(error), item))
        if bad > REPORTED_ITEMS:
            self._on_rejected(Rejected(call, f"so are {bad - REPORTED_ITEMS} more items", None))
        return good


def publishing(payload: bytes, content_topic: str, urgent: bool) -> Load:
    """Return the load of a message, which the node passes on by relay or light push."""
    return Load("publish", len(payload), content_topic, urgent)


def _flavour(answer: Answer) -> Flavour:
    ours = answer.text.startswith(EMBEDDED_AGENT)
    return Flavour.EMBEDDED if ours else Flavour.NWAKU


def confirmation(answer: Answer) -> None:
    """Read an answer that only says yes: `OK`, `true`, `null` or nothing."""
    if answer.text.strip().strip('"') not in _CONFIRMATIONS:
        raise ValueError("expected an empty answer or OK as a confirmation")


def in_path(topic: str) -> str:
    """Percent-encode a topic for a path, slashes included: raw ones are other paths to a node."""
    return quote(topic, safe="")
