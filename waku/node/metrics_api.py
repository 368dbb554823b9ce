"""REST operation `GET /metrics` with the metrics of a node for Prometheus. nwaku serves its metrics
on a separate port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from waku.node.http import Request, Response, Route, ServedNode
from waku.node.metrics import Sample, prometheus_text

__all__ = ["CONTENT_TYPE", "ROUTES", "figures"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
RELAY: Final = "/vac/waku/relay/2.0.0"


async def metrics(node: ServedNode, request: Request) -> Response:
    return Response(200, figures(node), CONTENT_TYPE)


def figures(node: ServedNode) -> bytes:
    """Return the page of metrics, for a server with a separate metrics port, as nwaku has."""
    return prometheus_text(_samples(node)).encode()


def _samples(node: ServedNode) -> Iterator[Sample]:
    counted = node.metrics
    yield "waku_version", {"version": node.agent}, 1
    yield "waku_node_messages_total", {"type": "relay"}, counted.messages
    yield from counted.message_sizes()
    yield "waku_connected_peers", {"protocol": RELAY}, len(node.relay_peers())
    yield from _peers(node)
    yield "waku_filter_subscriptions", {}, len(node.filter.criteria_by_peer())
    if (archive := node.archive) is not None:
        yield "waku_archive_messages", {"type": "stored"}, len(archive)
        yield "waku_archive_size_bytes", {}, archive.size_bytes
        yield "waku_archive_ready", {}, int(archive.problem is None)
    for direction in ("in", "out"):
        labels = {"service": "rest", "direction": direction}
        yield "waku_service_network_bytes_total", labels, counted.bytes[direction]
    for (method, path, status), count in counted.requests.items():
        labels = {"method": method, "route": path, "status": str(status)}
        yield "waku_rest_requests_total", labels, count


def _peers(node: ServedNode) -> Iterator[Sample]:
    yield "waku_peer_store_size", {}, len(node.mesh.links)
    for protocol, address in node.service_nodes.named_peers():
        yield "waku_service_peers", {"protocol": protocol, "peerId": address}, 1
    connected = len(node.mesh.peers())
    yield "libp2p_peers", {}, connected
    dials = node.dials
    yield "libp2p_total_dial_attempts_total", {}, sum(dials.values())
    yield "libp2p_successful_dials_total", {}, dials.get(True, 0)
    yield "libp2p_failed_dials_total", {}, dials.get(False, 0)
    # nim-libp2p takes every connected peer for one of pubsub, whether it relays or not.
    yield "libp2p_pubsub_peers", {}, connected if node.options.relay else 0
    topics = node.relay.pubsub_topics
    yield "libp2p_pubsub_topics", {}, len(topics)
    yield "libp2p_pubsub_subscriptions_total", {}, node.metrics.followed_topics
    in_meshes = sum(len(node.mesh_peers(topic)) for topic in topics)
    yield "libp2p_gossipsub_peers_per_topic_mesh", {"topic": "other"}, in_meshes


ROUTES: Final = (Route("GET", "/metrics", metrics, "Return figures for Prometheus", "node"),)
