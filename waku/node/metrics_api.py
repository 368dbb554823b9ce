"""`GET /metrics`: the figures of a node for Prometheus. nwaku has a separate port for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from waku.node.http import Answer, Request, Route, ServedNode
from waku.node.metrics import Sample, prometheus_text

__all__ = ["ROUTES"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
RELAY: Final = "/vac/waku/relay/2.0.0"


async def metrics(node: ServedNode, request: Request) -> Answer:
    """GET /metrics."""
    return Answer(200, prometheus_text(_samples(node)).encode(), CONTENT_TYPE)


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


ROUTES: Final = (Route("GET", "/metrics", metrics, "Return figures for Prometheus", "node"),)
