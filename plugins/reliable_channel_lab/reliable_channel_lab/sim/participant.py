"""One simulated participant: the real core, and the driver around it in virtual time.

What `runtime/` does with tasks is done here with plans on the timeline: an outbox, most urgent
first, that waits while the participant's node is away; the timer of the core; and rounds of queries
to Store by the rules of `engine/store_queries.py`.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final, Generic

from reliable_channel.engine.repairs import Repairs
from reliable_channel.engine.store_queries import StoreQueries
from reliable_channel.sds.archive import NO_ARCHIVE, LogArchive
from reliable_channel.sds.changes import NO_RECORDER, Changes
from reliable_channel.sds.events import Outgoing, OutgoingKind, RepairRequested, SdsEvent
from reliable_channel.sds.receiving import Arrival
from reliable_channel.state import ArchiveOverlay, Identity, StateCorrupt, StateUnavailable
from reliable_channel.steady_clock import SteadyClock
from reliable_channel.sync_core import SyncCore, Withdrawing

from .durability import Disk
from .network import Packet, packet
from .scenario import Damage
from .store import Store, StoreAwayError
from .world import CHANNEL, C, Observer, World

URGENCY: Final = {kind: urgency for urgency, kind in enumerate(OutgoingKind)}
_HINTED: Final = (OutgoingKind.CONTENT, OutgoingKind.RETRY)
CATCH_UP_WINDOW_MS: Final = 30 * 86_400_000
RETRIEVE_FREQUENCY_MS: Final = 10_000
WRITE_AGAIN_MS: Final = 5_000
"""How often a disk that takes nothing is tried again."""
BACKOFF_MS: Final = (200, 10_000)
"""The first and the longest wait for a Store that does not answer."""


@dataclass(slots=True)
class _Step:
    """What a step of the core wants let out, once its changes are on disk."""

    changes: Changes
    events: list[SdsEvent]
    outgoing: list[Outgoing]
    sent_id: str | None
    arrived: tuple[bytes, Arrival] | None


class Participant(Generic[C]):
    """Drives one core; absent until `start`, and after `stop`."""

    def __init__(
        self,
        number: int,
        name: str,
        world: World[C],
        seed: int,
        watch: Observer[C],
        *,
        is_durable: bool,
    ) -> None:
        self.number = number
        self.name = name
        self.watch = watch
        self.clock_skew_ms = 0
        self.core: C | None = None
        """None while the process does not run."""
        self._world = world
        self._seed = seed
        self._disk: Disk | None = None
        if is_durable:
            self._disk = Disk(Identity(CHANNEL, name, world.dialect))
        self._at_risk = Changes()
        """What the disk did not take."""
        self._starts = 0
        self._written = 0
        self._node_is_away = False
        self._has_left = False

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process, from what is on disk where there is one."""
        if self.core is not None or self._has_left:
            return
        self._starts += 1
        self._outbox: dict[tuple[OutgoingKind, str], Outgoing] = {}
        self._unwritten: deque[_Step] = deque()
        self._overlay: ArchiveOverlay | None = None
        self._publishing = self._searching = False
        self._rings_at_ms: int | None = None
        self._clock = SteadyClock(self._wall_ns, lambda: self._world.timeline.now_ms * 1_000_000)
        self._last_look_ms = self.now_ms()
        self.core = core = self._make_core()
        self.repairs = Repairs(
            core,
            self._world.policy,
            now_ms=self.now_ms(),
            retrieve_frequency_ms=RETRIEVE_FREQUENCY_MS,
            has_store=self._world.store is not None,
        )
        self._queries = StoreQueries(core, self.repairs)
        self._note("starts")
        self.catch_up(self.now_ms() - CATCH_UP_WINDOW_MS)
        self._settle(core, self.now_ms())

    def _make_core(self) -> C:
        world, now_ms = self._world, self.now_ms()
        saved, recorder = None, NO_RECORDER
        archive: LogArchive = NO_ARCHIVE
        lost_what_was_at_risk, self._at_risk = bool(self._at_risk), Changes()
        is_new = self._starts == 1
        if self._disk is not None:
            try:
                opened = self._disk.open()
            except StateCorrupt as error:
                self._note(f"starts without its state: {error}")
                opened, is_new = self._disk.open(), True
            saved, recorder, self._overlay = opened
            archive = self._overlay
        core = world.make_core(
            self.name,
            now_ms=now_ms,
            random=Random(f"{self._seed} {self.name} {self._starts}").random,
            recorder=recorder,
            archive=archive,
        )
        if saved is not None:
            core.restore(saved.tables, saved.newest, now_ms)
        if saved is None or is_new:
            self.watch.started(core)
        elif saved.rolled_back is not None or lost_what_was_at_risk:
            self._note(f"finds an older state: {saved.rolled_back}")
            self.watch.rolled_back(core)
        else:
            self.watch.restarted(core)
        return core

    def stop(self) -> None:
        """End the process: what it held in memory is gone."""
        if self.core is not None:
            self.core = None
            self._note("stops")

    def damage_disk(self, damage: Damage, writes: int) -> None:
        """End the process, and damage what it had on disk."""
        self.stop()
        if self._disk is not None:
            self._note(f"has a damaged disk: {damage.value} {writes}")
            self._disk.damage(damage, writes)

    def fill_disk(self, is_full: bool) -> None:
        """There is no more room on the disk, or again some."""
        if self._disk is not None:
            self._note(f"has a disk that is {'full' if is_full else 'usable again'}")
            self._disk.is_full = is_full

    def leave(self) -> None:
        """Go for good, and take along what nobody else has."""
        self.stop()
        self._has_left = True
        self.watch.left()

    def set_clock(self, by_ms: int) -> None:
        """Set the clock forward or back. Who sleeps does not notice."""
        self.clock_skew_ms += by_ms
        self._note(f"sets its clock by {by_ms}")

    def set_node_away(self, away: bool) -> None:
        """The participant's own node goes, or comes back."""
        self._node_is_away = away
        if self.core is None:
            return
        if away:
            self._last_look_ms = self.now_ms()
        else:
            self.catch_up(self._last_look_ms)
            self._publish_soon()

    def now_ms(self) -> int:
        """The time that the core is told."""
        return self._clock() // 1_000_000

    def _wall_ns(self) -> int:
        return (self._world.timeline.now_ms + self.clock_skew_ms) * 1_000_000

    # -- steps of the core -------------------------------------------------------------------------

    def write(self) -> None:
        """Send a message of the application."""
        if (core := self.core) is None:
            return
        if self._at_risk:
            self._note("is refused: its state cannot be written")
            return
        self._written += 1
        now_ms, words = self.now_ms(), f"{self.name} writes {self._written}".encode()
        content = words.ljust(self._world.payload_bytes, b".")
        message_id = core.send(content, now_ms)
        self.watch.sent(core, message_id)
        self._settle(core, now_ms, sent_id=message_id)

    def hear(self, arrived: Packet) -> None:
        """Take a message from the network."""
        if self.core is not None and not self._node_is_away:
            self._receive(self.core, arrived)

    def _receive(self, core: C, arrived: Packet, *, from_store: bool = False) -> None:
        now_ms, data = self.now_ms(), arrived.data
        arrival = core.receive(data, now_ms, retrieval_hint=arrived.message_hash)
        self.repairs.received(arrival, len(data), now_ms, from_store=from_store)
        self.watch.received(core, data, arrival)
        self._settle(core, now_ms, arrived=(data, arrival))

    def _ring(self, core: C, at_ms: int) -> None:
        if core is not self.core or at_ms != self._rings_at_ms:
            return
        self._rings_at_ms = None
        now_ms, due_ms = self.now_ms(), self._next_deadline_ms(core)
        if due_ms is not None and due_ms <= now_ms:
            core.on_deadline(now_ms)
            self._settle(core, now_ms)
        else:
            self._set_timer(core, now_ms)

    def _settle(
        self,
        core: C,
        now_ms: int,
        *,
        sent_id: str | None = None,
        arrived: tuple[bytes, Arrival] | None = None,
    ) -> None:
        """Hand on what the core wants told and broadcast, then set the timer."""
        self.repairs.step(now_ms)
        events = list(core.events())
        for event in events:
            if isinstance(event, RepairRequested):
                self.repairs.saw(event, now_ms)
        if self._overlay is None:
            self._let_out(core, events, core.outgoing(), sent_id, arrived)
        else:
            step = _Step(core.changes(), events, list(core.outgoing()), sent_id, arrived)
            self._overlay.add(step.changes)
            self._unwritten.append(step)
            if len(self._unwritten) == 1:
                timeline = self._world.timeline
                timeline.at(timeline.now_ms + self._world.commit_ms, self._commit, core)
        self.watch.stepped(core, now_ms, self._waits_for_transport)
        self._set_timer(core, now_ms)
        if not self._searching and not self._queries.is_idle:
            self._search()

    def _commit(self, core: C) -> None:
        """Write the steps that wait, in one transaction, then let out what they had to say."""
        if core is not self.core:
            return
        assert self._disk is not None
        assert self._overlay is not None
        changes, steps = self._at_risk, list(self._unwritten)
        self._unwritten.clear()
        for step in steps:
            changes.add(step.changes)
        try:
            self._disk.commit(changes)
        except StateUnavailable:
            self._go_on_unwritten(core, changes, steps)
            return
        self._at_risk = Changes()
        self._overlay.remove(changes)
        for step in steps:
            self._let_out(core, step.events, step.outgoing, step.sent_id, step.arrived)

    def _let_out(
        self,
        core: C,
        events: Iterable[SdsEvent],
        outgoing: Iterable[Outgoing],
        sent_id: str | None,
        arrived: tuple[bytes, Arrival] | None,
    ) -> None:
        if sent_id is not None:
            self._note(f"sends {sent_id}")
            self.watch.accepted(core, sent_id)
        if arrived is not None:
            self.watch.took(*arrived)
        for event in events:
            if (line := self.watch.told(core, event)) is not None:
                self._note(line)
        for message in outgoing:
            self._put(message)

    def _go_on_unwritten(self, core: C, changes: Changes, steps: Iterable[_Step]) -> None:
        """Let out what could not be written, but for own messages and what refers to them, as
        `engine/steps.py` does; try again later."""
        if not self._at_risk:
            timeline = self._world.timeline
            timeline.at(timeline.now_ms + WRITE_AGAIN_MS, self._write_again, core)
        self._at_risk, has_refused = changes, False
        for step in steps:
            if step.sent_id is not None:
                _withdraw(core, step.sent_id)
                self._note(f"is refused {step.sent_id}")
                has_refused = True
                continue
            outgoing = [m for m in step.outgoing if m.kind is not OutgoingKind.SYNC]
            outgoing = outgoing if has_refused else step.outgoing
            self._let_out(core, step.events, outgoing, None, step.arrived)
        if has_refused:
            self._settle(core, self.now_ms())

    def _write_again(self, core: C) -> None:
        if core is self.core and self._at_risk:
            timeline = self._world.timeline
            timeline.at(timeline.now_ms + WRITE_AGAIN_MS, self._write_again, core)
            self._commit(core)

    @property
    def is_behind(self) -> bool:
        """Whether something is not on disk yet."""
        return bool(self._unwritten)

    @property
    def is_searching(self) -> bool:
        """Whether Store is being asked."""
        return self.core is not None and self._searching

    def _waits_for_transport(self, message_id: str) -> bool:
        keys = (OutgoingKind.CONTENT, message_id), (OutgoingKind.RETRY, message_id)
        return any(key in self._outbox for key in keys) or any(
            (outgoing.kind, outgoing.message_id) in keys
            for step in self._unwritten
            for outgoing in step.outgoing
        )

    def _set_timer(self, core: C, now_ms: int) -> None:
        """See that the deadline is not missed. One that moves back, as that of the next sync does
        with each message, is noticed when the earlier one rings."""
        if (due_ms := self._next_deadline_ms(core)) is None:
            return
        timeline = self._world.timeline
        at_ms = timeline.now_ms + max(0, due_ms - now_ms)
        if self._rings_at_ms is None or at_ms < self._rings_at_ms:
            self._rings_at_ms = at_ms
            timeline.at(at_ms, self._ring, core, at_ms)

    def _next_deadline_ms(self, core: C) -> int | None:
        deadlines = core.next_deadline_ms(), self.repairs.next_deadline_ms()
        return min((due_ms for due_ms in deadlines if due_ms is not None), default=None)

    # -- out ---------------------------------------------------------------------------------------

    def _put(self, outgoing: Outgoing) -> None:
        if outgoing.kind is OutgoingKind.SYNC:
            # Each says all that the one before said.
            for key in [key for key in self._outbox if key[0] is OutgoingKind.SYNC]:
                del self._outbox[key]
        self._outbox.setdefault((outgoing.kind, outgoing.message_id), outgoing)
        self._publish_soon()

    def _publish_soon(self) -> None:
        if self._outbox and not self._publishing and not self._node_is_away:
            self._publishing = True
            timeline = self._world.timeline
            timeline.at(timeline.now_ms + self._world.publish_ms, self._publish, self.core)

    def _publish(self, core: C) -> None:
        if core is not self.core:
            return
        self._publishing = False
        if self._node_is_away or not self._outbox:
            return
        key = min(self._outbox, key=lambda key: URGENCY[key[0]])
        outgoing = self._outbox.pop(key)
        sealed = packet(outgoing.data, self.now_ms(), outgoing.kind)
        self._note(f"publishes {outgoing.kind.value} {outgoing.message_id}")
        self.watch.published(core, outgoing)
        self._world.network.broadcast(self.number, sealed)
        if outgoing.kind in _HINTED:
            now_ms = self.now_ms()
            core.dispatched(outgoing.message_id, now_ms, sealed.message_hash)
            self._settle(core, now_ms)
        self._publish_soon()

    # -- Store -------------------------------------------------------------------------------------

    def catch_up(self, since_ms: int) -> None:
        """Fetch all that was stored since then."""
        if self._world.store is not None:
            self._queries.catch_up(since_ms)
            if not self._searching:
                self._search()

    def _search(self) -> None:
        if self._world.store is not None:
            self._searching = True
            self._go_on(self.core, self._searches(self._world.store))

    def _go_on(self, core: C | None, searches: Iterator[int]) -> None:
        """Let a process that yields how long it waits run to its next wait."""
        if core is not self.core:
            return
        if (wait_ms := next(searches, None)) is not None:
            timeline = self._world.timeline
            timeline.at(timeline.now_ms + wait_ms, self._go_on, core, searches)

    def _searches(self, store: Store) -> Generator[int, None, None]:
        backoff_ms, longest_ms = BACKOFF_MS
        while not self._queries.is_idle:
            while (query := self._queries.next(self.now_ms())) is not None:
                yield store.delay_ms()
                assert self.core is not None
                try:
                    answer = store.answer(query)
                except StoreAwayError:
                    self._queries.failed(self.now_ms())
                    yield backoff_ms
                    backoff_ms = min(2 * backoff_ms, longest_ms)
                    continue
                for found in answer:
                    self._receive(self.core, found, from_store=True)
                backoff_ms = BACKOFF_MS[0]
            if self.repairs.next_deadline_ms() is not None:
                assert self.core is not None
                self._settle(self.core, self.now_ms())
            if not self._queries.must_catch_up:
                yield self._queries.tick_ms
        self._searching = False

    def _note(self, what: str) -> None:
        self._world.trace.note(self._world.timeline.now_ms, self.name, what)


def _withdraw(core: SyncCore, message_id: str) -> None:
    assert isinstance(core, Withdrawing)
    core.withdraw(message_id)
