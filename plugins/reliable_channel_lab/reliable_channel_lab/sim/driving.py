"""Driver of an engine in virtual time, like `runtime/driver.py` in real time."""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Generic

from reliable_channel.diagnostics import SegmentDiscarded
from reliable_channel.engine import driver
from reliable_channel.engine.engine import Engine
from reliable_channel.engine.logged import Logged
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


def _call_due(calls: deque[_Call], ended: int) -> None:
    while calls and calls[0][0] <= ended:
        _, action, arguments = calls.popleft()
        action(*arguments)


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
        self.wakes = dict.fromkeys(Wake, _ignore)
        self.note_sent = partial(watch.sent, core)
        self.note_confirmed = partial(self.when_on_disk, watch.confirmed)
        self.note_received = self._note_received
        self.note_step = self._note_step
        self.has_in_hand: Callable[[str], bool] = lambda _: False
        """True if an own message is on its way to the node."""
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

    def _note_step(self) -> None:
        if not self.is_over:
            self.watch.stepped(self.core, self.now_ms(), self._waits_for_transport)

    def _note_received(
        self, data: bytes, arrived: Packet, arrival: Arrival, now_ms: int, from_store: bool
    ) -> None:
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
        self.wakes[Wake.WRITE]()

    def release(self, steps: Iterable[Step]) -> None:
        """End steps that are on disk, after the watch has learned what is on disk."""
        assert self.engine.unwritten is not None
        _call_due(self._notes, self.engine.unwritten.ended)
        for step in steps:
            self.end(step, self.now_ms())

    def written(self, steps: Iterable[Step]) -> None:
        """Release the due steps of a finished write, and call what waits for them."""
        assert self.engine.unwritten is not None
        self.release(steps)
        _call_due(self._calls, self.engine.unwritten.ended)

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
        timeline.at(timeline.now_ms + max(0, due_ms - now_ms), self._ring, due_ms)

    def _ring(self, rings_at_ms: int) -> None:
        if self.is_over or rings_at_ms != self.rings_at_ms:
            return
        now_ms = self.now_ms()
        self.rings_at_ms = due_ms = self.engine.agenda.next_ms
        if due_ms is None:
            return
        if due_ms > now_ms:
            self.ring_at(due_ms, now_ms)
            return
        self.rings_at_ms = None
        if not self.node.is_away:
            self.engine.listened(now_ms)
        self.turn(self.engine.on_deadline)
