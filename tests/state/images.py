"""Images of a state file after a crash: recorded writes below SQLite, cut, dropped and torn.

The writes follow from the file and its WAL before and after a statement. A commit appends frames to
the WAL, a checkpoint writes pages in their order. The derived writes must add up to the real bytes.

A killed process leaves any prefix of its writes. A full disk also cuts the last write anywhere. A
loss of power, or a failed fsync, leaves any choice of the writes since the last fsync of each file,
because the system may reorder these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, NamedTuple

import pytest

from reliable_channel.state import SqliteStateStore, change_log
from reliable_channel.state.sqlite import Durability
from tests.sds.test_restoring import remembered
from tests.sds.world import NOW_MS, participant, send

from .scripted import begin

DB, WAL, COMMITS = "", "-wal", ".commits"
PAGE: Final = 4_096
FRAME: Final = 24 + PAGE
SECTOR: Final = 512
STEPS: Final = 6

Files = dict[str, bytes]
"""Contents by the end of the name."""
Crash = Literal["killed", "full disk", "power"]


class Write(NamedTuple):
    """Bytes that the system was given. A write of the count accepts a transaction."""

    file: str
    place: int
    data: bytes


class Cut(NamedTuple):
    """A new end of a file."""

    file: str
    place: int


class Sync(NamedTuple):
    file: str


Event = Write | Cut | Sync


def applied(left: Files, events: Iterator[Event] | list[Event]) -> Files:
    """Return the files after some writes."""
    made = {end: bytearray(data) for end, data in left.items()}
    for event in events:
        match event:
            case Write(end, place, data):
                file = made[end]
                file.extend(bytes(max(0, place - len(file))))
                file[place : place + len(data)] = data
            case Cut(end, place):
                del made[end][place:]
    return {end: bytes(data) for end, data in made.items()}


def frames(wal: bytes) -> list[bytes]:
    """Return the frames since the WAL was begun anew."""
    found = []
    for place in range(32, len(wal), FRAME):
        if wal[place + 8 : place + 16] != wal[16:24]:
            break
        found.append(wal[place : place + FRAME])
    return found


def appended(before: bytes, after: bytes, durability: Durability) -> Iterator[Event]:
    """Yield the writes of a commit."""
    begun = len(frames(before)) if before[:32] == after[:32] else 0
    if not begun:
        yield from (Write(WAL, 0, after[:32]), Sync(WAL))
    for number, frame in enumerate(frames(after)[begun:], begun):
        yield Write(WAL, 32 + number * FRAME, frame[:24])
        yield Write(WAL, 32 + number * FRAME + 24, frame[24:])
    if durability == "power":
        yield Sync(WAL)


def moved(wal: bytes) -> Iterator[Event]:
    """Yield the writes of a checkpoint."""
    newest = {int.from_bytes(frame[:4]): frame for frame in frames(wal)}
    pages = int.from_bytes(frames(wal)[-1][4:8])
    yield Sync(WAL)
    for number in sorted(newest):
        if number <= pages:
            yield Write(DB, (number - 1) * PAGE, newest[number][24:])
    yield from (Cut(DB, pages * PAGE), Sync(DB))


@dataclass
class Recording:
    """The writes of a participant to its state."""

    path: Path
    durability: Durability
    begun: Files = field(init=False)
    """The files before the first write to a WAL."""
    events: list[Event] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    """The memory of the participant after each accepted transaction."""

    def __post_init__(self) -> None:
        self._seen = self._files()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(change_log, "MAX_WRITES", 3)  # so that checkpoints come often
            store = _Store(self.path, durability=self.durability)
            store.on_statement = self._look
            self._run(store)
        store.close()

    def _run(self, store: SqliteStateStore) -> None:
        core, overlay = begin(store)
        self.states.append(remembered(core))
        bob = participant("bob")
        for number in range(STEPS):
            core.send(b"%d" % number * 9_000, NOW_MS)
            received = send(bob, b"of bob %d" % number * 500).data
            core.receive(received, NOW_MS, retrieval_hint=b"h" * 32)
            store.write(core.changes())
            core.events.clear()
            core.outgoing.clear()
            self.states.append(remembered(core))
        self._look()
        overlay.close()

    def _look(self, _: str = "") -> None:
        """Note, before a statement, the writes of the one before."""
        before, now = self._seen, self._files()
        self._seen = now
        if not now[WAL]:
            self.begun = now
            return
        made: list[Event] = []
        if now[WAL] != before[WAL]:
            made += appended(before[WAL], now[WAL], self.durability)
        elif now[DB] != before[DB]:
            made += moved(now[WAL])
        if now[COMMITS] != before[COMMITS]:
            made.append(Write(COMMITS, 0, now[COMMITS]))
        assert applied(before, made) == now
        self.events += made

    def _files(self) -> Files:
        paths = {end: Path(f"{self.path}{end}") for end in (DB, WAL, COMMITS)}
        return {end: path.read_bytes() if path.exists() else b"" for end, path in paths.items()}

    def crashes(self) -> Iterator[tuple[Crash, int]]:
        """Yield all crashes: the kind, and the number of events before."""
        for number, event in enumerate(self.events):
            yield "killed", number
            yield "power", number
            if isinstance(event, Write) and event.file != COMMITS:
                yield "full disk", number


class _Store(SqliteStateStore):
    """A store whose statements are seen before they run."""

    on_statement: Any = None

    def _connect(self) -> Any:
        connection = super()._connect()
        connection.set_trace_callback(self.on_statement)
        return connection


@dataclass
class Image:
    """The files after a crash, and how many of the accepted transactions must be in them."""

    files: Files
    accepted: int
    at_least: int

    @classmethod
    def after(cls, recording: Recording, crash: Crash, number: int, random: Random) -> Image:
        """Make the image of a crash."""
        events = recording.events[:number]
        accepted = at_least = _accepted(events)
        if crash == "full disk":
            last = recording.events[number]
            assert isinstance(last, Write)
            events.append(last._replace(data=last.data[: random.randrange(len(last.data))]))
        elif crash == "power":
            synced = {end: _last_sync(events, end) for end in (DB, WAL)}
            if recording.durability == "process":
                at_least = _accepted(events[: synced[WAL] + 1])
            events = [
                kept
                for place, event in enumerate(events)
                for kept in _kept(event, place > synced.get(event.file, place), random)
            ]
        return cls(applied(recording.begun, events), accepted, at_least)

    def put(self, path: Path) -> None:
        for end, data in self.files.items():
            if data:
                Path(f"{path}{end}").write_bytes(data)


def _accepted(events: list[Event]) -> int:
    return sum(event.file == COMMITS for event in events)


def _last_sync(events: list[Event], end: str) -> int:
    return max((place for place, event in enumerate(events) if event == Sync(end)), default=-1)


def _kept(event: Event, at_risk: bool, random: Random) -> list[Event]:
    """Return what a disk keeps: of a write at risk all, nothing, or some sectors."""
    if not isinstance(event, Write) or not at_risk:
        return [event]
    sectors = range(0, len(event.data), SECTOR)
    kept = random.choice([sectors, (), [place for place in sectors if random.random() < 0.5]])
    return [Write(event.file, event.place + n, event.data[n : n + SECTOR]) for n in kept]
