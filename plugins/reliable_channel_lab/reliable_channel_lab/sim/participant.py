"""Simulated participant with its clock, node and disk, which survive the participant's
processes."""

from random import Random
from typing import Final, Generic

from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.engine.driver import MonotonicWallClock
from reliable_channel.engine.engine import Engine, spent_in
from reliable_channel.sds.changes import NO_RECORDER, Recorder
from reliable_channel.sds.log.archive import NO_ARCHIVE
from reliable_channel.state import Identity, Saved, StateCorrupt

from .application import Application
from .driving import SimulatedDriver
from .durability import Disk
from .network import Packet
from .process import Process
from .scenario import Damage
from .world import CHANNEL, C, Node, Observer, World

NANOSECONDS: Final = 1_000_000


class Participant(Generic[C]):
    """Participant that is absent before `start` and after `stop`."""

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
        self.process: Process[C] | None = None
        """None while there is none."""
        self._world = world
        self._seed = seed
        self._node = Node(number)
        self._disk: Disk | None = None
        if is_durable:
            self._disk = Disk(Identity(CHANNEL, name, world.dialect))
        self._has_lost_what_was_at_risk = False
        self._starts = 0
        self._application = Application(
            name,
            world.habits,
            world.payload_bytes,
            Random(f"{seed} {name} habits").random,
            self._note,
        )
        self._last_look_ms = 0
        self._has_left = False

    @property
    def core(self) -> C | None:
        """Core of the participant's process, or None without a process."""
        return None if self.process is None else self.process.driver.core

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a process of the participant, from the disk if it has one."""
        if self.process is not None or self._has_left:
            return
        self._starts += 1
        self._note("starts")
        saved, is_new = None, self._starts == 1
        if self._disk is not None:
            saved, is_unreadable = self._open(self._disk)
            is_new = is_new or is_unreadable
        self.process = process = Process(self._driver(saved), self._disk)
        core = process.driver.core

        def begin() -> None:
            if saved is None or is_new:
                self.watch.started(core)
            elif saved.rolled_back is not None or self._has_lost_what_was_at_risk:
                self._note(f"finds an older state: {saved.rolled_back}")
                self.watch.rolled_back(core)
            else:
                self.watch.restarted(core)
            self._has_lost_what_was_at_risk = False

        if saved is not None:
            process.driver.tell = self._application.read
        process.begin(saved, begin)
        self._application.started(process)

    def _open(self, disk: Disk) -> tuple[Saved, bool]:
        """What is on disk, and whether what was there could not be read."""
        try:
            return disk.open(), False
        except StateCorrupt as error:
            self._note(f"starts without its state: {error}")
            self.watch.lost_disk()
            return disk.open(), True

    def _driver(self, saved: Saved | None) -> SimulatedDriver[C]:
        world, names = self._world, f"{self._seed} {self.name} {self._starts}"
        clock = MonotonicWallClock(self._wall_ns, lambda: world.timeline.now_ms * NANOSECONDS)
        now_ms = clock() // NANOSECONDS
        recorder, overlay, spent = NO_RECORDER, None, self._node.spent
        if self._disk is not None and saved is not None:
            recorder, overlay = Recorder(), ArchiveOverlay(self._disk.archive())
            spent = spent_in(saved.tables)
        core = world.make_core(
            self.name,
            now_ms=now_ms,
            random=Random(names).random,
            recorder=recorder,
            archive=NO_ARCHIVE if overlay is None else overlay,
        )
        engine = Engine(
            core,
            world.options,
            world.policy,
            participant_id=self.name,
            now_ms=now_ms,
            random=Random(f"{names} engine"),
            has_store=world.store is not None,
            recorder=recorder,
            archive=overlay,
            notes_log=self.watch.reads_log,
            spent=spent,
        )
        place = self.name, world, self._node, self.watch
        return SimulatedDriver(*place, core, engine, now_ns=clock, wall_ns=self._wall_ns)

    def stop(self) -> None:
        """End the process of the participant. Data that was only in the process's memory is
        lost."""
        if self.process is not None:
            self._has_lost_what_was_at_risk = self.process.end()
            self.process = None
            self._application.stopped(remembers=self._disk is not None)
            self._note("stops")

    def damage_disk(self, damage: Damage, writes: int) -> None:
        """End the process of the participant, and damage the disk."""
        self.stop()
        if self._disk is not None:
            self._note(f"has a damaged disk: {damage.value} {writes}")
            self._disk.damage(damage, writes)

    def fill_disk(self, is_full: bool) -> None:
        """Fill the participant's disk, or free space on it."""
        if self._disk is not None:
            self._note(f"has a disk that is {'full' if is_full else 'usable again'}")
            self._disk.is_full = is_full

    def leave(self) -> None:
        """Leave the simulated group permanently."""
        self.stop()
        self._has_left = True
        self.watch.left()

    def set_clock(self, by_ms: int) -> None:
        """Set the participant's clock forward or back. Tasks that sleep do not notice the change of
        the clock."""
        self.clock_skew_ms += by_ms
        self._note(f"sets its clock by {by_ms}")

    def set_node_away(self, away: bool) -> None:
        """Disconnect the participant's own node, or connect it again."""
        self._node.is_away = away
        if self.process is None:
            return
        if away:
            self._last_look_ms = self.process.driver.now_ms()
        else:
            self.process.catch_up(self._last_look_ms)

    # -- what it does ------------------------------------------------------------------------------

    def write(self) -> None:
        """Let the participant's application send a message."""
        self._application.write()

    def hear(self, arrived: Packet) -> None:
        """Receive a message that another participant broadcast."""
        if self.process is not None and not self._node.is_away:
            self.process.hear(arrived)

    @property
    def is_searching(self) -> bool:
        """True if a Store query for missing messages is running."""
        return self.process is not None and self.process.is_searching

    def _wall_ns(self) -> int:
        return (self._world.timeline.now_ms + self.clock_skew_ms) * NANOSECONDS

    def _note(self, what: str) -> None:
        self._world.trace.note(self._world.timeline.now_ms, self.name, what)
