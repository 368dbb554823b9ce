"""Cores of `sync="mvds"` on a broadcast transport in virtual time that loses for each receiver."""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from mvds_tests.world import START_MS
from reliable_channel.events import MessageReceived
from reliable_channel.options import ChannelOptions
from reliable_channel.spi import (
    CoreContext,
    Identity,
    MemoryStateStore,
    OutgoingKind,
    Recorder,
    SdsEvent,
)
from reliable_channel_mvds.channel import MvdsCore
from tests.sds.world import taken

OPTIONS = ChannelOptions(retry_interval_ms=2_000, max_retry_attempts=20)


@dataclass
class Participant:
    name: str
    core: MvdsCore
    store: MemoryStateStore
    events: list[SdsEvent] = field(default_factory=list)
    deaf: bool = False
    """Neither heard nor hearing."""

    @property
    def contents(self) -> list[bytes]:
        return [event.content for event in self.events if isinstance(event, MessageReceived)]


class ChannelWorld:
    def __init__(
        self,
        *names: str,
        seed: int = 7,
        loss: float = 0.0,
        delay_ms: tuple[int, int] = (20, 200),
        options: ChannelOptions = OPTIONS,
    ) -> None:
        self.random, self.loss, self.options = Random(seed), loss, options
        self.delay_ms = delay_ms
        self.now_ms = START_MS
        self.sent: list[tuple[str, OutgoingKind, bytes]] = []
        self.participants: dict[str, Participant] = {}
        self._flying: list[tuple[int, int, str, bytes]] = []
        for name in names:
            self.open(name)

    def __getitem__(self, name: str) -> Participant:
        return self.participants[name]

    def open(self, name: str, *, wanted_from: int | None = None) -> Participant:
        """Open a channel, for the first time or again with its state."""
        earlier = self.participants.get(name)
        store = earlier.store if earlier else MemoryStateStore()
        saved = store.open(Identity("general", name, "spec"))
        context = CoreContext(
            *("general", name, self.options, self.now_ms, self.random.random),
            *(Recorder(), store.archive()),
        )
        core = MvdsCore(context)
        core.restore(saved.tables, saved.newest, self.now_ms)
        if wanted_from is not None:
            core.join(self.now_ms, wanted_from=wanted_from, presume_ms=0)
        participant = Participant(name, core, store, earlier.events if earlier else [])
        self.participants[name] = participant
        self.step(participant)
        return participant

    def send(self, name: str, content: bytes) -> str:
        message_id = self[name].core.send(content, self.now_ms)
        self.step(self[name])
        return message_id

    def run(self, limit_ms: int = 3_600_000) -> None:
        end_ms = self.now_ms + limit_ms
        while (next_ms := self._next_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            while self._flying and self._flying[0][0] <= self.now_ms:
                _, _, name, data = heappop(self._flying)
                self[name].core.receive(data, self.now_ms)
                self.step(self[name])
            for participant in self.participants.values():
                deadline_ms = participant.core.agenda.next_ms
                if deadline_ms is not None and deadline_ms <= self.now_ms:
                    participant.core.on_deadline(self.now_ms)
                    self.step(participant)
        self.now_ms = end_ms

    def step(self, participant: Participant) -> None:
        core = participant.core
        participant.store.write(core.changes())
        participant.events += taken(core.events)
        for outgoing in taken(core.outgoing):
            self.sent.append((participant.name, outgoing.kind, outgoing.data))
            for other in self.participants.values():
                heard = not (other is participant or other.deaf or participant.deaf)
                if heard and self.random.random() >= self.loss:
                    at_ms = self.now_ms + self.random.randint(*self.delay_ms)
                    heappush(self._flying, (at_ms, len(self._flying), other.name, outgoing.data))
            core.dispatched(outgoing.message_id, self.now_ms)

    def _next_ms(self) -> int | None:
        deadlines = [p.core.agenda.next_ms for p in self.participants.values()]
        if self._flying:
            deadlines.append(self._flying[0][0])
        return min((ms for ms in deadlines if ms is not None), default=None)
