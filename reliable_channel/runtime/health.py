"""Health of the transport, with an event for each change."""

from collections.abc import Callable, Sequence
from typing import Literal

from ..diagnostics import (
    NodeHealth,
    NodeHealthChanged,
    NodeState,
    TopicHealth,
    TopicHealthChanged,
    TransportDegraded,
    TransportRecovered,
)
from ..events import AnyEvent, ConnectionStatus, ConnectionStatusChanged
from ..transport.base import Transport

Cause = Literal["failure", "silence"]
"""Cause of a failure, which is a failed call or the silence of calls that should return
messages."""


class Health:
    """Health of `send`, `receive` and `store`, of the topic, and of the nodes. Each part counts as
    healthy until it fails."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        emit: Callable[[AnyEvent], None],
        components: Sequence[str] = ("send", "receive", "store"),
        *,
        content_topic: str,
        enough_nodes: int,
    ) -> None:
        self._now_ms = now_ms
        self._emit = emit
        self._components = components
        self._content_topic = content_topic
        self._enough_nodes = enough_nodes
        self.failing: dict[tuple[str, Cause], int] = {}
        """Time (ms) since when each component has failed, by its cause; open to read."""
        self._reasons: dict[str, str] = {}
        self._nodes: Sequence[NodeHealth] = ()
        self._emitted_status: ConnectionStatus = "connected"
        self._emitted_topic: TopicHealth = "sufficiently_healthy"
        self._emitted_nodes: dict[str, NodeState] = {}

    @property
    def degraded(self) -> tuple[str, ...]:
        """Names of the components that fail now."""
        return tuple(sorted({component for component, _ in self.failing}))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reason for the failure of each component that fails."""
        return tuple(
            f"{component} does not work: {self._reasons[component]}" for component in self.degraded
        )

    @property
    def status(self) -> ConnectionStatus:
        """Connection status, which tells if all components work, or some, or none (LIP 173,
        ConnectionStatus)."""
        degraded = self.degraded
        if not degraded:
            return "connected"
        return "partially_connected" if len(degraded) < len(self._components) else "disconnected"

    @property
    def topic(self) -> TopicHealth:
        """Topic health, which tells if messages arrive through enough nodes, or some, or none (LIP
        168, TopicHealth)."""
        listening = sum(not node.is_away for node in self._nodes)
        if "receive" in self.degraded or (self._nodes and not listening):
            return "unhealthy"
        enough = min(self._enough_nodes, len(self._nodes))
        return "sufficiently_healthy" if listening >= enough else "minimally_healthy"

    def is_failing(self, component: str, cause: Cause = "failure") -> bool:
        """Return True if a component fails for the given cause."""
        return (component, cause) in self.failing

    def failed(self, component: str, reason: str, cause: Cause = "failure") -> None:
        """Note a failure of a component. The first failure of a component emits an event."""
        known = component in self.degraded
        self.failing.setdefault((component, cause), self._now_ms())
        if not known:
            self._reasons[component] = reason
            self._emit(TransportDegraded(component, reason))
            self._emit_changes()

    def succeeded(self, component: str, cause: Cause = "failure") -> int | None:
        """Note a success of a component. Return the time since which the component had failed (ms),
        or None."""
        since_ms = self.failing.pop((component, cause), None)
        if since_ms is not None and component not in self.degraded:
            self._emit(TransportRecovered(component, self._now_ms() - since_ms))
            self._emit_changes()
        return since_ms

    def nodes_are(self, nodes: Sequence[NodeHealth]) -> None:
        """Note the states of the nodes, and emit an event for each change. A node that was not
        tried yet does not count as a change."""
        self._nodes = nodes
        for node in nodes:
            untried = node.state == "unsubscribed" and not node.is_away
            if not untried and node.state != self._emitted_nodes.get(node.address, "healthy"):
                self._emitted_nodes[node.address] = node.state
                reason = "" if node.state == "healthy" else node.last_error
                self._emit(NodeHealthChanged(node.address, node.state, reason))
        self._emit_changes()

    def _emit_changes(self) -> None:
        if self.status != self._emitted_status:
            self._emitted_status = self.status
            self._emit(ConnectionStatusChanged(self._emitted_status))
        if self.topic != self._emitted_topic:
            self._emitted_topic = self.topic
            self._emit(TopicHealthChanged(self._content_topic, self._emitted_topic))


async def watch_nodes(transport: Transport, health: Health) -> None:
    """Pass the states of the nodes to `health`, now and after each change, until cancelled."""
    while True:
        health.nodes_are(transport.nodes())
        await transport.nodes_changed()
