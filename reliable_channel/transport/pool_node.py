"""State of one node of a pool, in sending, receiving and Store."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from ..diagnostics import NodeHealth, NodeState
from .base import Transport

MAX_RETRY_S: Final = 10.0


@dataclass(slots=True)
class Service:
    """State of a node in one service, which is sending, receiving or Store."""

    changed: Callable[[], None]
    """Function that is called when the service begins to fail, and when it recovers."""
    error: str = ""
    failures: int = 0
    changed_at_s: float = 0
    retry_at_s: float = 0

    def failed(self, error: Exception, retry_s: float) -> None:
        """Note a failure of the service. The node is skipped for this service for `retry_s`
        seconds."""
        now_s = anyio.current_time()
        if not self.failures:
            self.changed_at_s = now_s
        self.error = str(error)
        self.retry_at_s = now_s + min(retry_s * 2.0 ** min(self.failures, 10), MAX_RETRY_S)
        self.failures += 1
        if self.failures == 1:
            self.changed()

    def succeeded(self) -> None:
        if self.failures:
            self.failures, self.retry_at_s = 0, 0.0
            self.changed_at_s = anyio.current_time()
            self.changed()


@dataclass(slots=True, eq=False)
class Node:
    """Node of a pool with its state."""

    address: str
    transport: Transport
    changed: Callable[[], None]
    """Function that is called when the state of the node may have changed."""
    send: Service = field(init=False)
    receive: Service = field(init=False)
    store: Service = field(init=False)
    listening: anyio.CancelScope = field(init=False)
    """Cancel scope of the task that reads from the node. The scope is cancelled before the
    transport is closed."""
    closed: anyio.Event = field(init=False)
    open: bool = False
    covered_since_s: float | None = None
    """Time since which this node has missed no message. The time is None while the node is away."""
    last_look_s: float = 0

    def __post_init__(self) -> None:
        self.send, self.receive, self.store = (Service(self.changed) for _ in range(3))

    def begin(self) -> None:
        """Start to measure how long the node is in its state."""
        self.listening, self.closed = anyio.CancelScope(), anyio.Event()
        for service in (self.send, self.receive, self.store):
            service.changed_at_s = anyio.current_time()

    def looked(self) -> None:
        """Note a successful read from the node. Other failures of the outage are cleared, because
        the outage may have caused them."""
        if self.receive.failures:
            self.send.succeeded()
            self.store.succeeded()
        self.receive.succeeded()

    @property
    def listens(self) -> bool:
        """True if the node receives messages, as far as is known."""
        return self.open and not self.receive.failures

    def is_passed_over(self, service: str, now_s: float) -> bool:
        """Return True if the node is away, or this service of the node failed a short time ago."""
        return not self.listens or bool(getattr(self, service).retry_at_s > now_s)

    @property
    def answers(self) -> bool:
        """True if the Store of the node answers, as far as is known."""
        return self.listens and not self.store.failures

    @property
    def mislabelled(self) -> int:
        """Number of messages from the node's Store that were not requested."""
        return int(getattr(self.transport, "mislabelled", 0))

    def health(self) -> NodeHealth:
        """Return the state of the node for `statistics()`."""
        failing = [s for s in (self.receive, self.send, self.store) if s.failures]
        state: NodeState = "failing" if failing else "healthy"
        if not self.listens:
            state = "unsubscribed"
        services = failing or (self.receive, self.send, self.store)
        changed_at_s = max(service.changed_at_s for service in services)
        errors = [s for s in (self.receive, self.send, self.store) if s.error]
        last = max(errors, key=lambda s: (s.failures > 0, s.changed_at_s), default=None)
        return NodeHealth(
            self.address,
            state,
            last.error if last else "",
            round(1000 * (anyio.current_time() - changed_at_s)),
            self.mislabelled,
            str(getattr(self.transport, "api", "")),
        )
