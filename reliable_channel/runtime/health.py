"""What of the transport works, told as events when it changes."""

from collections.abc import Callable

from ..events import Event, TransportDegraded, TransportRecovered


class Health:
    """The state of `send`, `receive` and `store`."""

    def __init__(self, now_ms: Callable[[], int], emit: Callable[[Event], None]) -> None:
        self._now_ms = now_ms
        self._emit = emit
        self._failing_since_ms: dict[str, int] = {}

    @property
    def degraded(self) -> tuple[str, ...]:
        """The components that fail at the moment."""
        return tuple(sorted(self._failing_since_ms))

    def failed(self, component: str, reason: str) -> None:
        """Note a failure; the first one of a component is told."""
        if component not in self._failing_since_ms:
            self._failing_since_ms[component] = self._now_ms()
            self._emit(TransportDegraded(component, reason))

    def succeeded(self, component: str) -> int | None:
        """Note a success; return since when (ms) the component had failed, if it had."""
        since_ms = self._failing_since_ms.pop(component, None)
        if since_ms is not None:
            self._emit(TransportRecovered(component, self._now_ms() - since_ms))
        return since_ms
