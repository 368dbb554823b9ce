"""Meter of a run of any sync protocol, which makes the records in `measures.py`.

The probes of the participants, and the simulated Store, report to a `Meter` during the run.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

from reliable_channel.engine.logged import Logged
from reliable_channel.engine.requests import Accepted
from reliable_channel.engine.store_queries import ByHash, Query
from reliable_channel.engine.sync_core import SyncCore
from reliable_channel.events import AnyEvent, SendingMessage
from reliable_channel.sds.events import (
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    MessageMissing,
    MessageReceived,
    MessageRejected,
    Outgoing,
    OutgoingKind,
    RepairRequested,
)
from reliable_channel.sds.receiving import Arrival

from .measures import KINDS, Measures, RepairMeasures, mean, percentile
from .network import Packet
from .world import Observer

_EVENTS: Final = (MessageLost, MessageRejected, DeliveryFailed, RepairRequested)


class Phase(Enum):
    """Phase of a run, for separate counts of its messages."""

    JOINING = "joining"
    """Time before the first message, when all participants arrive and announce themselves."""
    BUSY = "busy"
    """Time until all participants have all messages and know that they have them."""
    IDLE = "idle"
    """Quiet time, in which participants send only sync messages."""


class TooMuchWork(Exception):
    """Error that a run needed more work than allowed."""


class Meter:
    """Meter of a run with one channel or several channels."""

    def __init__(self, *, max_receives: int | None = None) -> None:
        self.phase = Phase.JOINING
        self.busy_ms = self.idle_ms = 0
        self.different_logs = 0
        self._max_receives = max_receives
        self._receives = self._messages = self._due = 0
        self._delivered = self._repeated = 0
        self._latencies, self._notices, self._acknowledgements = (array("q") for _ in range(3))
        self._missing_ms = array("q")
        self._events: Counter[type] = Counter()
        self._sent: Counter[tuple[Phase, OutgoingKind]] = Counter()
        self._sent_bytes: Counter[tuple[Phase, OutgoingKind]] = Counter()
        self._asked: Counter[type] = Counter()
        self._given = self._given_bytes = self._unanswered = 0

    def store_failed(self) -> None:
        """Note that Store did not answer a query."""
        self._unanswered += self.phase is not Phase.JOINING

    def store_answered(self, query: Query, answer: Sequence[Packet]) -> None:
        """Note that Store answered a query."""
        if self.phase is not Phase.JOINING:
            self._asked[type(query)] += 1
            self._given += len(answer)
            self._given_bytes += sum(len(packet.data) for packet in answer)

    def measures(self) -> Measures:
        """Return the costs and quality measured so far."""
        latencies, notices, acks = map(
            sorted, (self._latencies, self._notices, self._acknowledgements)
        )
        kinds: dict[str, int] = {}
        for kind in KINDS:
            kinds[f"{kind.value}_messages"] = self._sent[Phase.BUSY, kind]
            kinds[f"{kind.value}_bytes"] = self._sent_bytes[Phase.BUSY, kind]
        by_hash = self._asked[ByHash]
        return Measures(
            messages=self._messages,
            due=self._due,
            delivered=self._delivered,
            repeated=self._repeated,
            different_logs=self.different_logs,
            lost=self._events[MessageLost],
            rejected=self._events[MessageRejected],
            failed=self._events[DeliveryFailed],
            acknowledged=len(acks),
            latency_mean_ms=mean(latencies),
            latency_p50_ms=percentile(latencies, 50),
            latency_p95_ms=percentile(latencies, 95),
            latency_p99_ms=percentile(latencies, 99),
            latency_max_ms=percentile(latencies, 100),
            noticed=len(notices),
            notice_p50_ms=percentile(notices, 50),
            notice_p95_ms=percentile(notices, 95),
            acknowledgement_p50_ms=percentile(acks, 50),
            acknowledgement_p95_ms=percentile(acks, 95),
            busy_ms=self.busy_ms,
            **kinds,
            joining_messages=self._in(Phase.JOINING, self._sent),
            joining_bytes=self._in(Phase.JOINING, self._sent_bytes),
            idle_ms=self.idle_ms,
            idle_messages=self._in(Phase.IDLE, self._sent),
            idle_bytes=self._in(Phase.IDLE, self._sent_bytes),
            store_by_hash=by_hash,
            store_by_time=self._asked.total() - by_hash,
            store_messages=self._given,
            store_bytes=self._given_bytes,
            receives=self._receives,
        )

    def repair(self) -> RepairMeasures:
        """Return the costs of repair measured so far."""
        missing_ms = sorted(self._missing_ms)
        return RepairMeasures(
            recovered=len(missing_ms),
            given_up=self._events[MessageLost],
            missing_mean_ms=mean(missing_ms),
            missing_p95_ms=percentile(missing_ms, 95),
            store_requests=self._asked.total() + self._unanswered,
            requests=self._events[RepairRequested],
            answers=sum(self._sent[phase, OutgoingKind.REPAIR] for phase in Phase),
        )

    @staticmethod
    def _in(phase: Phase, counter: Counter[tuple[Phase, OutgoingKind]]) -> int:
        return sum(counter[phase, kind] for kind in OutgoingKind)

    # -- from the channels -------------------------------------------------------------------------

    def count_promises(self, messages: int, due: int, delivered: int) -> None:
        """Note the promised and the actual deliveries of a channel that ended."""
        self._messages += messages
        self._due += due
        self._delivered += delivered

    def count_receive(self) -> None:
        """Note that a core received a message.

        Raises:
            TooMuchWork: it is one more than there may be.
        """
        self._receives += 1
        if self._max_receives is not None and self._receives > self._max_receives:
            raise TooMuchWork(
                f"the cores received more than {self._max_receives:,} messages, the limit of this "
                "run"
            )

    def count_sent(self, outgoing: Outgoing) -> None:
        self._sent[self.phase, outgoing.kind] += 1
        self._sent_bytes[self.phase, outgoing.kind] += len(outgoing.data)

    def count_event(self, event: AnyEvent | Logged) -> None:
        """Note an event that an application received."""
        if isinstance(event, _EVENTS):
            self._events[type(event)] += 1

    def count_delivery(self, latency_ms: int) -> None:
        """Note the first delivery of a message to a participant."""
        self._latencies.append(latency_ms)

    def count_repetition(self) -> None:
        self._repeated += 1

    def count_notice(self, after_ms: int) -> None:
        """Note that a participant learned of a missing message."""
        self._notices.append(after_ms)

    def count_recovery(self, missing_for_ms: int) -> None:
        """Note that a missing message arrived after the given time."""
        self._missing_ms.append(missing_for_ms)

    def count_acknowledgement(self, after_ms: int) -> None:
        """Note that a sender learned that another participant has its message."""
        self._acknowledgements.append(after_ms)


class Channel:
    """Messages of one channel, for the probes of its participants."""

    def __init__(self, meter: Meter, now_ms: Callable[[], int]) -> None:
        self.meter, self.now_ms = meter, now_ms
        self.numbers: dict[str, int] = {}
        """Of each message, in the order in which they were accepted."""
        self.sent_ms: list[int] = []

    def add(self, message_id: str, sent_ms: int) -> int:
        """Note that a message was accepted, and return the message's number."""
        self.numbers[message_id] = number = len(self.sent_ms)
        self.sent_ms.append(sent_ms)
        return number

    def find(self, message_id: str) -> tuple[int, int] | None:
        """Return the number and the age of a message, or None if it was never sent."""
        if (number := self.numbers.get(message_id)) is None:
            return None
        return number, self.now_ms() - self.sent_ms[number]


