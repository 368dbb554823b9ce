"""The requests that were recorded against real nwaku nodes, replayed against embedded ones.

The nodes are those of the recordings: a has every service on a static cluster, b is an edge node
that a serves, c relays with a; d and e share a cluster with autosharding. Their clocks show the
recorded times, and what was published outside the recordings is published again, so that messages,
hashes and pages can be compared exactly. What cannot be equal (names, addresses, counts of peers
that speak other protocols) is compared by type.
"""

from __future__ import annotations

import base64
import json
import tomllib
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import anyio
import httpx

from waku import WakuMessage
from waku.node import EmbeddedNode, NodeOptions

RECORDINGS: Final = Path(__file__).parents[2] / "vectors" / "data" / "nwaku-rest"
DIFFERENCES: Final = Path(__file__).parent / "differences.toml"

FILES: Final = (
    "health",
    "debug",
    "relay",
    "store",
    "lightpush",
    "filter",
    "admin",
    "relay_auto",
    "cors_admin_off",
    "crash_negative_version",
)
"""In an order that gives each file what it presupposes."""

PEER_IDS: Final = {
    "a": "16Uiu2HAmHzBkRq62mG95vsjKMuYQBezZCtjPXYWUoyVxMxi71aB3",
    "b": "16Uiu2HAkzAbMrvCbnbeGML8nXZ1XCbVjyphcMGMGQL4vwpUHbxVc",
    "c": "16Uiu2HAkyVds6zuDgExN2UUKQmgte5eNLm3RVz6gexFWAdHiBawr",
}
SHARD: Final = "/waku/2/rs/66/0"
CHANNELS: Final = ("/sds/1/chan-a/proto", "/sds/1/chan-b/proto")

ALLOWED_ORIGIN: Final = "http://localhost:3000"
ORIGINS: Final = {
    "cors_admin_off-0": ALLOWED_ORIGIN,
    "cors_admin_off-1": ALLOWED_ORIGIN,
    "cors_admin_off-2": ALLOWED_ORIGIN,
    "cors_admin_off-3": "http://elsewhere.example",
    "cors_admin_off-4": ALLOWED_ORIGIN,
}
"""The header was not recorded; the answers tell what it was."""

CLOCK: Final = {
    "relay-0": 1795231106225750272,
    "relay-28": 1795231106227594496,
    "store-0": 1795231110500000000,
    "lightpush-0": 1795231114800000000,
    "filter-0": 1795231117500000000,
    "relay_auto-0": 1795231126000000000,
}
"""The nodes' time from a request on; two are the times that nwaku stamped messages with."""

COMPARED_HEADERS: Final = (
    "access-control-allow-headers",
    "access-control-allow-origin",
    "vary",
)
BY_TYPE: Final = frozenset(
    {"agent", "enrUri", "listenAddresses", "multiaddr", "peerId", "protocols", "score"}
)
UNORDERED: Final = frozenset({"filterCriteria", "shards"})


@dataclass(frozen=True)
class Recording:
    """A request, and what nwaku answered; `status` None: it ended."""

    name: str
    node: str
    request: dict[str, Any]
    status: int | None
    headers: dict[str, str]
    body: Any
    body_note: str | None
    note: str = ""

    def content(self) -> bytes | None:
        """Return the body that was sent."""
        body = self.request["body"]
        if body is None or isinstance(body, str):
            return None if body is None else body.encode()
        text = json.dumps(body)
        if self.body_note is not None:
            assert self.body_note.startswith("payload is base64 of 160002 bytes 'z'")
            text = text.replace("<cut>", base64.b64encode(b"z" * 160_002).decode())
        return text.encode()


@dataclass(frozen=True)
class Difference:
    """One way in which our answer is not the recorded one."""

    where: str
    recorded: object
    ours: object

    def __str__(self) -> str:
        return f"{self.where}: nwaku {_shortened(self.recorded)}, we {_shortened(self.ours)}"


