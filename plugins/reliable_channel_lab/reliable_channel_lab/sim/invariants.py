"""Promises of the core, which are checked after every step of every participant.

A check costs about as much as the step, so it can run millions of times. The checks are separate
code, which never uses results of the tested code.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NoReturn

from reliable_channel.diagnostics import MessageReconciled
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.requests import Accepted
from reliable_channel.events import AnyEvent, SendingMessage
from reliable_channel.options import ChannelOptions
from reliable_channel.sds import Arrival, Message, Outcome, RepairOptions, SdsProtocol, WireProfile
from reliable_channel.sds.adaptive.bundles import messages_of
from reliable_channel.sds.bloom import BloomParameters
from reliable_channel.sds.dialects import CodecError
from reliable_channel.sds.events import (
    AcknowledgementSource,
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    Outgoing,
    OutgoingKind,
)
from reliable_channel.sds.message import Reconciling

from .budget import Spending
from .filters import FilterJudge
from .ledger import InvariantViolated, Ledger, Record
from .limits import BufferLimits
from .participant import Participant
from .payloads import Arrivals, Payload, Payloads
from .redelivery import Redelivery
from .results import Results
from .world import Observer

BROADCASTS: Final = 60
BROADCASTS_PER_MINUTE: Final = 30
"""Maximum number of a participant's broadcasts per existing message, and per minute."""
_NEW: Final = (Outcome.DELIVERED, Outcome.PARKED)


def spec_t_req(participant_id: str, message_id: str, now_ms: int, options: RepairOptions) -> int:
    """Return T_req as in the SDS-R guide, §1, from a second implementation."""
    digest = sha256((participant_id + message_id).encode()).digest()
    span = options.t_max_ms - options.t_min_ms
    return now_ms + options.t_min_ms + int.from_bytes(digest[:8]) % max(1, span)