class Probe(Observer[SyncCore]):
    """Meter of one participant, which continues after restarts. Sets of messages are bits of whole
    numbers, so that ten thousand participants fit into memory."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._meter = channel, channel.meter
        self.own = 0
        """The messages that it sent."""
        self.has = 0
        """Those of others that its application was given, since the log was empty last."""
        self._ever = self._noticed = 0
        self._sent_ms: dict[str, int] = {}

    def started(self, core: SyncCore) -> None:
        """Note that the participant has an empty log, so that all messages must be delivered
        again."""
        self.has = 0

    def sent(self, core: SyncCore, payload: bytes, accepted: Accepted) -> None:
        """Note that a message was accepted, and start measuring its time."""
        self._sent_ms[accepted.message_ids[0]] = self._channel.now_ms()

    def received(self, core: SyncCore, data: bytes, arrival: Arrival) -> None:
        """Note that the core received a message."""
        self._meter.count_receive()
        if arrival.missing_for_ms is not None:
            self._meter.count_recovery(arrival.missing_for_ms)

    def published(
        self, core: SyncCore, outgoing: Outgoing, message_hash: bytes, now_ms: int
    ) -> None:
        self._meter.count_sent(outgoing)

    def emitted(self, core: SyncCore, event: AnyEvent | Logged) -> None:
        match event:
            case SendingMessage():
                # On disk, where there is one: from now on it must reach everybody.
                sent_ms = self._sent_ms.pop(event.message_id)
                self.own |= 1 << self._channel.add(event.message_id, sent_ms)
            case MessageReceived():
                if not event.redelivered:
                    self._delivered(event.message_id)
            case MessageMissing():
                for entry in event.missing:
                    self._notices(entry.message_id)
            case MessageAcknowledged():
                if (found := self._channel.find(event.message_id)) is not None:
                    self._meter.count_acknowledgement(found[1])
            case _:
                self._meter.count_event(event)

    def _delivered(self, message_id: str) -> None:
        if (found := self._channel.find(message_id)) is None:
            return
        number, latency_ms = found
        bit = 1 << number
        if self.has & bit:
            self._meter.count_repetition()
        elif not (self._ever | self.own) & bit:
            self._meter.count_delivery(latency_ms)
        self.has |= bit
        self._ever |= bit

    def _notices(self, message_id: str) -> None:
        if (found := self._channel.find(message_id)) is None:
            return
        number, after_ms = found
        if not (self._noticed | self._ever) >> number & 1:
            self._noticed |= 1 << number
            self._meter.count_notice(after_ms)
