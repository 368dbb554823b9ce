"""What a node counts, and the text format in which Prometheus reads it.

Where nwaku has a metric of the same meaning (on its port for metrics, 8008), it has nwaku's name
and labels. Counting is one dictionary entry a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

__all__ = ["METRICS", "Metrics", "Sample", "prometheus_text"]

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

    def answered(
        self, method: str, route: str, status: int, *, request_bytes: int, answer_bytes: int
    ) -> None:
        """Count a request. `route` is that of the API, not the path, whose values have no end."""
        self.requests[method, route, status] += 1
        self.bytes["in"] += request_bytes
        self.bytes["out"] += answer_bytes


def prometheus_text(samples: Iterable[Sample]) -> str:
    """Samples as a page; those of one metric come together."""
    lines, described = [], ""
    for name, labels, value in samples:
        if name != described:
            kind, description = METRICS[name]
            lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]
            described = name
        shown = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
        lines.append(f"{name}{{{shown}}} {value:d}")
    return "\n".join(lines) + "\n"