class Watch(Observer[SdsProtocol]):
    """Checks of one participant, which continue after its restarts. Separate judges check the
    promises of the engine."""

    reads_log = True

    def __init__(
        self,
        number: int,
        name: str,
        ledger: Ledger,
        profile: WireProfile,
        filters: BloomParameters,
        options: ChannelOptions,
        payloads: Payloads,
        in_store: Callable[[bytes], bool],
    ) -> None:
        self.number = number
        self.name = name
        self._ledger = ledger
        self._profile = profile
        self._filter = FilterJudge(filters, self._violated)
        self._payloads = payloads
        self._unaccepted: dict[str, bytes] = {}
        """Payloads that are not on disk yet, by the first message of each."""
        fail = self._violated
        self._redelivery = Redelivery(fail)
        self._arrivals = Arrivals(payloads, options.segment_reconstruction_timeout_ms, fail)
        self._results = Results(in_store, fail)
        self._spending = Spending(options, fail)
        self._others: Sequence[Watch] = ()
        self._broadcasts = 0
        self.steps = 0
        """Messages received."""
        self.delivered = 0
        self._forget()

    def introduce(self, watches: "Sequence[Watch]") -> None:
        self._others = watches

    def _forget(self) -> None:
        self.window: list[str] = []
        """The messages as a chat window has them, which inserts each at its `position`."""
        self.knowledge = 0
        """Equal for participants that know the same messages."""
        self._known: set[str] = set()
        self._lost: set[str] = set()
        self._clock_ms = 0
        self._newest_ms = 0
        """The highest Lamport timestamp in the log."""
        self._tails: dict[str, list[str] | None] = {}
        """The end of the log when an own message was made, until it is published; None where a
        restart came between."""
        self._heads: dict[str, set[str]] = {}
        """The messages without a reference to them when an own message was made."""
        self._referred: set[str] = set()
        """What the messages that were taken since the start refer to."""
        self._before: set[str] = set()
        """What was in an older state: the messages that refer to it may not be."""
        self._bundled: dict[tuple[str, bytes], Message] = {}
        """Messages of bundles that may yet be taken, by id and content."""
        self._planned: dict[str, int] = {}

    # -- what happens ------------------------------------------------------------------------------

    def started(self, core: SdsProtocol) -> None:
        """Begin the checks of a process that has no state."""
        self._forget()
        self._ledger.forget_holder(self.number)
        self._limits = BufferLimits(core, self._ledger.reached.full, self._violated)
        self._filter.forget()
        self._redelivery.started()
        self._arrivals.started()
        self._results.started()
        self._payloads.forget_requests_of(self.name)

    def restarted(self, core: SdsProtocol) -> None:
        """Begin the checks of a process that restarts with all released steps from its disk."""
        self._ledger.reached.add("participant: restarted")
        self._redelivery.restarted()
        self._results.restarted(core.outgoing_buffer.entries.keys())
        self._go_on(core)

    def _go_on(self, core: SdsProtocol) -> None:
        self._arrivals.restarted(self._ledger.now_ms())
        self._unaccepted.clear()
        self._limits = BufferLimits(core, self._ledger.reached.full, self._violated)
        self._planned = core.repair_requests.planned()
        clock_ms = core.clock.value
        if clock_ms < self._newest_ms:
            detail = f"{clock_ms} after a restart, {self._newest_ms} before"
            self._violated("the Lamport clock is monotone", "", detail)
        self._clock_ms = clock_ms
        self._tails.clear()
        self._heads.clear()
        self._filter.restarted(self.window, core.incoming_buffer.parked)
        self.check_log(core)

    def rolled_back(self, core: SdsProtocol) -> None:
        """Begin the checks of a process that starts from an older state. Messages released after
        the older state count as unknown, so they may be delivered again. The content of the older
        state must be unchanged."""
        self._ledger.reached.add("participant: rolled_back")
        entries = list(core.log)
        self._forget()
        self._ledger.forget_holder(self.number)
        for entry in entries:
            record = self._ledger.get(entry.message_id, entry.content)
            if record is None:
                self._violated("nothing is made up", entry.message_id, "it was never sent")
            self._learn(record, len(self.window))
            if record.sender_id != self.name:
                record.holders |= 1 << self.number
        for parked in core.incoming_buffer.parked.values():
            if (held := self._ledger.enter(parked.message)) is not None:
                held.holders |= 1 << self.number
        self._redelivery.rolled_back()
        self._spending.forget()
        self._arrivals.rolled_back()
        self._results.rolled_back(self._known, core.outgoing_buffer.entries.keys())
        self._payloads.forget_requests_of(self.name)
        self._lost.update(core.incoming_buffer.lost)
        self._filter.forget()
        self._clock_ms = core.clock.value
        self._before = set(self.window) | core.incoming_buffer.parked.keys()
        self._go_on(core)

    def repeated(self) -> None:
        """Check that all unconfirmed events were emitted again."""
        self._redelivery.repeated()

    def lost_disk(self) -> None:
        """Note that the participant's state on disk is unreadable."""
        self._spending.forget()

    def left(self) -> None:
        self._ledger.reached.add("participant: left")
        self._ledger.forget_holder(self.number)

    def sent(self, core: SdsProtocol, payload: bytes, accepted: Accepted) -> None:
        """Note that the engine accepted a message for sending."""
        self._results.sent(accepted)
        self._unaccepted[accepted.message_ids[0]] = payload
        self._filter.inserted.extend(accepted.message_ids)

    def answered(self, accepted: Accepted) -> None:
        """Note that the application learned that the engine accepted its message."""
        self._results.answered(accepted)

    def confirmed(self, event: AnyEvent) -> None:
        """Note that the application's confirmation of an event is on disk."""
        self._redelivery.confirmed(event)
        self._arrivals.confirmed(event)

    def _accepted(self, core: SdsProtocol, own: Logged) -> None:
        message_id = own.message_id
        self._require(message_id not in self._known, "ids are unique", message_id, "it is known")
        if own.lamport_timestamp <= self._newest_ms:
            detail = f"its timestamp {own.lamport_timestamp} is not above {self._newest_ms}"
            self._violated("an own message comes after all that is known", message_id, detail)
        record = self._ledger.enter(
            Message(self.name, message_id, "", own.lamport_timestamp, content=own.content)
        )
        assert record is not None
        self._tails[message_id] = self.window[-core.options.causal_history_size :]
        if core.options.self_tuning and len(self.window) <= core.options.causal_history_size:
            self._heads[message_id] = set(self.window) - self._referred - self._before
        record.sender_knew = self.knowledge
        self._learn(record, len(self.window))

    def published(
        self, core: SdsProtocol, outgoing: Outgoing, message_hash: bytes, now_ms: int
    ) -> None:
        """Check that the contents of a sent message are true."""
        self._results.published(outgoing, message_hash)
        self._spending.published(outgoing, now_ms)
        message = self._profile.codec.decode(outgoing.data)
        if outgoing.kind is OutgoingKind.CONTENT:
            tail, history = self._tails.pop(message.message_id, None), list(message.causal_ids)
            if tail is not None and not core.options.self_tuning:
                if history != tail[len(tail) - len(history) :]:
                    detail = "its causal history is not the end of the log"
                    self._violated("messages refer to the newest", message.message_id, detail)
            heads = self._heads.pop(message.message_id, None)
            if tail is not None and heads is not None:
                # What own messages before this one refer to was not known when it was made.
                self._check_heads(message, set(tail[-2:]) | heads - self._referred)
            record = self._ledger.enter(message)
            assert record is not None
            record.dependencies = frozenset(history)
            self._referred.update(history)
        if outgoing.kind in (OutgoingKind.CONTENT, OutgoingKind.SYNC):
            if message.bloom_filter is not None or not core.options.self_tuning:
                self._filter.check(message)
        self._check_broadcasts(outgoing)

    def received(self, core: SdsProtocol, data: bytes, arrival: Arrival) -> None:
        """Note that the core received a message."""
        self.steps += 1
        self._ledger.reached.arrival(arrival)
        if arrival.outcome is Outcome.REJECTED:
            return
        message = self._profile.codec.decode(data)
        if arrival.outcome in _NEW:
            self._filter.inserted.append(message.message_id)
        if message.reconciling is not None:
            self._look_into(message.reconciling)
        if (waiting := core.outgoing_buffer.entries) and message.sender_id != self.name:
            for message_id in message.causal_ids:
                if message_id in waiting:
                    detail = f"{message.sender_id} refers to it, and it still counts as unreceived"
                    self._violated("a proof of receipt is believed", message_id, detail)

    def took(self, data: bytes, arrival: Arrival) -> None:
        """Note that a received message is on disk, and so survives a crash."""
        if arrival.outcome in _NEW:
            self._took(self._profile.codec.decode(data))

    def _took(self, message: Message) -> None:
        record = self._ledger.enter(message)
        assert record is not None
        self._referred.update(message.causal_ids)
        if record.sender_id != self.name:
            record.holders |= 1 << self.number
            record.received = True

    def _look_into(self, said: Reconciling) -> None:
        """Note what is in a bundle, which the core takes in later steps."""
        for inner in messages_of(said):
            try:
                message = self._profile.codec.decode(inner)
            except CodecError:
                continue
            if message.content and message.message_id not in self._known:
                self._bundled[message.message_id, message.content] = message

    def _find_bundled(self, core: SdsProtocol) -> None:
        """Note which messages of bundles the core took."""
        for key, message in list(self._bundled.items()):
            parked = core.incoming_buffer.parked.get(message.message_id)
            entry = parked.message if parked else core.log.get(message.message_id)
            if entry is not None:
                del self._bundled[key]
                if entry.content == message.content:
                    self._took(message)

    def emitted(self, core: SdsProtocol, event: AnyEvent | Logged) -> str | None:
        """Check an event that the engine emitted. `emitted` returns a text for the trace."""
        self._ledger.reached.event(event)
        if isinstance(event, MessageReconciled):
            # Each time, as the core does: one that made room while parked comes again.
            self._filter.came_in_bundle(event.message_id)
        is_repeated = self._redelivery.emitted(event) and not self._results.is_open(event)
        self._arrivals.emitted(event, self._ledger.now_ms(), is_repeated=is_repeated)
        if is_repeated:
            return None
        self._results.emitted(event)
        match event:
            case SendingMessage():
                payload = self._unaccepted.pop(event.message_id)
                accepted = self._results.request(event.message_id)
                assert accepted is not None
                self._payloads.add(Payload(self.name, payload, accepted.message_ids))
                return None
            case Logged() if event.first_segment_id is not None:
                self._accepted(core, event)
                return f"sends {event.message_id}"
            case Logged():
                self._check_delivery(event)
                return f"delivers {event.message_id} at {event.position}"
            case MessageAcknowledged():
                self._check_acknowledgement(core, event)
                return f"is acknowledged {event.message_id} by {event.acknowledged_by}"
            case DeliveryFailed():
                return f"gives up {event.message_id}"
            case MessageLost():
                self._require(
                    event.message_id not in self._known,
                    "what is known is not lost",
                    event.message_id,
                    event.reason,
                )
                self._lost.add(event.message_id)
                return f"misses permanently {event.message_id}"
            case _:
                return None

    def stepped(
        self,
        core: SdsProtocol,
        now_ms: int,
        is_waiting: Callable[[str], bool],
    ) -> None:
        """Check the state at the end of a step. `is_waiting` returns True if an own message still
        waits for the transport."""
        self._arrivals.stepped()
        clock_ms = core.clock.value
        if clock_ms < self._clock_ms or clock_ms < self._newest_ms:
            detail = f"{clock_ms} after {max(self._clock_ms, self._newest_ms)}"
            self._violated("the Lamport clock is monotone", "", detail)
        self._clock_ms = clock_ms
        if self._bundled:
            self._find_bundled(core)
        self._limits.check()
        if core.outgoing_buffer.entries:
            self._check_retries(core, is_waiting)
        if len(core.repair_requests) or self._planned:
            self._check_requests(core, now_ms)

    # -- the checks --------------------------------------------------------------------------------

    def _check_delivery(self, event: Logged) -> None:
        self.delivered += 1
        message_id, known = event.message_id, self._known
        self._require(message_id not in known, "exactly once", message_id, "it is delivered again")
        record = self._ledger.get(message_id, event.content)
        if record is None:
            self._violated("nothing is made up", message_id, "it was never sent")
        # Who knows what the sender knew has all that the message depends on: mostly, and for less.
        if self.knowledge != record.sender_knew and not record.dependencies <= known:
            # What is given up must have been told before.
            before = record.dependencies - known - self._lost
            self._ledger.reached.add("delivered after a message that was given up")
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
        accepted = self._results.request(event.message_id)
        assert accepted is not None
        # What acknowledged the other segments is not named.
        by_chance = event.source is AcknowledgementSource.BLOOM_FILTER
        by_chance = by_chance or len(accepted.message_ids) > 1
        for message_id in accepted.message_ids:
            entry = core.log.get(message_id)
            record = self._ledger.get(message_id, entry.content) if entry else None
            if record is not None and record.received:
                continue
            if by_chance and any(
                other._filter.holds_by_chance(message_id)
                for other in self._others
                if other is not self
            ):
                continue
            detail = f"by {event.acknowledged_by}, and no participant ever received it"
            self._violated("acknowledged means that a participant has it", message_id, detail)

    def _check_heads(self, message: Message, heads: set[str]) -> None:
        """A message refers to all messages without a reference, and to the newest two."""
        if lacking := heads.difference(message.causal_ids):
            detail = f"it does not refer to {len(lacking)} of {len(heads)} heads: {min(lacking)}"
            self._violated("messages refer to all heads", message.message_id, detail)

    def _check_broadcasts(self, outgoing: Outgoing) -> None:
        """No storm: what a participant broadcasts is bounded by the time and by what is known."""
        self._broadcasts += 1
        minutes = self._ledger.now_ms() / 60_000
        most = BROADCASTS * (1 + len(self._ledger)) + BROADCASTS_PER_MINUTE * (1 + minutes)
        if self._broadcasts > most:
            detail = f"{self._broadcasts} broadcasts, the last one a {outgoing.kind.value}"
            self._violated("no storm", outgoing.message_id, detail)

    def _check_retries(self, core: SdsProtocol, is_waiting: Callable[[str], bool]) -> None:
        next_ms = core.agenda.next_ms
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
            if core.options.self_tuning:
                max_ms = now_ms + core.options.repair.t_max_ms
                if not now_ms < due_ms <= max_ms:
                    detail = f"planned for {due_ms}, at {now_ms}; at most {max_ms}"
                    self._violated("T_req keeps its bounds", message_id, detail)
                continue
            right_ms = spec_t_req(self.name, message_id, now_ms, core.options.repair)
            if due_ms != right_ms:
                detail = f"planned for {due_ms}, by the guide for {right_ms}"
                self._violated("T_req is that of the guide", message_id, detail)
        self._planned = planned

    # -- now and then ------------------------------------------------------------------------------

    def check_log(self, core: SdsProtocol) -> None:
        """Check that the message log equals the emitted events, in order."""
        entries = list(core.log)
        if [entry.message_id for entry in entries] != self.window:
            detail = f"{len(entries)} entries, {len(self.window)} in the window"
            self._violated("positions match the log", "", detail)
        self._limits.check_sizes()
        keys = [(entry.lamport_timestamp, entry.message_id) for entry in entries]
        self._require(keys == sorted(keys), "the log is ordered", "", "it is not")
        for entry in entries:
            record = self._ledger.get(entry.message_id, entry.content)
            true = record and (record.sender_id, record.lamport_timestamp)
            if true != (entry.sender_id, entry.lamport_timestamp):
                self._violated(
                    "messages stay as they are", entry.message_id, f"{entry}, not {true}"
                )

    def check_segments(self, is_waiting: bool) -> None:
        """Check that only incomplete payloads are stored, and not for too long."""
        self._arrivals.check(self._ledger.now_ms(), is_waiting=is_waiting)

    def check_settled(self) -> None:
        """Check that nothing is pending any more."""
        self._results.check_end()

    def acknowledged(self) -> list[str]:
        """Return the participant's messages that count as received by others."""
        return self._results.acknowledged()

    def _require(self, holds: bool, invariant: str, message_id: str, detail: str) -> None:
        if not holds:
            self._violated(invariant, message_id, detail)

    def _violated(self, invariant: str, message_id: str, detail: str) -> NoReturn:
        raise InvariantViolated(invariant, self.name, self._ledger.now_ms(), message_id, detail)


class Watched(Participant[SdsProtocol]):
    """Participant whose steps are checked."""

    watch: Watch
