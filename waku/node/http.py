"""Requests, answers and routes, with the rules of nwaku's REST server.

A topic in a path is one percent-encoded segment, so paths are matched before they are decoded. A
request that fits no route gets 404 with an empty text, even for a wrong method.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import parse_qsl, unquote

from waku.node.clients import Clients
from waku.node.host import ServiceHost
from waku.node.mesh import PeerInfo
from waku.node.messaging import Messaging
from waku.node.metrics import Metrics
from waku.node.service_nodes import ServiceNodes

__all__ = [
    "HTML",
    "JSON",
    "NOT_FOUND",
    "OK",
    "TEXT",
    "Request",
    "Response",
    "Route",
    "Routes",
    "ServedNode",
]

JSON: Final = "application/json"
TEXT: Final = "text/plain"
HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """HTTP request, as a handler receives it."""

    path_values: tuple[str, ...]
    """Decoded variable segments of the path, in the order of the path."""
    query: Mapping[str, str]
    """Parameters of the query string. As in nwaku, commas join the values of a repeated
    parameter."""
    body: bytes
    content_type: str | None
    """Media type of the body without parameters, in lower case."""
    client_id: str | None
    """Value of the header `Waku-Client-Id`."""


@dataclass(frozen=True, slots=True)
class Response:
    """HTTP answer that a handler returns."""

    status: int
    body: bytes
    content_type: str = TEXT

    @classmethod
    def text(cls, status: int, text: str) -> Response:
        """Return an answer with a plain text."""
        return cls(status, text.encode(errors="replace"))

    @classmethod
    def json(cls, value: object, status: int = 200) -> Response:
        """Return an answer with a JSON value."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return cls(status, body.encode(errors="replace"), JSON)


TELL_TOPICS_S: Final = 1.0
"""Time (s) for which an answer about a subscription waits for slow peers."""
OK: Final = Response(200, b"OK")
NOT_FOUND: Final = Response(404, b"")


class ServedNode(ServiceHost, Protocol):
    """Interface of `EmbeddedNode` for the handlers of its REST API."""

    @property
    def peer_id(self) -> str:
        """Peer id of the node."""

    @property
    def service_nodes(self) -> ServiceNodes:
        """Nodes whose services this node's light clients use."""

    @property
    def clients(self) -> Clients:
        """REST clients of the node, each with its unread messages."""

    @property
    def metrics(self) -> Metrics:
        """Counters of requests and messages."""

    @property
    def messaging(self) -> Messaging:
        """Messaging layer of the node."""

    @property
    def libp2p_addresses(self) -> tuple[str, ...]:
        """Addresses at which libp2p peers can connect to the node."""

    @property
    def record(self) -> str:
        """Node record (`enr:…`), or an empty text if the node has no record."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """Operations of the REST API."""

    @property
    def dials(self) -> Mapping[bool, int]:
        """Number of dial attempts, by success (True) and failure (False)."""

    async def dial(self, address: str, *, stay: bool = True) -> None:
        """Connect to a peer, or raise `DialFailed`. With `stay`, the node dials the peer again
        whenever the connection ends."""

    def announce_topics(self) -> None:
        """Tell other nodes which pubsub topics this node now follows."""

    async def peers_told(self, within_s: float) -> None:
        """Wait until the peers were sent new topics and messages, at most `within_s`."""

    def relay_peers(self, pubsub_topic: str | None = None) -> list[PeerInfo]:
        """Return the connected relay peers. If a topic is given, return only the peers that follow
        the topic."""

    def mesh_peers(self, pubsub_topic: str) -> list[PeerInfo]:
        """Return the relay peers in the mesh of a pubsub topic."""


Handler: TypeAlias = Callable[[ServedNode, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """Operation of the REST API, with its description."""

    method: str
    path: str
    """Path in OpenAPI notation, such as `/relay/v1/messages/{pubsubTopic}`."""
    handler: Handler
    summary: str
    tag: str
    body: str | None = None
    """Name of the schema of the request's body, or None without a body."""
    answer: str | None = None
    """Name of the schema of the JSON answer, or None for a plain text."""
    query: tuple[str, ...] = ()
    failures: Mapping[int, str] = field(default_factory=dict)
    failure: str | None = None
    """Name of the schema of the JSON of failures, or None for a plain text."""

    @property
    def segments(self) -> tuple[str, ...]:
        """Segments of the path template."""
        return tuple(self.path.split("/")[1:])


class Routes:
    """Index that finds the route of a path by the number of segments and by the fixed segments."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._exact: dict[tuple[str, str], Route] = {}
        self._variable: dict[tuple[str, int], list[Route]] = {}
        for route in self.routes:
            if "{" in route.path:
                self._variable.setdefault((route.method, len(route.segments)), []).append(route)
            else:
                self._exact[route.method, route.path] = route

    def find(self, method: str, raw_path: str) -> tuple[Route, tuple[str, ...]] | None:
        """Return the route of a path, and the decoded values of its variable segments."""
        route = self._exact.get((method, raw_path))
        if route is not None:
            return route, ()
        segments = raw_path.split("/")[1:]
        for route in self._variable.get((method, len(segments)), ()):
            values = _match(route.segments, segments)
            if values is not None:
                return route, values
        return None


def _match(template: tuple[str, ...], segments: list[str]) -> tuple[str, ...] | None:
    values = []
    for expected, found in zip(template, segments, strict=True):
        if expected.startswith("{"):
            if not found:
                return None
            values.append(unquote(found))
        elif expected != found:
            return None
    return tuple(values)


def parse_query(raw: str) -> Mapping[str, str]:
    """Parse a query string. Commas join the values of a repeated parameter."""
    found: dict[str, Any] = {}
    for name, value in parse_qsl(raw, keep_blank_values=True):
        found[name] = f"{found[name]},{value}" if name in found else value
    return found
