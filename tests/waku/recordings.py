"""The recorded conversations with a real nwaku, and the client calls that they correspond to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from waku import StoreQuery, WakuClient, WakuMessage
from waku.models import StoreV1Query

DATA = Path(__file__).parents[1] / "vectors" / "data" / "nwaku-rest"
FILES = ("admin", "debug", "filter", "health", "lightpush", "relay", "relay_auto", "store")

OVERSIZED = b"x" * 160_000
"""Stands for the payloads that were cut out of the recordings."""

Call = Callable[[WakuClient], Awaitable[object]]


@dataclass(frozen=True)
class Recording:
    file: str
    index: int
    method: str
    path: str
    query: dict[str, Any]
    content_type: str | None
    request_body: Any
    status: int
    content: bytes
    """The body as the node sent it (JSON was parsed by the recorder and is written anew)."""

    @property
    def name(self) -> str:
        return f"{self.file}-{self.index}"

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    def response(self) -> httpx.Response:
        return httpx.Response(self.status, content=self.content)


@cache
def recordings() -> tuple[Recording, ...]:
    found = []
    for file in FILES:
        for index, entry in enumerate(json.loads((DATA / f"{file}.json").read_text())):
            request, response = entry["request"], entry["response"]
            body = response["body"]
            content = body if isinstance(body, str) else json.dumps(body)
            found.append(
                Recording(
                    file=file,
                    index=index,
                    method=request["method"],
                    path=request["path"],
                    query=request.get("query") or {},
                    content_type=request.get("content-type"),
                    request_body=request.get("body"),
                    status=response["status"],
                    content=content.encode(),
                )
            )
    return tuple(found)


def call_for(recording: Recording) -> tuple[Call, bool] | None:
    """Return the call that sends this request, and whether it can say exactly the same.

    It cannot when the request was wrong on purpose (bad JSON, unknown fields): the call then sends
    something good, and only the reading of the node's answer is tested. None: no call goes there.
    """
    for placeholder in (False, True):
        try:
            call = _route(recording, recording.request_body, placeholder)
        except (TypeError, KeyError, ValueError, AttributeError):
            continue
        if call is None:
            return None
        typed = recording.request_body is None or recording.content_type == "application/json"
        return call, typed and not placeholder
    raise AssertionError(f"no call for {recording.name}")


def _route(recording: Recording, body: Any, placeholder: bool) -> Call | None:
    """Make the call, with the recorded arguments or with some of our own."""
    parts = [unquote(part) for part in recording.path.strip("/").split("/")]
    if recording.path.endswith("/") or "?" in recording.path or "" in parts:
        return None
    match recording.method, parts:
        case "GET", ["info"] | ["debug", "v1", "info"]:
            return lambda node: node.info()
        case "GET", ["version"] | ["debug", "v1", "version"]:
            return lambda node: node.version()
        case "GET", ["health"]:
            return lambda node: node.health()
        case "GET", ["relay", "v1", "messages", topic]:
            return lambda node: node.relay_messages(topic)
        case "GET", ["relay", "v1", "auto", "messages", topic]:
            return lambda node: node.relay_auto_messages(topic)
        case "POST", ["relay", "v1", "messages", topic]:
            message = _message(body, placeholder)
            return lambda node: node.relay_publish(topic, message)
        case "POST", ["relay", "v1", "auto", "messages"]:
            message = _message(body, placeholder)
            return lambda node: node.relay_auto_publish(message)
        case verb, ["relay", "v1", *rest] if rest in (["subscriptions"], ["auto", "subscriptions"]):
            topics = [] if placeholder else _texts(body)
            auto = "auto" in rest
            if verb == "POST":
                return lambda node: (
                    node.relay_auto_subscribe(topics) if auto else node.relay_subscribe(topics)
                )
            if verb == "DELETE":
                return lambda node: (
                    node.relay_auto_unsubscribe(topics) if auto else node.relay_unsubscribe(topics)
                )
        case "POST", ["lightpush", version, "message"]:
            topic_or_none, message = None, _message(None, True)
            if not placeholder:
                _only(body, {"pubsubTopic", "message"})
                topic_or_none, message = body.get("pubsubTopic"), _message(body["message"], False)
            if version == "v3":
                return lambda node: node.lightpush(message, topic_or_none)
            return lambda node: node.lightpush_v1(message, topic_or_none)
        case verb, ["filter", "v2", *rest]:
            return _filter_route(verb, rest, body, placeholder)
        case "GET", ["store", "v3", "messages"]:
            query = StoreQuery() if placeholder else _store_query(recording.query)
            return lambda node: node.store(query)
        case "GET", ["store", "v1", "messages"]:
            return lambda node: node.store_v1(_store_v1_query(recording.query))
        case verb, ["admin", "v1", *rest]:
            return _admin_route(verb, rest, body, placeholder)
    return None


def _filter_route(verb: str, rest: list[str], body: Any, placeholder: bool) -> Call | None:
    match verb, rest:
        case "GET", ["messages", *topics] if 1 <= len(topics) <= 2:
            return lambda node: node.filter_messages(topics[-1], *topics[:-1])
        case "GET", ["subscriptions", request_id]:
            return lambda node: node.filter_ping(request_id)
        case "DELETE", ["subscriptions", "all"]:
            one = None if placeholder else body["requestId"]
            return lambda node: node.filter_unsubscribe_all(one)
        case (("POST" | "PUT" | "DELETE"), ["subscriptions"]):
            if placeholder:
                arguments: tuple[Any, ...] = (["/a/1/b/proto"], None, "r")
            else:
                _only(body, {"requestId", "contentFilters", "pubsubTopic"})
                arguments = (
                    _texts(body["contentFilters"]),
                    body.get("pubsubTopic"),
                    _texts([body["requestId"]])[0],
                )
            if verb == "POST":
                return lambda node: node.filter_subscribe(*arguments)
            if verb == "PUT":
                return lambda node: node.filter_update(*arguments)
            return lambda node: node.filter_unsubscribe(*arguments)
    return None


def _admin_route(verb: str, rest: list[str], body: Any, placeholder: bool) -> Call | None:
    match verb, rest:
        case "POST", ["peers"]:
            addresses = ["/ip4/1.2.3.4/tcp/1/p2p/16U"] if placeholder else _texts(body)
            return lambda node: node.add_peers(addresses)
        case "POST", ["log-level", level]:
            return lambda node: node.set_log_level(level)  # type: ignore[arg-type]
        case "GET", ["peers"]:
            return lambda node: node.peers()
        case "GET", ["peers", "service"]:
            return lambda node: node.service_peers()
        case "GET", ["peers", "stats"]:
            return lambda node: node.peer_stats()
        case "GET", ["peers", ("connected" | "relay" | "mesh") as kind, *on]:
            shard: Any = on[1] if on else None  # texts too: what a node says of them is recorded
            method = {"connected": "connected_peers", "relay": "relay_peers", "mesh": "mesh_peers"}
            return lambda node: getattr(node, method[kind])(shard)
        case "GET", ["peer", peer_id]:
            return lambda node: node.peer(peer_id)
        case "GET", ["filter", "subscriptions"]:
            return lambda node: node.filter_subscriptions()
    return None


def _message(body: Any, placeholder: bool) -> WakuMessage:
    if placeholder:
        return WakuMessage(b"payload", "/a/1/b/proto")
    _only(
        body,
        {"payload", "contentTopic", "version", "timestamp", "meta", "ephemeral", "proof"},
    )
    if body["payload"] == "<cut>":
        return WakuMessage.from_json(
            {**body, "payload": WakuMessage(OVERSIZED, "").to_json()["payload"]}
        )
    if not isinstance(body.get("timestamp", 0), int) or set(body["payload"]) & set("-_"):
        raise ValueError("a client does not write this")
    return WakuMessage.from_json(body)


def _store_query(query: dict[str, Any]) -> StoreQuery:
    flags = {"true": True, "false": False}
    _only(
        query,
        {
            *("includeData", "ascending", "pubsubTopic", "contentTopics", "peerAddr"),
            *("startTime", "endTime", "pageSize", "hashes", "cursor"),
        },
    )
    return StoreQuery(
        include_data=flags[query.get("includeData", "false")],
        ascending=flags[query.get("ascending", "true")],
        pubsub_topic=query.get("pubsubTopic"),
        content_topics=_comma_list(query.get("contentTopics")),
        start_time_ns=_integer(query.get("startTime")),
        end_time_ns=_integer(query.get("endTime")),
        page_size=_integer(query.get("pageSize")),
        hashes=tuple(map(_unhex, _comma_list(query.get("hashes")))),
        cursor=None if "cursor" not in query else _unhex(query["cursor"]),
        peer_addr=query.get("peerAddr"),
    )


def _store_v1_query(query: dict[str, Any]) -> StoreV1Query:
    return StoreV1Query(
        pubsub_topic=query.get("pubsubTopic"),
        content_topics=_comma_list(query.get("contentTopics")),
        page_size=_integer(query.get("pageSize")),
    )


def _only(body: dict[str, Any], keys: set[str]) -> None:
    if unknown := body.keys() - keys:
        raise KeyError(f"no client sends {unknown}")


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("no client sends this")
    return value


def _comma_list(value: str | None) -> tuple[str, ...]:
    return () if value is None else tuple(value.split(","))


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)


def _unhex(value: str) -> bytes:
    return bytes.fromhex(value.removeprefix("0x"))