@cache
def recordings() -> tuple[Recording, ...]:
    found = []
    for file in FILES:
        for index, entry in enumerate(json.loads((RECORDINGS / f"{file}.json").read_text())):
            response = entry["response"]
            found.append(
                Recording(
                    name=f"{file}-{index}",
                    node=entry["node"],
                    request=entry["request"],
                    status=response["status"],
                    headers=response["headers"],
                    body=response["body"],
                    body_note=entry.get("body_note"),
                    note=entry.get("note", ""),
                )
            )
    return tuple(found)


@dataclass(frozen=True)
class Listed:
    """A difference that we know of, and why it stays."""

    recordings: tuple[str, ...]
    request: str
    nwaku: str
    here: str
    reason: str


@cache
def listed_differences() -> tuple[Listed, ...]:
    groups = tomllib.loads(DIFFERENCES.read_text())["difference"]
    return tuple(Listed(tuple(group.pop("recordings")), **group) for group in groups)


def differences_table() -> str:
    """Return the list as the table in `docs/node.md`."""
    heads = "request | answer of nwaku | answer of the embedded node | reason | recordings"
    lines = [f"| {heads} |", "|---|---|---|---|---|"]
    for listed in listed_differences():
        names = ", ".join(f"`{name}`" for name in listed.recordings)
        cells = (listed.request, listed.nwaku, listed.here, listed.reason, names)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@cache
def replay(backend: str = "asyncio") -> dict[str, tuple[Difference, ...]]:
    """Replay everything; return what differs, by the name of the recording."""
    return anyio.run(_replay, backend=backend)


async def _replay() -> dict[str, tuple[Difference, ...]]:
    async with AsyncExitStack() as stack:
        world = await World.build(stack)
        found = {}
        for recording in recordings():
            await world.prepare(recording.name)
            answer = await world.ask(recording)
            found[recording.name] = tuple(_compare(recording, answer))
        return found


@dataclass
class World:
    """The five nodes, and how to reach them."""

    now_ns: int = min(CLOCK.values())
    nodes: dict[str, EmbeddedNode] = field(default_factory=dict)

    @classmethod
    async def build(cls, stack: AsyncExitStack) -> World:
        world = cls()
        for name, options in world.options().items():
            node = EmbeddedNode(options)
            node.peer_id = PEER_IDS.get(name, node.peer_id)
            world.nodes[name] = await stack.enter_async_context(node)
        return world

    def options(self) -> dict[str, NodeOptions]:
        def clock() -> int:
            return self.now_ns

        options = partial(
            NodeOptions, now_ns=clock, self_service=False, store_timestamp_tolerance_s=20
        )
        static: dict[str, Any] = {"cluster_id": 66, "static_sharding": True}
        bare: dict[str, Any] = {"store": False, "filter": False, "lightpush": False}
        return {
            "a": options(**static, shards=(0, 1)),
            "b": options(**static, shards=(), relay=False, **bare),
            "c": options(**static, shards=(0,), **bare),
            "d": options(cluster_id=67, allow_origins=(ALLOWED_ORIGIN,)),
            "e": options(cluster_id=67, admin=False, **bare),
        }

    async def prepare(self, name: str) -> None:
        """Do what was done before a request without being recorded."""
        self.now_ns = CLOCK.get(name, self.now_ns)
        a, b, c, d, e = (self.nodes[name] for name in "abcde")
        match name:
            case "health-1":
                a.join(c)
            case "health-2":
                a.join(b)
                d.join(e)
            case "admin-16":
                b.join(c)  # what the request is recorded to do; a known peer is not dialled again
            case "store-0":
                for message in _published(range(100, 135), 1795231110465902549, meta_each=5):
                    a.publish(SHARD, message)
            case "filter-5":
                for message in _filtered():
                    a.publish(SHARD, message)

    async def ask(self, recording: Recording) -> httpx.Response:
        request = recording.request
        headers = {}
        if request["content-type"] is not None:
            headers["content-type"] = request["content-type"]
        if recording.name in ORIGINS:
            headers["origin"] = ORIGINS[recording.name]
        transport = httpx.ASGITransport(app=self.nodes[recording.node].app)
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
            return await client.request(
                request["method"],
                request["path"],
                params=request["query"] or None,
                headers=headers,
                content=recording.content(),
            )


