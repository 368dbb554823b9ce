"""Driver of an engine, which processes one input with all its consequences, in one order.

A channel drives its engine with this class, and a simulation does so too. A channel and a
simulation each define how to show events, wake tasks and keep time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, TypeVarTuple

from ..events import AnyEvent
from .engine import Engine
from .logged import Logged
from .requests import Accepted
from .steps import Step, Wake
from .sync_core import Arrival

Ts = TypeVarTuple("Ts")
M = TypeVar("M")
"""Type of a received transport message."""
TOLERANCE_NS = 1_000_000_000
"""A clock may fall behind the passed time by this much. It may be slowed down, or the two clocks
may not be read at one moment."""


class MonotonicWallClock:
    """A clock that does not follow the wall clock back: it then advances with the passed time. It
    follows the wall clock forward, as when a computer wakes up.

    The core plans with wall-clock times, because they outlive a restart. If the clock were set back
    by three hours, all planned retries and sync messages would be three hours late.
    """

    def __init__(self, wall_ns: Callable[[], int], monotonic_ns: Callable[[], int]) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._ahead_ns = 0
        """By how much this clock is ahead of the wall clock."""
        self._apart_ns = wall_ns() - monotonic_ns()
        """How much more this clock showed than the passed time, when it was read last."""

    def __call__(self) -> int:
        """The time in nanoseconds since 1970."""
        monotonic_ns, now_ns = self._monotonic_ns(), self._wall_ns() + self._ahead_ns
        behind_ns = monotonic_ns + self._apart_ns - now_ns
        if behind_ns > TOLERANCE_NS:
            self._ahead_ns += behind_ns
            now_ns += behind_ns
        self._apart_ns = now_ns - monotonic_ns
        return now_ns


class Driver(ABC, Generic[M]):
    """Driver that passes inputs to an engine and executes the consequences of each input.

    No method of the driver waits. A step is therefore complete between two awaits of any task, and
    between two moments of a simulation.
    """

    def __init__(self, engine: Engine, now_ns: Callable[[], int]) -> None:
        self.engine = engine
        self.now_ns = now_ns
        self.wakes: dict[Wake, Callable[[], object]] = {}
        """Functions that wake the tasks of the channel."""
        self.rings_at_ms: int | None = None
        """Time (ms) of the earliest planned call of `on_deadline`, or None."""
        self.note_sent: Callable[[bytes, Accepted], None] | None = None
        """Observer of accepted messages, before any event of the step is shown."""
        self.note_received: Callable[[bytes, M, Arrival, int, bool], None] | None = None
        """Observer of received messages, before any event of the step is shown. Its arguments are
        data, message, arrival, time (ms), and True for a message from Store."""
        self.note_confirmed: Callable[[AnyEvent], None] | None = None
        """Observer of confirmed events, whose step waits to be written."""
        self.note_step: Callable[[], None] | None = None
        """Observer of the end of each step."""

    def now_ms(self) -> int:
        """Return the current time (ms)."""
        return self.now_ns() // 1_000_000

    # -- from the application ----------------------------------------------------------------------

    def send(
        self, payload: bytes, segments: Sequence[bytes], idempotency_key: str | None = None
    ) -> Accepted:
        """Accept a message of the application. `segments` is the result of `Engine.split` for the
        payload."""
        now_ns = self.now_ns()
        accepted, step = self.engine.send(segments, now_ns, idempotency_key)
        if self.note_sent is not None:
            self.note_sent(payload, accepted)
        self.end(step, now_ns // 1_000_000)
        return accepted

    def send_ephemeral(self, content: bytes) -> str:
        """Accept an ephemeral message, and return its id."""
        now_ns = self.now_ns()
        message_id, step = self.engine.send_ephemeral(content, now_ns)
        self.end(step, now_ns // 1_000_000)
        return message_id

    def cancel(self, message_ids: Sequence[str]) -> bool:
        """Stop publishing and retrying the messages of a request. Return True if the request was
        pending."""
        now_ms = self.now_ms()
        was_pending, step = self.engine.cancel(message_ids, now_ms)
        self.end(step, now_ms)
        return was_pending

    def confirm(self, event: AnyEvent) -> None:
        """Note that the application has handled an event."""
        if (step := self.engine.confirm(event)) is not None:
            if self.note_confirmed is not None:
                self.note_confirmed(event)
            for wake in step.wakes:
                self.wakes[wake]()

    # -- from the transport and from Store ---------------------------------------------------------

    def received(
        self,
        data: bytes,
        arrived: M,
        *,
        message_hash: bytes,
        timestamp_ns: int,
        from_store: bool,
    ) -> Arrival:
        """Process a message that the transport received. `data` is the decrypted payload of the
        message."""
        now_ms = self.now_ns() // 1_000_000
        arrival, step = self.engine.receive(
            data,
            now_ms,
            message_hash=message_hash,
            timestamp_ns=timestamp_ns,
            from_store=from_store,
        )
        if self.note_received is not None:
            self.note_received(data, arrived, arrival, now_ms, from_store)
        self.end(step, now_ms)
        return arrival

    # -- turns -------------------------------------------------------------------------------------

    def turn(self, method: Callable[[*Ts, int], Step], *arguments: *Ts) -> None:
        """Call an input method of the engine with the arguments and the time (ms), and end the
        step."""
        now_ms = self.now_ns() // 1_000_000
        self.end(method(*arguments, now_ms), now_ms)

    def finish(self) -> None:
        """End a step that had no input, for example after messages were taken or Store was
        queried."""
        now_ms = self.now_ms()
        self.end(self.engine.step(now_ms), now_ms)

    def end(self, step: Step, now_ms: int) -> None:
        """Show due events, wake tasks that have work, and plan the next deadline. If a
        step must be written, it ends again when `Engine.end_write` has returned the step."""
        if step.is_due:
            for event in step.events:
                self.show(event, now_ms)
            if step.outgoing:
                self.wakes[Wake.SEND]()
        for wake in step.wakes:
            self.wakes[wake]()
        due_ms, rings_at_ms = step.due_ms, self.rings_at_ms
        if due_ms is not None and (rings_at_ms is None or due_ms < rings_at_ms):
            self.rings_at_ms = due_ms
            self.ring_at(due_ms, now_ms)
        if self.note_step is not None:
            self.note_step()

    # -- what a channel and a simulation add -------------------------------------------------------

    @abstractmethod
    def show(self, event: AnyEvent | Logged, now_ms: int) -> None:
        """Show an event to the journal, the observers and the readers, in this order."""

    @abstractmethod
    def ring_at(self, due_ms: int, now_ms: int) -> None:
        """Plan a call of `on_deadline` at `due_ms`, earlier than the planned one."""
