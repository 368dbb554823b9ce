"""The promises of the core, checked after every step at every participant.

Each check costs about as much as what changed, so that it can run after each of millions of steps.
What is said here is said once more and independently: nothing is asked of the core that the core
itself would have worked out with the code under test.
"""

from collections import deque
from collections.abc import Callable, Sequence, Sized
from hashlib import sha256
from itertools import chain, islice
from typing import Final, NoReturn

from reliable_channel.sds import Arrival, Message, Outcome, RepairOptions, SdsProtocol, WireProfile
from reliable_channel.sds.bloom import BloomParameters, contains, set_bits
from reliable_channel.sds.events import (
    AcknowledgementSource,
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    Outgoing,
    OutgoingKind,
    SdsEvent,
)

from .ledger import InvariantViolated, Ledger, Record
from .world import Observer

INSERTED: Final = 5_000
"""Ids that are remembered of a filter: as many as it may hold while its messages are on their
way."""
RECENT: Final = 8
"""Newest ids that each filter is looked through for."""
_NEW: Final = (Outcome.DELIVERED, Outcome.PARKED)


def spec_t_req(participant_id: str, message_id: str, now_ms: int, options: RepairOptions) -> int:
    """T_req as the SDS-R guide has it, §1, written down a second time."""
    digest = sha256((participant_id + message_id).encode()).digest()
    span = options.t_max_ms - options.t_min_ms
    return now_ms + options.t_min_ms + int.from_bytes(digest[:8]) % max(1, span)