def _published(numbers: range, first_ns: int, *, meta_each: int) -> Iterator[WakuMessage]:
    """Return the messages that filled the store; their hashes are those of the recordings."""
    for place, number in enumerate(numbers):
        yield WakuMessage(
            b"payload-%d" % number,
            CHANNELS[place % 3 == 2],
            timestamp=first_ns + place * 1_000_000,
            meta=b"m%d" % number if place % meta_each == 0 else b"",
        )


def _filtered() -> Iterator[WakuMessage]:
    """Return the messages that the filter subscription of the recordings was pushed."""
    for place, (channel, meta) in enumerate(((0, b""), (1, b""), (0, b"fm"))):
        yield WakuMessage(
            b"payload-%d" % (300 + place),
            CHANNELS[channel],
            timestamp=1795231117450012431 + place * 1_000_000,
            meta=meta,
        )


def _compare(recording: Recording, answer: httpx.Response) -> Iterator[Difference]:
    if recording.status is None:
        yield Difference("answer", recording.body.partition(":")[0], answer.status_code)
        return
    if answer.status_code != recording.status:
        yield Difference("status", recording.status, answer.status_code)
    for name in ("content-type", *COMPARED_HEADERS):
        recorded = recording.headers.get(name)
        if answer.headers.get(name) != recorded:
            yield Difference(name, recorded, answer.headers.get(name))
    is_json = answer.headers["content-type"] == "application/json"
    ours = answer.json() if is_json and answer.content else answer.text
    yield from _compare_values("body", recording, recording.body, ours)


def _compare_values(
    where: str, recording: Recording, recorded: Any, ours: Any
) -> Iterator[Difference]:
    if type(recorded) is not type(ours):
        yield Difference(where, recorded, ours)
    elif isinstance(recorded, dict):
        for key in sorted(recorded.keys() | ours.keys()):
            if key not in recorded or key not in ours:
                yield Difference(f"{where}.{key}", recorded.get(key), ours.get(key))
            elif key not in BY_TYPE:
                yield from _compare_values(f"{where}.{key}", recording, recorded[key], ours[key])
            elif type(recorded[key]) is not type(ours[key]):
                yield Difference(f"{where}.{key}", recorded[key], ours[key])
    elif isinstance(recorded, list):
        key = where.rpartition(".")[2]
        if key in UNORDERED or recording.name.startswith("admin-"):
            recorded, ours = sorted(recorded, key=_order), sorted(ours, key=_order)
        if len(recorded) != len(ours):
            yield Difference(where, recorded, ours)
            return
        for index, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            yield from _compare_values(f"{where}[{index}]", recording, one, other)
    elif not _equal(where, recording, recorded, ours):
        yield Difference(where, recorded, ours)


def _equal(where: str, recording: Recording, recorded: Any, ours: Any) -> bool:
    if where == "body" and recording.request["path"].endswith("/version"):
        return bool(ours)
    if where == "body.requestId" and recording.name.startswith("store-"):
        return len(recorded) == len(ours)
    if recording.request["path"].endswith("/peers/stats"):
        return True  # numbers of other peers
    return bool(recorded == ours)


def _order(value: Any) -> str:
    """Return what unordered items are sorted by: all that is compared by value."""
    if isinstance(value, dict):
        value = {
            key: sorted(item, key=_order) if key in UNORDERED else item
            for key, item in sorted(value.items())
            if key not in BY_TYPE
        }
    return repr(value)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}…"
