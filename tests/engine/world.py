"""Engines without any event loop: a disk in memory, and a network that is a function call."""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

from reliable_channel._contracts.repair_policies import both
from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.engine.engine import Engine, spent_in
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.steps import Step
from reliable_channel.engine.sync_core import Arrival
from reliable_channel.events import AnyEvent
from reliable_channel.options import ChannelOptions
from reliable_channel.sds import SdsProtocol
from reliable_channel.sds.changes import NO_RECORDER, Recorder
from reliable_channel.sds.events import Outgoing
from reliable_channel.sds.log.archive import NO_ARCHIVE
from reliable_channel.state import Identity, MemoryStateStore, StateUnavailable

START_MS = 1_700_000_000_000
FULL = StateUnavailable("the disk is full")

E = TypeVar("E")


class Peer:
    """A participant: an engine, what it emitted and what it would send."""

    def __init__(
        self,
        name: str,
        disk: MemoryStateStore | None = None,
        *,
        opens_contents: bool = False,
        notes_log: bool = False,
        **values: Any,
    ) -> None:
        self.now_ms = START_MS
        self.events: list[AnyEvent | Logged] = []
        self.disk = disk
        options = ChannelOptions(sync_min_interval_ms=0, **values)
        saved = archive = None
        if disk is not None:
            saved = disk.open(Identity("general", name, "spec"))
            archive = ArchiveOverlay(disk.archive())
        recorder = NO_RECORDER if disk is None else Recorder()
        random = Random(1)
        core = SdsProtocol(
            "general",
            name,
            now_ms=self.now_ms,
            random=random.random,
            options=options.sds_options(),
            recorder=recorder,
            archive=NO_ARCHIVE if archive is None else archive,
        )
        self.engine = Engine(
            core,
            options,
            both,
            participant_id=name,
            now_ms=self.now_ms,
            random=random,
            has_store=True,
            recorder=recorder,
            archive=archive,
            opens_contents=opens_contents,
            notes_log=notes_log,
            spent=None if saved is None else spent_in(saved.tables),
        )
        self.listens_from_ms = self.engine.begin(saved, self.now_ms)
        self.end(self.engine.step(self.now_ms))
        if saved is not None:
            for step in self.engine.redeliver(self.now_ms):
                self.end(step)

    def send(self, payload: bytes, key: str | None = None) -> Any:
        segments = self.engine.split(payload)
        accepted, step = self.engine.send(segments, self.now_ms * 1_000_000, key)
        self.end(step)
        return accepted

    def receive(self, data: bytes, *, from_store: bool = False) -> Arrival:
        arrival, step = self.engine.receive(
            data,
            self.now_ms,
            message_hash=hash_of(data),
            timestamp_ns=self.now_ms * 1_000_000,
            from_store=from_store,
        )
        self.end(step)
        return arrival

    def publish(self) -> list[Outgoing]:
        """Take all that may go out, as a transport that works does."""
        sent = []
        while (item := self.engine.take(self.now_ms)) is not None:
            sent.append(item.outgoing)
            stamp_ns, digest = self.now_ms * 1_000_000, hash_of(item.outgoing.data)
            self.end(self.engine.dispatched(item, digest, stamp_ns, self.now_ms))
        self.end(self.engine.step(self.now_ms))
        return sent

    def end(self, step: Step) -> None:
        if step.is_due:
            self.events += step.events

    def write(self, failure: StateUnavailable | None = None, *, at_once: bool = True) -> None:
        changes = self.engine.begin_write(self.now_ms, at_once=at_once)
        if changes is not None and failure is None:
            assert self.disk is not None
            self.disk.write(changes)
        tried = changes is not None
        failure = failure if tried else None
        for step in self.engine.end_write(self.now_ms, tried=tried, failure=failure):
            self.end(step)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


def hash_of(data: bytes) -> bytes:
    return (b"%d" % (hash(data) % 10**32)).rjust(32, b"0")
