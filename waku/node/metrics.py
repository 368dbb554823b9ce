"""Metrics of a node, and their text format for Prometheus.

A metric with the same meaning as a metric of nwaku (port 8008) has the same name and labels.
Counting a request costs one dictionary entry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

__all__ = ["METRICS", "Metrics", "Sample", "prometheus_text"]

METRICS: Final = {
    "waku_version": ("gauge", "Version of the node."),
    "waku_node_messages_total": ("counter", "Messages that reached the node for the first time."),
    "waku_histogram_message_size": ("histogram", "Payload of these messages in kB."),
    "waku_connected_peers": ("gauge", "Connected nodes that relay."),
    "waku_peer_store_size": ("gauge", "Nodes that are connected, or dialled until they answer."),
    "waku_service_peers": ("gauge", "Named service nodes that answered, by what they serve."),
    "libp2p_peers": ("gauge", "Connected nodes."),
    "libp2p_total_dial_attempts_total": ("counter", "Attempts to dial a peer."),
    "libp2p_successful_dials_total": ("counter", "Those that a peer answered."),
    "libp2p_failed_dials_total": ("counter", "Those that failed."),
    "libp2p_pubsub_peers": ("gauge", "Connected nodes, where this one relays."),
    "libp2p_pubsub_topics": ("gauge", "Pubsub topics that are followed."),
    "libp2p_pubsub_subscriptions_total": ("counter", "Pubsub topics that were begun to follow."),
    "libp2p_gossipsub_peers_per_topic_mesh": (
        "gauge",
        "Peers in the meshes of followed topics, all topics together.",
    ),
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
"""Type and description of each metric. Tests compare the documentation and the Grafana board with
this table."""
KB: Final = 1000
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
MESSAGE_SIZES_KB: Final = (0, 1, 3, 5, 15, 50, 75, 100, 125, 150, 500, 700, 1000)
"""Upper limits of the message size classes (kB), as in nwaku. The last class has no upper limit."""
Sample = tuple[str, dict[str, str], float]


class Metrics:
    """Counters of one node, from its start on."""

    def __init__(self) -> None:
        self.messages = 0
        self.payload_bytes = 0
        self.followed_topics = 0
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.bytes: Counter[str] = Counter()
        self._sizes = [0] * (len(MESSAGE_SIZES_KB) + 1)

    def message(self, payload_bytes: int) -> None:
        """Count a message that reached the node for the first time."""
        self.messages += 1
        self.payload_bytes += payload_bytes
        self._sizes[bisect_left(MESSAGE_SIZES_KB, payload_bytes / KB)] += 1

    def message_sizes(self) -> Iterator[Sample]:
        """Return the message sizes as a Prometheus histogram. Each size class also counts all
        smaller messages."""
        name = "waku_histogram_message_size"
        bounds = [f"{bound:.1f}" for bound in MESSAGE_SIZES_KB]
        for bound, count in zip((*bounds, "+Inf"), accumulate(self._sizes), strict=True):
            yield f"{name}_bucket", {"le": bound}, count
        yield f"{name}_sum", {}, self.payload_bytes / KB
        yield f"{name}_count", {}, self.messages

    def answered(
        self, method: str, route: str, status: int, *, request_bytes: int, answer_bytes: int
    ) -> None:
        """Count an answered request. `route` is the route in the API, because the number of
        different paths has no limit."""
        self.requests[method, route, status] += 1
        self.bytes["in"] += request_bytes
        self.bytes["out"] += answer_bytes


def prometheus_text(samples: Iterable[Sample]) -> str:
    """Return the samples as a page in Prometheus format, grouped by metric."""
    lines, described = [], ""
    for name, labels, value in samples:
        metric = name if name in METRICS else name.rpartition("_")[0]  # a part of a histogram
        if metric != described:
            kind, description = METRICS[metric]
            lines += [f"# HELP {metric} {description}", f"# TYPE {metric} {kind}"]
            described = metric
        shown = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
        lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")
    return "\n".join(lines) + "\n"
