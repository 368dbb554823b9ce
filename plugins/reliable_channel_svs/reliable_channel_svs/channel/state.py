"""Tables that the parts of a participant share, with functions to emit events and to broadcast."""

from typing import Final

from reliable_channel.events import HistoryEntry
from reliable_channel.spi import (
    CoreContext,
    LogEntry,
    MessageLog,
    Outgoing,
    OutgoingKind,
    SdsCounters,
    SdsEvent,
)

from ..naming import PublicationName
from ..options import SvsOptions
from ..protocol import SvsProtocol, suppression_timeout_ms
from ..vector import StateVector
from .outbound import Outbound
from .recovery import Recovery
from .streams import Streams
from .wire import ChannelWire, node_name, sender_id

ACKNOWLEDGE_WITHIN_MS: Final = 2_000
"""Time after a sent or delivered message within which a member sends its state vector. The vector
of one member is enough, so most members draw a long delay, as in §4.1."""
VECTOR_BYTES: Final = 30_000
"""Maximum size of a Sync Interest of this channel. A Waku message has room for much more than an
NDN packet."""


class ChannelState:
    """Tables of one participant in one channel."""

    def __init__(self, context: CoreContext) -> None:
        self.options = options = context.options.sds_options()
        self.sender_id, self.node = context.sender_id, node_name(context.sender_id)
        self.random, self.recorder = context.random, context.recorder
        self.wire = ChannelWire(context.channel_id, context.random)
        self.log = MessageLog(
            options.limits.log_entries,
            options.limits.log_bytes,
            archive=context.archive,
            recorder=context.recorder,
            window=options.limits.log_window_entries,
        )
        self.streams = Streams(context.recorder)
        self.recovery = Recovery(context.random, repair_on_demand=context.repair_on_demand)
        self.own = Outbound(
            context.recorder,
            limit=options.limits.outgoing_messages,
            interval_ms=options.retry_interval_ms,
            attempts=options.max_retry_attempts,
        )
        self.svs = self.make_svs(context.now_ms)
        self.lamport_timestamp = 0
        self.acknowledge_at_ms: int | None = None
        self.counters = SdsCounters()
        self.participants: set[str] = set()
        self.events: list[SdsEvent] = []
        self.outgoing: list[Outgoing] = []

    def make_svs(
        self, now_ms: int, bootstrap_time: int | None = None, vector: StateVector | None = None
    ) -> SvsProtocol:
        """Return the SVS state machine, either new or with the state from before a restart."""
        return SvsProtocol(
            self.node,
            now_ms=now_ms,
            random=self.random,
            bootstrap_time=bootstrap_time,
            vector=vector,
            options=SvsOptions(
                periodic_timeout_ms=self.options.sync_min_interval_ms, vector_bytes=VECTOR_BYTES
            ),
        )

    def emit(self, event: SdsEvent) -> None:
        self.events.append(event)

    def heard_from(self, who: str) -> None:
        if len(self.participants) < self.options.limits.participants:
            self.participants.add(who)

    def broadcast(
        self, kind: OutgoingKind, message_id: str, data: bytes, timestamp_ns: int | None = None
    ) -> None:
        self.outgoing.append(Outgoing(kind, message_id, data, timestamp_ns))

    def send_again(self, kind: OutgoingKind, place: PublicationName) -> bool:
        """Broadcast a message of the log again. If the log no longer has the message, `send_again`
        returns False."""
        message_id = self.wire.message_id(place)
        entry = self.log.get(message_id)
        if entry is None:
            return False
        data = self.wire.message(place, entry.lamport_timestamp, entry.content)
        self.broadcast(kind, message_id, data)
        return True

    def log_own(self, place: PublicationName, content: bytes, now_ms: int) -> LogEntry:
        """Put an own message into the message log."""
        self.lamport_timestamp = max(now_ms, self.lamport_timestamp + 1)
        entry = LogEntry(
            self.wire.message_id(place), self.sender_id, self.lamport_timestamp, content
        )
        self.log.insert(entry)
        return entry

    def reference(self, place: PublicationName) -> HistoryEntry:
        """Return the history entry by which events name a message."""
        return HistoryEntry(self.wire.message_id(place), None, sender_id(place.node))

    def plan_acknowledgement(self, now_ms: int) -> None:
        """Plan to send a state vector with acknowledgements soon."""
        if self.acknowledge_at_ms is None:
            delay_ms = suppression_timeout_ms(ACKNOWLEDGE_WITHIN_MS, self.random())
            self.acknowledge_at_ms = now_ms + round(delay_ms)