class Watch(Observer[SdsProtocol]):
    """Looks at one participant, through its restarts."""

    def __init__(
        self,
        number: int,
        name: str,
        ledger: Ledger,
        profile: WireProfile,
        filters: BloomParameters,
    ) -> None:
        self.number = number
        self.name = name
        self._ledger = ledger
        self._profile = profile
        self._filters = filters
        self._inserted: deque[str] = deque(maxlen=INSERTED)
        """What went into the bloom filter, oldest first."""
        self._others: Sequence[Watch] = ()
        self.steps = 0
        """Messages received."""
        self.delivered = 0
        self._forget()

    def introduce(self, watches: "Sequence[Watch]") -> None:
        """Name all who are watched."""
        self._others = watches

    def _forget(self) -> None:
        self.window: list[str] = []
        """The messages as a chat window has them, which inserts each at its `position`."""
        self.knowledge = 0
        """Equal for those who know the same messages."""
        self._known: set[str] = set()
        self._lost: set[str] = set()
        self._fates: dict[str, str] = {}
        """Of own messages: "open", "acknowledged" or "failed"."""
        self._clock_ms = 0
        self._newest_ms = 0
        """The highest Lamport timestamp in the log."""
        self._tails: dict[str, list[str] | None] = {}
        """The end of the log when an own message was made, until it is published; None where a
        restart came between."""
        self._planned: dict[str, int] = {}

    # -- what happens ------------------------------------------------------------------------------

    def started(self, core: SdsProtocol) -> None:
        """A process starts, with nothing."""
        self._forget()
        self._ledger.forget_holder(self.number)
        self._gauges = _gauges(core)
        self._inserted.clear()

    def restarted(self, core: SdsProtocol) -> None:
        """A process starts from what is on disk: all that was let out before, and nothing else."""
        self._gauges = _gauges(core)
        self._planned = core.repair_requests.planned()
        open_now = core.outgoing_buffer.entries.keys()
        open_then = {message_id for message_id, fate in self._fates.items() if fate == "open"}
        for message_id in sorted(open_now ^ open_then):
            detail = f"{len(open_then)} were unacknowledged, now {len(open_now)} are"
            self._violated("what is unacknowledged outlives a restart", message_id, detail)
        clock_ms = core.clock.value
        if clock_ms < self._newest_ms:
            detail = f"{clock_ms} after a restart, {self._newest_ms} before"
            self._violated("the Lamport clock is monotone", "", detail)
        self._clock_ms = clock_ms
        self._tails = dict.fromkeys(open_then)
        self._inserted.extend(self.window)
        self._inserted.extend(core.incoming_buffer.parked)
        self.check_log(core)

    def rolled_back(self, core: SdsProtocol) -> None:
        """A process starts from an older state. What it let out since counts as never known: it may
        be delivered again. What is in the state is what it was."""
        fates, entries = self._fates, list(core.log)
        self._forget()
        self._ledger.forget_holder(self.number)
        for entry in entries:
            record = self._ledger.get(entry.message_id, entry.content)
            if record is None:
                self._violated("nothing is made up", entry.message_id, "nobody ever sent it")
            self._learn(record, len(self.window))
            if record.sender_id != self.name:
                record.holders |= 1 << self.number
        for parked in core.incoming_buffer.parked.values():
            if (held := self._ledger.enter(parked.message)) is not None:
                held.holders |= 1 << self.number
        open_now = core.outgoing_buffer.entries.keys()
        self._fates = {i: fate for i, fate in fates.items() if i in self._known}
        self._fates |= dict.fromkeys(open_now, "open")
        self._lost.update(core.incoming_buffer.lost)
        self._inserted.clear()
        self._clock_ms = core.clock.value
        self.restarted(core)

    def left(self) -> None:
        """It is gone for good."""
        self._ledger.forget_holder(self.number)

    def sent(self, core: SdsProtocol, message_id: str) -> None:
        """The core took a message to send."""
        entry = core.log.get(message_id)
        if entry is None:
            self._violated("own messages enter the log", message_id, "it did not")
        if entry.lamport_timestamp <= self._newest_ms:
            detail = f"its timestamp {entry.lamport_timestamp} is not above {self._newest_ms}"
            self._violated("an own message comes after all that is known", message_id, detail)
        self._inserted.append(message_id)

    def accepted(self, core: SdsProtocol, message_id: str) -> None:
        """The application has the word that its message will be delivered."""
        self._require(message_id not in self._known, "ids are unique", message_id, "it is known")
        entry = core.log.get(message_id)
        assert entry is not None
        record = self._ledger.enter(
            Message(self.name, message_id, "", entry.lamport_timestamp, content=entry.content)
        )
        assert record is not None
        self._fates[message_id] = "open"
        self._tails[message_id] = self.window[-core.options.causal_history_size :]
        record.sender_knew = self.knowledge
        self._learn(record, len(self.window))

    def published(self, core: SdsProtocol, outgoing: Outgoing) -> None:
        """A message goes out: what it says of itself must be true."""
        message = self._profile.codec.decode(outgoing.data)
        if outgoing.kind is OutgoingKind.CONTENT:
            tail, history = self._tails.pop(message.message_id), list(message.causal_ids)
            if tail is not None and history != tail[len(tail) - len(history) :]:
                detail = "its causal history is not the end of the log"
                self._violated("messages refer to the newest", message.message_id, detail)
            record = self._ledger.enter(message)
            assert record is not None
            record.dependencies = frozenset(history)
        if outgoing.kind in (OutgoingKind.CONTENT, OutgoingKind.SYNC):
            self._check_filter(message)

    def received(self, core: SdsProtocol, data: bytes, arrival: Arrival) -> None:
        """The core took what arrived."""
        self.steps += 1
        if arrival.outcome is Outcome.REJECTED:
            return
        message = self._profile.codec.decode(data)
        if arrival.outcome in _NEW:
            self._inserted.append(message.message_id)
        if (waiting := core.outgoing_buffer.entries) and message.sender_id != self.name:
            for message_id in message.causal_ids:
                if message_id in waiting:
                    detail = f"{message.sender_id} refers to it, and it still counts as unreceived"
                    self._violated("a proof of receipt is believed", message_id, detail)

    def took(self, data: bytes, arrival: Arrival) -> None:
        """What the core took outlives a crash from now on, if anything does."""
        if arrival.outcome in _NEW:
            record = self._ledger.enter(self._profile.codec.decode(data))
            assert record is not None
            if record.sender_id != self.name:
                record.holders |= 1 << self.number
                record.received = True

    def told(self, core: SdsProtocol, event: SdsEvent) -> str | None:
        """The application is told; return what is worth a line in the trace."""
        match event:
            case MessageReceived():
                self._check_delivery(event)
                return f"delivers {event.message_id} at {event.position}"
            case MessageAcknowledged():
                self._check_acknowledgement(core, event)
                return f"is acknowledged {event.message_id} by {event.acknowledged_by}"
            case DeliveryFailed():
                self._settle_fate(event.message_id, "failed")
                return f"gives up {event.message_id}"
            case MessageLost():
                self._require(
                    event.message_id not in self._known,
                    "what is known is not lost",
                    event.message_id,
                    event.reason,
                )
                self._lost.add(event.message_id)
                return f"misses for good {event.message_id}"
            case _:
                return None

    def stepped(
        self,
        core: SdsProtocol,
        now_ms: int,
        is_waiting: Callable[[str], bool],
    ) -> None:
        """A step is over; `is_waiting` says of an own message whether it waits for the
        transport."""
        clock_ms = core.clock.value
        if clock_ms < self._clock_ms or clock_ms < self._newest_ms:
            detail = f"{clock_ms} after {max(self._clock_ms, self._newest_ms)}"
            self._violated("the Lamport clock is monotone", "", detail)
        self._clock_ms = clock_ms
        for name, held, limit in self._gauges:
            if len(held) > limit:
                self._violated(
                    "buffers keep their limits", "", f"{name} holds {len(held)} > {limit}"
                )
        if core.outgoing_buffer.entries:
            self._check_retries(core, is_waiting)
        if len(core.repair_requests) or self._planned:
            self._check_requests(core, now_ms)

    # -- the checks --------------------------------------------------------------------------------

    def _check_delivery(self, event: MessageReceived) -> None:
        self.delivered += 1
        message_id, known = event.message_id, self._known
        self._require(message_id not in known, "exactly once", message_id, "it is delivered again")
        record = self._ledger.get(message_id, event.content)
        if record is None:
            self._violated("nothing is made up", message_id, "nobody ever sent it")
        # Who knows what the sender knew has all that the message depends on: mostly, and for less.
        if self.knowledge != record.sender_knew and not record.dependencies <= known:
            # What is given up must have been told before.
            before = record.dependencies - known - self._lost
            if before:
                detail = f"{len(before)} it depends on come later, such as {min(before)}"
                self._violated("causal order", message_id, detail)
        said = event.sender_id, event.lamport_timestamp
        true = record.sender_id, record.lamport_timestamp
        self._require(said == true, "messages stay as they are", message_id, f"{said}, not {true}")
        self._learn(record, event.position)

    def _learn(self, record: Record, position: int) -> None:
        self._known.add(record.message_id)
        self._lost.discard(record.message_id)
        self.window.insert(position, record.message_id)
        self.knowledge ^= record.token
        self._newest_ms = max(self._newest_ms, record.lamport_timestamp)

    def _check_acknowledgement(self, core: SdsProtocol, event: MessageAcknowledged) -> None:
        message_id = event.message_id
        self._settle_fate(message_id, "acknowledged")
        entry = core.log.get(message_id)
        record = self._ledger.get(message_id, entry.content) if entry else None
        if record is not None and record.received:
            return
        if event.source is AcknowledgementSource.BLOOM_FILTER and any(
            other.holds_by_chance(message_id) for other in self._others if other is not self
        ):
            return
        detail = f"by {event.acknowledged_by}, and nobody ever received it"
        self._violated("acknowledged means that somebody has it", message_id, detail)

    def holds_by_chance(self, message_id: str) -> bool:
        """Whether a filter of as many ids as its capacity, inserted here one after another, holds
        an id that was not among them: what a bloom filter may do."""
        layout, size = self._filters.layout, self._filters.capacity
        wanted, inserted = set(layout.probes(message_id)), list(self._inserted)
        probes = [layout.probes(inserted_id) for inserted_id in inserted]
        starts = range(max(1, len(inserted) - size + 1))
        return any(
            wanted.issubset(chain.from_iterable(probes[start : start + size])) for start in starts
        )

    def _settle_fate(self, message_id: str, fate: str) -> None:
        before = self._fates.get(message_id)
        self._require(
            before == "open", "a message has one fate", message_id, f"{fate} after {before}"
        )
        self._fates[message_id] = fate

    def _check_filter(self, message: Message) -> None:
        layout, words = self._filters.layout, message.bloom_filter or b""
        most = self._filters.capacity * self._filters.hash_count
        bits = set_bits(words)
        if bits > most:
            detail = f"{bits} bits are set, by its capacity {most} can be"
            self._violated("the bloom filter rolls", message.message_id, detail)
        recent = min(RECENT, self._filters.capacity // 2)
        for message_id in islice(reversed(self._inserted), recent + 1):
            # Not yet its own, nor what came while it waited to be published.
            if message_id in message.causal_ids and not contains(words, layout.probes(message_id)):
                detail = f"the filter of {message.message_id} lacks it"
                self._violated("the bloom filter holds the newest", message_id, detail)

    def _check_retries(self, core: SdsProtocol, is_waiting: Callable[[str], bool]) -> None:
        next_ms = core.next_deadline_ms()
        for message_id, entry in core.outgoing_buffer.entries.items():
            due_ms = entry.due_ms
            if due_ms is None:
                if not is_waiting(message_id):
                    detail = "no retry is planned, and it does not wait for the transport either"
                    self._violated("what is unacknowledged is sent again", message_id, detail)
            elif next_ms is None or next_ms > due_ms:
                detail = f"due at {due_ms}, and the core sleeps until {next_ms}"
                self._violated("what is unacknowledged is sent again", message_id, detail)

    def _check_requests(self, core: SdsProtocol, now_ms: int) -> None:
        planned = core.repair_requests.planned()
        if planned == self._planned:  # nearly always, and a difference of large sets takes long
            return
        for message_id, due_ms in planned.items() - self._planned.items():
            right_ms = spec_t_req(self.name, message_id, now_ms, core.options.repair)
            if due_ms != right_ms:
                detail = f"planned for {due_ms}, by the guide for {right_ms}"
                self._violated("T_req is that of the guide", message_id, detail)
        self._planned = planned

    # -- now and then ------------------------------------------------------------------------------

    def check_log(self, core: SdsProtocol) -> None:
        """The log is what the events said, in order."""
        entries = list(core.log)
        if [entry.message_id for entry in entries] != self.window:
            detail = f"{len(entries)} entries, {len(self.window)} in the window"
            self._violated("positions tell the log", "", detail)
        state, limits = core.statistics(), core.options.limits
        cached, most = state.repair_cache_bytes, core.options.repair.cache_bytes
        self._require(cached <= most, "buffers keep their limits", "", f"repair cache {cached}")
        held = core.incoming_buffer.size_bytes
        sums = sum(p.size_bytes for p in core.incoming_buffer.parked.values())
        right = held == sums <= limits.incoming_bytes
        self._require(
            right, "buffers keep their limits", "", f"incoming {held} bytes, {sums} in all"
        )
        keys = [(entry.lamport_timestamp, entry.message_id) for entry in entries]
        self._require(keys == sorted(keys), "the log is ordered", "", "it is not")
        for entry in entries:
            record = self._ledger.get(entry.message_id, entry.content)
            true = record and (record.sender_id, record.lamport_timestamp)
            if true != (entry.sender_id, entry.lamport_timestamp):
                self._violated(
                    "messages stay as they are", entry.message_id, f"{entry}, not {true}"
                )

    def check_settled(self) -> None:
        """Nothing is open any more."""
        for message_id, fate in self._fates.items():
            self._require(fate != "open", "a message has one fate", message_id, "it has none")

    def acknowledged(self) -> list[str]:
        """The own messages that count as received."""
        return [i for i, fate in self._fates.items() if fate == "acknowledged"]

    def _require(self, holds: bool, invariant: str, message_id: str, detail: str) -> None:
        if not holds:
            self._violated(invariant, message_id, detail)

    def _violated(self, invariant: str, message_id: str, detail: str) -> NoReturn:
        raise InvariantViolated(invariant, self.name, self._ledger.now_ms(), message_id, detail)


def _gauges(core: SdsProtocol) -> tuple[tuple[str, Sized, int], ...]:
    limits, repair = core.options.limits, core.options.repair
    incoming = core.incoming_buffer
    return (
        ("the log", core.log, limits.log_entries),
        ("the outgoing buffer", core.outgoing_buffer, limits.outgoing_messages),
        ("the incoming buffer", incoming.parked, limits.incoming_messages),
        ("the table of missing messages", incoming.missing, limits.missing_entries),
        ("the table of lost messages", incoming.lost, limits.missing_entries),
        ("the table of participants", core.participants, limits.participants),
        ("the buffer of repair requests", core.repair_requests, repair.buffer_size),
        ("the buffer of repair responses", core.repair_responses, repair.buffer_size),
        ("the bloom filter", core.bloom_filter, core.options.bloom.capacity),
    )
