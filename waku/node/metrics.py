"""`GET /metrics`: the figures of a node, in the text format that Prometheus reads.

Where nwaku has a metric of the same meaning (on its port for metrics, 8008), it has nwaku's name
and labels. Counting is one dictionary entry a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from waku.node.http import Answer, Request, Route, ServedNode

__all__ = ["METRICS", "Metrics", "metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
RELAY: Final = "/vac/waku/relay/2.0.0"

METRICS: Final = {
    "waku_version": ("gauge", "Version of the node."),
    "waku_node_messages_total": ("counter", "Messages that reached the node for the first time."),
    "waku_connected_peers": ("gauge", "Connected nodes that relay."),
    "waku_filter_subscriptions": ("gauge", "Clients with a filter subscription."),
    "waku_archive_messages": ("gauge", "Messages in the Store."),
    "waku_archive_size_bytes": ("gauge", "Size of the Store; not a metric of nwaku."),
    "waku_archive_ready": ("gauge", "1 while the Store can be written; not a metric of nwaku."),
    "waku_service_network_bytes_total": ("counter", "Bytes of requests and answers."),
    "waku_rest_requests_total": (
        "counter",
        "Requests by route and status; not a metric of nwaku.",
    ),
}
"""Kind and description of each; the documentation and the board are checked against them."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Sample = tuple[str, dict[str, str], int]


class Metrics:
    """What one node has counted since it began."""

    def __init__(self) -> None:
        self.messages = 0
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.bytes: Counter[str] = Counter()

    def answered(self, route: Route | None, request_bytes: int, answer: Answer) -> None:
        """Count a request; those without a route are counted together."""
        method, path = ("", "other") if route is None else (route.method, route.path)
        self.requests[method, path, answer.status] += 1
        self.bytes["in"] += request_bytes
        self.bytes["out"] += len(answer.body)


async def metrics(node: ServedNode, request: Request) -> Answer:
    """GET /metrics."""
    from waku.node.http import Answer

    return Answer(200, _text(_samples(node)).encode(), CONTENT_TYPE)


def _samples(node: ServedNode) -> Iterator[Sample]:
    counted = node.metrics
    yield "waku_version", {"version": node.agent}, 1
    yield "waku_node_messages_total", {"type": "relay"}, counted.messages
    yield "waku_connected_peers", {"protocol": RELAY}, len(node.relay_peers())
    yield "waku_filter_subscriptions", {}, len(node.filter.criteria_by_peer())
    if (archive := node.archive) is not None:
        yield "waku_archive_messages", {"type": "stored"}, len(archive)
        yield "waku_archive_size_bytes", {}, archive.size_bytes
        yield "waku_archive_ready", {}, archive.problem is None
    for direction in ("in", "out"):
        labels = {"service": "rest", "direction": direction}
        yield "waku_service_network_bytes_total", labels, counted.bytes[direction]
    for (method, path, status), count in counted.requests.items():
        labels = {"method": method, "route": path, "status": str(status)}
        yield "waku_rest_requests_total", labels, count


def _text(samples: Iterable[Sample]) -> str:
    lines, described = [], ""
    for name, labels, value in samples:
        if name != described:
            kind, description = METRICS[name]
            lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]
            described = name
        shown = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
        lines.append(f"{name}{{{shown}}} {value:d}")
    return "\n".join(lines) + "\n"
