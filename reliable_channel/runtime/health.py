"""What of the transport works, told as events when it changes."""

from collections.abc import Callable, Sequence
from typing import Literal

from ..events import (
    ConnectionStatus,
    ConnectionStatusChanged,
    Event,
    TransportDegraded,
    TransportRecovered,
)

Cause = Literal["failure", "silence"]
"""A call failed; or calls succeed and bring nothing, though there is something."""


class Health:
    """The state of `send`, `receive` and `store`, as far as a channel uses them."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        emit: Callable[[Event], None],
        components: Sequence[str] = ("send", "receive", "store"),
    ) -> None:
        self._now_ms = now_ms
        self._emit = emit
        self._components = components
        self._failing_since_ms: dict[tuple[str, Cause], int] = {}
        self._told: ConnectionStatus = "connected"

    @property
    def degraded(self) -> tuple[str, ...]:
        """The components that fail at the moment."""
        return tuple(sorted({component for component, _ in self._failing_since_ms}))

    @property
    def status(self) -> ConnectionStatus:
        """Whether all components work, some, or none (LIP 173, ConnectionStatus)."""
        degraded = self.degraded
        if not degraded:
            return "connected"
        return "partially_connected" if len(degraded) < len(self._components) else "disconnected"

    def is_failing(self, component: str, cause: Cause = "failure") -> bool:
        """Whether a component fails for this cause."""
        return (component, cause) in self._failing_since_ms

    def failed(self, component: str, reason: str, cause: Cause = "failure") -> None:
        """Note a failure; the first one of a component is told."""
        known = component in self.degraded
        self._failing_since_ms.setdefault((component, cause), self._now_ms())
        if not known:
            self._emit(TransportDegraded(component, reason))
            self._tell_status()

    def succeeded(self, component: str, cause: Cause = "failure") -> int | None:
        """Note a success; return since when (ms) the component had failed, if it had."""
        since_ms = self._failing_since_ms.pop((component, cause), None)
        if since_ms is not None and component not in self.degraded:
            self._emit(TransportRecovered(component, self._now_ms() - since_ms))
            self._tell_status()
        return since_ms

    def _tell_status(self) -> None:
        if self.status != self._told:
            self._told = self.status
            self._emit(ConnectionStatusChanged(self._told))
