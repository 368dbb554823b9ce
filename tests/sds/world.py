"""Participants without a network: messages carried by hand, or by a world in virtual time.

By hand: `participant` makes a core, `send` takes its bytes out, `forge` writes bytes that no core
would. The world: a heap of (time, number, action), and drivers that call a core as a real one does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any, Final, TypeVar

from reliable_channel.sds import (
    NIM,
    SPEC,
    HistoryEntry,
    Message,
    SdsOptions,
    SdsProtocol,
    WireProfile,
)
from reliable_channel.sds.agenda import Agenda
from reliable_channel.sds.bloom import BloomParameters
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.draft import Draft, SavedDraft
from reliable_channel.sds.events import (
    DeliveryFailed,
    MessageAcknowledged,
    MessageReceived,
    Outgoing,
    OutgoingKind,
    SdsEvent,
)
from reliable_channel.sds.signing import Signing

NOW_MS: Final = 1_700_000_000_000
CHANNEL: Final = "channel"
SMALL_BLOOM: Final = BloomParameters(capacity=1_000)
"""Enough for any test here, and a tenth of the bytes to move around."""
CODEC: Final = SpecCodec()
SECOND: Final = 1_000
MINUTE: Final = 60_000

E = TypeVar("E")


def options(**changes: Any) -> SdsOptions:
    """Default options but for a small bloom filter and what is named."""
    return SdsOptions(**{"bloom": SMALL_BLOOM, **changes})


def participant(
    name: str = "alice",
    *,
    now_ms: int = NOW_MS,
    seed: int = 0,
    profile: WireProfile = SPEC,
    listen_to: Sequence[WireProfile] | None = None,
    signing: Signing | None = None,
    assembles_late: bool = False,
    **changes: Any,
) -> SdsProtocol:
    """A participant of the test channel; `changes` are options."""
    return SdsProtocol(
        CHANNEL,
        name,
        now_ms=now_ms,
        random=Random(f"{name} {seed}").random,
        profile=profile,
        listen_to=listen_to,
        options=options(**changes),
        signing=signing,
        assembles_late=assembles_late,
    )


def send(core: SdsProtocol, content: bytes, now_ms: int = NOW_MS) -> Outgoing:
    """Send and dispatch a message; return it as it was broadcast."""
    message_id = core.send(content, now_ms)
    core.dispatched(message_id, now_ms)
    return only(o for o in taken(core.outgoing) if o.message_id == message_id)


def leave(draft: Draft | SavedDraft, now_ms: int) -> tuple[bytes, bool]:
    """Have a draft leave; return its bytes, and True if they have requests."""
    return draft.maker.leave(draft, now_ms)


def sync(core: SdsProtocol, now_ms: int = NOW_MS) -> Outgoing:
    """Make a participant send a sync message and return it."""
    assert core.send_sync(now_ms)
    return only(o for o in taken(core.outgoing) if o.kind is OutgoingKind.SYNC)


def give(core: SdsProtocol, *broadcast: Outgoing, now_ms: int = NOW_MS) -> None:
    """Hand messages to a participant."""
    for outgoing in broadcast:
        core.receive(outgoing.data, now_ms)


def decode(outgoing: Outgoing) -> Message:
    """The message that was broadcast, in whichever dialect."""
    codec = NIM.codec if NIM.codec.recognises(outgoing.data) else CODEC
    return codec.decode(outgoing.data)


def forge(
    message_id: str,
    *,
    sender: str = "mallory",
    lamport: int | None = NOW_MS,
    after: Iterable[str | HistoryEntry] = (),
    requests: Iterable[HistoryEntry] = (),
    bloom: bytes | None = None,
    content: bytes | None = b"content",
    channel: str = CHANNEL,
    profile: WireProfile = SPEC,
) -> bytes:
    """The bytes of a message that is written field by field."""
    history = [e if isinstance(e, HistoryEntry) else HistoryEntry(e, None, sender) for e in after]
    return profile.codec.encode(
        Message(
            sender, message_id, channel, lamport, history, bloom, tuple(requests), content=content
        )
    )


def events(core: SdsProtocol, kind: type[E]) -> list[E]:
    """Take all events of a participant and return those of one kind."""
    return [event for event in taken(core.events) if isinstance(event, kind)]


def delivered(core: SdsProtocol) -> list[bytes]:
    """Take all events of a participant and return the contents that were delivered."""
    return [event.content for event in events(core, MessageReceived)]


def taken(told: list[E]) -> list[E]:
    """What a core told since the last call, as its owner takes it."""
    items = told.copy()
    told.clear()
    return items


def next_ms(agenda: Agenda) -> int | None:
    """The first deadline: a call, as mypy takes an attribute that was None for None for good."""
    return agenda.next_ms


def only(items: Iterable[E]) -> E:
    """The one item there is."""
    (item,) = items
    return item


@dataclass(frozen=True)
class Weather:
    """What the network does to each copy of a message on its way to one participant."""

    loss: float = 0.0
    duplication: float = 0.0
    latency_ms: tuple[int, int] = (200, 200)
    """Drawn anew for each copy, so that a wide range reorders."""


@dataclass
class Driver:
    """A participant and what its application saw; calls the core as a real driver does."""

    world: World
    name: str
    core: SdsProtocol
    history: list[SdsEvent] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    broadcast: list[tuple[int, Outgoing]] = field(default_factory=list)
    _timer: int = 0

    def send(self, content: bytes) -> str:
        message_id = self.core.send(content, self.world.now_ms)
        self.sent.append(message_id)
        self.settle()
        return message_id

    def receive(self, data: bytes) -> None:
        self.core.receive(data, self.world.now_ms, retrieval_hint=sha256(data).digest())
        self.settle()

    def settle(self) -> None:
        """Hand on what the core wants told and broadcast, then set the timer."""
        now_ms = self.world.now_ms
        self.history.extend(taken(self.core.events))
        for outgoing in taken(self.core.outgoing):
            self.broadcast.append((now_ms, outgoing))
            self.world.carry(self, outgoing.data)
            if outgoing.kind in (OutgoingKind.CONTENT, OutgoingKind.RETRY):
                message_hash = sha256(outgoing.data).digest()
                self.core.dispatched(outgoing.message_id, now_ms, message_hash)
        self._timer += 1
        deadline_ms = self.core.agenda.next_ms
        if deadline_ms is not None:
            timer = self._timer
            self.world.at(max(deadline_ms, now_ms), lambda: self._ring(timer))

    def _ring(self, timer: int) -> None:
        if timer == self._timer:
            self.core.on_deadline(self.world.now_ms)
            self.settle()

    def seen(self, kind: type[E]) -> list[E]:
        """The events of one kind so far."""
        return [event for event in self.history if isinstance(event, kind)]

    def delivered(self) -> list[str]:
        """The ids delivered to the application, in order."""
        return [event.message_id for event in self.seen(MessageReceived)]

    def broadcasts(self, *kinds: OutgoingKind) -> list[Outgoing]:
        """What was broadcast so far, of some kinds."""
        return [outgoing for _, outgoing in self.broadcast if outgoing.kind in kinds]


class World:
    """Some participants, a network that may misbehave, and a clock that jumps from event to
    event."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        seed: int = 0,
        weather: Weather | None = None,
        profiles: Mapping[str, WireProfile] | None = None,
        **changes: Any,
    ) -> None:
        """`profiles` are the dialects by name, `spec` where none is named; `changes` are
        options."""
        self.now_ms = NOW_MS
        self.weather = weather or Weather()
        self.islands: list[set[str]] = []
        """A participant on one of them is heard there alone; one on none by all on none."""
        self._random = Random(seed)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self.drivers = {
            name: Driver(
                self,
                name,
                participant(name, seed=seed, profile=(profiles or {}).get(name, SPEC), **changes),
            )
            for name in names
        }
        for driver in self.drivers.values():
            driver.settle()

    def __getitem__(self, name: str) -> Driver:
        return self.drivers[name]

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._heap, (time_ms, self._number, action))

    def run(self, duration_ms: int, *, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass, or stop as soon as `until` holds; return whether it did."""
        end_ms = self.now_ms + duration_ms
        while self._heap and self._heap[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._heap)
            action()
            if until is not None and until():
                return True
        self.now_ms = end_ms
        return False

    def carry(self, source: Driver, data: bytes) -> None:
        """Broadcast bytes to all others, as the weather is."""
        weather, random = self.weather, self._random
        for target in self.drivers.values():
            if target is source or self._island(source) is not self._island(target):
                continue
            copies = 1 + (random.random() < weather.duplication)
            for _ in range(copies):
                if random.random() >= weather.loss:
                    delay_ms = random.randint(*weather.latency_ms)
                    self.at(self.now_ms + delay_ms, lambda to=target: to.receive(data))  # type: ignore[misc]

    def calm(self) -> None:
        """End all faults; what is on its way still arrives."""
        self.weather, self.islands = Weather(), []

    def is_quiet(self) -> bool:
        """Whether all have the same log and nobody waits for anything."""
        cores = [driver.core for driver in self.drivers.values()]
        length = len(cores[0].log)
        return (
            all(
                len(core.log) == length
                and not core.outgoing_buffer.entries
                and not core.incoming_buffer.missing
                and not core.incoming_buffer.parked
                for core in cores
            )
            and len({core.log.digest() for core in cores}) == 1
        )

    def _island(self, driver: Driver) -> set[str] | None:
        return next((island for island in self.islands if driver.name in island), None)


def promises_broken(world: World) -> list[str]:
    """What a quiet world must not show: each line names a promise that somebody's log or events
    break."""
    return [
        *_logs_differ(world),
        *(line for driver in world.drivers.values() for line in _deliveries(world, driver)),
        *(line for driver in world.drivers.values() for line in _fate_of_own(world, driver)),
        *(line for driver in world.drivers.values() for line in beyond_limits(driver.core)),
    ]


def beyond_limits(core: SdsProtocol) -> list[str]:
    """The buffers that hold more than their limit."""
    limits, repair, state = core.options.limits, core.options.repair, core.statistics()
    pairs = {
        "log": (state.log_length, limits.log_entries),
        "outgoing": (state.outgoing, limits.outgoing_messages),
        "incoming": (state.incoming, limits.incoming_messages),
        "missing": (state.missing, limits.missing_entries),
        "lost": (state.lost_entries, limits.missing_entries),
        "participants": (state.participants, limits.participants),
        "repair requests": (state.repair_requests, repair.buffer_size),
        "repair responses": (state.repair_responses, repair.buffer_size),
        "repair cache": (state.repair_cache_bytes, repair.cache_bytes),
        "bloom filter": (state.bloom_filter_messages, core.options.bloom.capacity),
    }
    return [
        f"{core.sender_id}: {name} holds {held}, its limit is {limit}"
        for name, (held, limit) in pairs.items()
        if held > limit
    ]


def _logs_differ(world: World) -> list[str]:
    logs = {name: driver.core.log for name, driver in world.drivers.items()}
    if len({log.digest() for log in logs.values()}) == 1:
        return []
    return [f"logs differ: { {name: len(log) for name, log in logs.items()} }"]


def _deliveries(world: World, driver: Driver) -> Iterable[str]:
    others = {i for d in world.drivers.values() if d is not driver for i in d.sent}
    ids = driver.delivered()
    if len(ids) != len(set(ids)) or set(ids) != others:
        yield f"{driver.name}: {len(others)} messages of others, delivered {len(ids)} times"
    known: set[str] = set()
    messages = {
        outgoing.message_id: decode(outgoing)
        for d in world.drivers.values()
        for outgoing in d.broadcasts(OutgoingKind.CONTENT)
    }
    for event in driver.seen(MessageReceived):
        lost = {entry.message_id for entry in event.missing}
        before = set(messages[event.message_id].causal_ids) - set(driver.sent)
        if not before <= known | lost:
            yield f"{driver.name}: {event.message_id} came before {before - known - lost}"
        known.add(event.message_id)


def _fate_of_own(world: World, driver: Driver) -> Iterable[str]:
    acknowledged = {event.message_id for event in driver.seen(MessageAcknowledged)}
    failed = {event.message_id for event in driver.seen(DeliveryFailed)}
    for message_id in driver.sent:
        held = any(
            message_id in other.core.log or message_id in other.core.incoming_buffer.parked
            for other in world.drivers.values()
            if other is not driver
        )
        if message_id in acknowledged and not held:
            yield f"{driver.name}: {message_id} is acknowledged and nobody has it"
        fates = (message_id in acknowledged) + (message_id in failed)
        fates += message_id in driver.core.outgoing_buffer.entries
        if fates != 1:
            yield f"{driver.name}: {message_id} has {fates} fates"
