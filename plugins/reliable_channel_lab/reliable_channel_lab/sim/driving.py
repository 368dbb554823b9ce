"""Driver of an engine in virtual time, like `runtime/driver.py` in real time."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic

from reliable_channel.diagnostics import SegmentDiscarded
from reliable_channel.engine import driver
from reliable_channel.engine.engine import Engine
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.requests import Accepted
from reliable_channel.engine.steps import Step, Wake
from reliable_channel.events import (
    AnyEvent,
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    PayloadDropped,
    SendFailed,
)
from reliable_channel.sds.receiving import Arrival

from .network import Packet
from .world import C, Node, Observer, World

CONFIRMABLE: Final = (
    MessageReceived,
    MessageAcknowledged,
    DeliveryFailed,
    SendFailed,
    MessageLost,
    PayloadDropped,
    SegmentDiscarded,
)
_Call = tuple[int, Callable[..., None], tuple[Any, ...]]


def _ignore() -> None:
    """Wake nothing."""


class SimulatedDriver(driver.Driver[Packet], Generic[C]):
    """Driver of an engine in virtual time, which reports each step to a watch.

    Each task of the engine sets its own alarm. When `is_over` is True, planned actions no longer
    happen.
    """

    def __init__(
        self,
        name: str,
        world: World[C],
        node: Node,
        watch: Observer[C],
        core: C,
        engine: Engine,
        *,
        now_ns: Callable[[], int],
        wall_ns: Callable[[], int],
    ) -> None:
        super().__init__(engine, now_ns)
        self.name = name
        self.world = world
        self.node = node
        self.watch = watch
        self.core = core
        self.wall_ns = wall_ns
        self.journal = None if world.journals is None else world.journals(name)
        self.is_over = False
        self.wakes: dict[Wake, Callable[[], None]] = {}
        """What wakes each task."""
        self.has_in_hand: Callable[[str], bool] = lambda _: False
        """True if an own message is on its way to the node."""
        self._rings_at_ms: int | None = None
        self.tell: Callable[[AnyEvent], None] | None = None
        """Takes what the application must not miss, where it can confirm."""
        self._notes: deque[_Call] = deque()
        """What the watch learns when the step of that number is on disk."""
        self._calls: deque[_Call] = deque()
        """What waits until the steps up to a number are on disk."""

    def note(self, what: str) -> None:
        """Write a line of text to the trace."""
        self.world.trace.note(self.world.timeline.now_ms, self.name, what)

    def plan(self, in_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        """Plan an action for the lifetime of the process."""
        timeline = self.world.timeline
        timeline.at(timeline.now_ms + in_ms, self._act, action, arguments)

    def take(self, arrived: Packet, *, from_store: bool = False) -> Arrival:
        """Receive a message from the network or from Store. A message that was handled before is
        skipped."""
        # The watch sees own messages that come back, so these are not skipped.
        if (known := self.engine.repeated(arrived.message_hash, is_live=False)) is not None:
            return Arrival(known)
        return self.received(
            arrived.data,
            arrived,
            message_hash=arrived.message_hash,
            timestamp_ns=arrived.timestamp_ms * 1_000_000,
            from_store=from_store,
        )

    # -- steps -------------------------------------------------------------------------------------

    def end(self, step: Step, now_ms: int) -> None:
        """End a step of the engine, and let the watch check the core."""
        super().end(step, now_ms)
        self.watch.stepped(self.core, self.now_ms(), self._waits_for_transport)

    def release(self, steps: Iterable[Step], now_ms: int) -> None:
        """Release steps that are on disk, after the watch has checked them."""
        unwritten = self.engine.unwritten
        ended = 0 if unwritten is None else unwritten.ended
        while self._notes and self._notes[0][0] <= ended:
            _, note, arguments = self._notes.popleft()
            note(*arguments)
        super().release(steps, now_ms)

    def show(self, event: AnyEvent | Logged, now_ms: int) -> None:
        """Show an event to the application and the watch. If the process has died, the watch only
        notes that the event is on disk."""
        if self.journal is not None and not self.is_over:
            self.journal.emitted(event, now_ms)
        line = self.watch.emitted(self.core, event)
        if self.is_over:
            return
        if line is not None:
            self.note(line)
        if self.tell is not None and isinstance(event, CONFIRMABLE):
            self.tell(event)

    def wake(self, wake: Wake) -> None:
        self.wakes.get(wake, _ignore)()

    def note_sent(self, payload: bytes, accepted: Accepted) -> None:
        """Report an accepted message to the watch."""
        self.watch.sent(self.core, payload, accepted)

    def note_confirmed(self, event: AnyEvent) -> None:
        """Report a confirmed event to the watch, once the confirmation is on disk."""
        self.when_on_disk(self.watch.confirmed, event)

    def note_received(
        self, data: bytes, arrived: Packet, arrival: Arrival, now_ms: int, *, from_store: bool
    ) -> None:
        """Write a received message into the journal, and report it to the watch."""
        if self.journal is not None:
            self.journal.came(arrived, arrival.outcome, now_ms, from_store=from_store)
        self.watch.received(self.core, data, arrival)
        self.when_on_disk(self.watch.took, data, arrival)

    def when_on_disk(self, note: Callable[..., None], *arguments: Any) -> None:
        """Report the present step to the watch, once the step is on disk."""
        if (unwritten := self.engine.unwritten) is None:
            note(*arguments)
        else:
            self._notes.append((unwritten.submitted, note, arguments))

    def when_written(self, action: Callable[..., None], *arguments: Any) -> None:
        """Call a function once all earlier steps are on disk, or are known to be at risk of
        loss."""
        unwritten = self.engine.unwritten
        if unwritten is None or unwritten.ended == unwritten.submitted:
            action(*arguments)
            return
        unwritten.is_urgent = True
        self._calls.append((unwritten.submitted, action, arguments))
        self.wake(Wake.WRITE)

    def written(self, steps: Iterable[Step]) -> None:
        """Release the due steps of a finished write."""
        assert self.engine.unwritten is not None
        self.release(steps, self.now_ms())
        ended = self.engine.unwritten.ended
        while self._calls and self._calls[0][0] <= ended:
            _, action, arguments = self._calls.popleft()
            action(*arguments)

    # -- inside ------------------------------------------------------------------------------------

    def _act(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if not self.is_over:
            action(*arguments)

    def _waits_for_transport(self, message_id: str) -> bool:
        engine = self.engine
        return bool(engine.unwritten) or self.has_in_hand(message_id) or message_id in engine.outbox

    def ring_at(self, due_ms: int, now_ms: int) -> None:
        """Set an alarm for the engine's next deadline. A later deadline needs no new alarm, because
        the earlier alarm checks the deadline when it rings."""
        timeline = self.world.timeline
        at_ms = timeline.now_ms + max(0, due_ms - now_ms)
        if self._rings_at_ms is None or at_ms < self._rings_at_ms:
            self._rings_at_ms = at_ms
            timeline.at(at_ms, self._ring, at_ms)

    def _ring(self, at_ms: int) -> None:
        if self.is_over or at_ms != self._rings_at_ms:
            return
        self._rings_at_ms = None
        now_ms, due_ms = self.now_ms(), self.engine.agenda.next_ms
        if due_ms is None:
            return
        if due_ms > now_ms:
            self.ring_at(due_ms, now_ms)
            return
        if not self.node.is_away:
            self.engine.listened(now_ms)
        self.on_deadline(now_ms)
